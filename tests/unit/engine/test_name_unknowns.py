"""A trained model names what it does not know, in Python and in files; and a run says how often that is right."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ltds.core.errors import ConfigError
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.use import predict
from ltds.evaluation import FeatureTable, PredictionTable
from toy import recorded, toy_session


@pytest.fixture(scope="module")
def two_open(toy: Manifest) -> Manifest:
    """The toy dataset whose held-out domain alone has 'elk' and 'fox'."""
    elk, wax = toy.classes.index("elk"), toy.domains.index("wax")
    left_out = (toy.labels == elk) & (toy.domain_ids != wax) & (toy.split_ids != 2)
    keep = np.flatnonzero(~left_out)
    columns = {name: getattr(toy, name)[keep] for name in ("labels", "domain_ids", "split_ids")}
    return replace(toy, paths=tuple(toy.paths[i] for i in keep), **columns)


@pytest.fixture(scope="module")
def run(two_open: Manifest, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    session = toy_session(two_open, "ltds", method={"neighbours": 3})
    run = recorded(session, tmp_path_factory.mktemp("named") / "run")
    train(session, run)
    return run


def files(two_open: Manifest) -> list[Path]:
    return [two_open.root / two_open.paths[row] for row in two_open.test_rows("wax")]


def test_an_unknown_image_gets_the_open_class_of_the_nearest_embedding(two_open: Manifest, run: RunDirectory) -> None:
    model, images = load_model(run.path), files(two_open)
    answers = model.predict(images, threshold=np.inf, name_unknowns=True)
    with torch.no_grad():
        e = model.method.to_semantic(torch.from_numpy(model.features(images))).double()
    s = model.stored.embeddings.vectors.double()
    for answer, row in zip(answers, e, strict=True):
        elk, fox = (float(torch.cosine_similarity(row, s[i], dim=0)) for i in (4, 5))
        assert (answer.label, answer.name) == ("unknown", "elk" if elk >= fox else "fox")
    assert {answer.name for answer in model.predict(images, threshold=-1.0, name_unknowns=True)} == {""}
    assert {answer.name for answer in model.predict(images, threshold=np.inf)} == {""}


def test_names_are_in_the_files(two_open: Manifest, run: RunDirectory, tmp_path: Path) -> None:
    images, table, lines = files(two_open)[:4], tmp_path / "p.csv", tmp_path / "p.jsonl"
    for out in (table, lines, tmp_path / "p.png"):
        done = predict(run.path, images, out=out, threshold=np.inf, name_unknowns=True)
    names = [row.answer.name for row in done.predicted]
    assert set(names) <= {"elk", "fox"}
    assert [row["name"] for row in csv.DictReader(table.open())] == names
    assert [json.loads(line)["name"] for line in lines.read_text().splitlines()] == names
    predict(run.path, images, out=table)
    assert "name" not in next(csv.reader(table.open()))


def test_the_run_says_how_often_a_name_is_right(run: RunDirectory) -> None:
    metrics = run.read_metrics()
    said, fixed = metrics["open_names"], metrics["choices"]["h_fixed"]
    assert (said["classes"], said["chance"]) == (["elk", "fox"], 0.5)
    assert metrics["summary"]["open_name_accuracy"] == said["accuracy"]
    model, table = load_model(run.path), PredictionTable.load(run.predictions_file("test"))
    unknown = {
        int(row)
        for row, answer in zip(table.rows, model.interpret(table.logits, threshold=fixed["threshold"]), strict=True)
        if answer.unknown
    }
    features = FeatureTable.load(run.features_file)
    judged = [i for i, row in enumerate(features.rows) if features.labels[i] in (4, 5) and int(row) in unknown]
    assert said["images"] == len(judged)


def test_models_that_cannot_name_say_why(toy: Manifest, two_open: Manifest, tmp_path: Path) -> None:
    cases = {"agg": {}, "ltds-hidden-names": {"neighbours": 3}}
    for name, method in cases.items():
        session = toy_session(two_open, name, schedule={"epochs": 1, "steps_per_epoch": 1}, method=method)
        run = recorded(session, tmp_path / name)
        train(session, run)
        with pytest.raises(ConfigError, match=rf"of method '{name}', with 2 open classes, 0 of which"):
            load_model(run.path).predict(files(two_open)[:1], name_unknowns=True)
        assert run.read_metrics()["open_names"]["accuracy"] is None
