"""A model on another dataset: what is refused, and which classes it knows."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ltds
from ltds.core.errors import CheckpointError, ConfigError, DataError, LtdsWarning
from ltds.core.files import write_json
from ltds.data.datasets.raw import preview
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.engine.class_matching import as_in_model, match_classes
from ltds.engine.loop import train
from ltds.engine.other_data import Judged, evaluation_folder, write_evaluation
from ltds.engine.use import evaluate_elsewhere
from toy import recorded, toy_session, trained


@pytest.mark.parametrize(("provenance", "whole"), [({}, False), ({"builder": "folder", "config": {"seed": 0}}, True)])
def test_the_training_images_are_no_other_dataset(
    toy: Manifest, tmp_path: Path, provenance: dict[str, object], whole: bool
) -> None:
    manifest = replace(toy, provenance=provenance, whole_held_out=whole)
    session = toy_session(manifest)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    with pytest.raises(ConfigError, match=r"some of its images were trained on\. Evaluate its test images only"):
        ltds.evaluate(run.path, data=manifest, out=tmp_path / "outcome")
    found = ltds.evaluate(run.path, data=manifest, split="test", out=tmp_path / "outcome")
    images = manifest.test_rows("wax")
    of_fox = int((manifest.labels[images] == 5).sum())
    assert found["data"]["images"] == len(images)
    tested = run.read_metrics()["per_domain"]["wax"]["known_images"]
    assert found["per_domain"]["wax"]["known_images"] == tested, "as many images as the run was tested on"
    assert found["classes"]["matched"] == ["ant", "bee", "cat", "dog", "elk"]
    assert (found["classes"]["open"], found["classes"]["missing"]) == (["fox"], []), "only 'wax' has a fox to train on"
    assert (found["overall"]["known_images"], found["overall"]["open_images"]) == (len(images) - of_fox, of_fox)


def test_copies_of_training_images_are_left_out_by_their_content(toy: Manifest, tmp_path: Path) -> None:
    moved = replace(toy, root=tmp_path / "moved")
    shutil.copytree(toy.root / "images", tmp_path / "data" / "images")
    session = toy_session(replace(toy, root=tmp_path / "data"))
    run = recorded(session, tmp_path / "run")
    train(session, run)
    (tmp_path / "data").rename(moved.root)
    ltds.export(run.path, tmp_path / "model")
    photos = site(toy, tmp_path, "ink")
    assert evaluate_elsewhere(tmp_path / "model", photos).metrics["data"]["images"] == 18, "test images"
    for split in ("train", "val"):
        shutil.copy(moved.root / "images" / split / "oil" / "bee" / "0.png", photos / "site" / "bee" / f"{split}.png")
    for model in (run.path, tmp_path / "model"):
        result = evaluate_elsewhere(model, photos)
        assert (result.metrics["data"]["images"], result.metrics["data"]["seen_in_training"]) == (18, 2)
        assert not any(one.path.endswith(("train.png", "val.png")) for one in result.judged)
    for image in [*(photos / "site").rglob("[0-9]*.png")][:16]:
        image.unlink()
    with pytest.raises(ConfigError, match=r"has seen 2 of the 4 images of 'images', such as '.*bee/train.png'"):
        evaluate_elsewhere(run.path, photos)
    (tmp_path / "model" / "seen.npy").write_bytes(b"no array")
    with pytest.raises(CheckpointError, match=r"seen.npy' to tell which images .* Delete it"):
        evaluate_elsewhere(tmp_path / "model", photos)
    (tmp_path / "model" / "seen.npy").unlink()
    with pytest.warns(LtdsWarning, match="could not be checked"):
        evaluate_elsewhere(tmp_path / "model", photos)


def site(toy: Manifest, root: Path, domain: str) -> Path:
    """A folder "images" with the test images of a domain, under the names that every site uses."""
    shutil.copytree(toy.root / "images" / "test" / domain, root / "images" / "site")
    return root / "images"


def test_classes_match_in_any_encoding_of_accents() -> None:
    trained = ["caf\u00e9", "nin\u0303o", "tee"]
    names = as_in_model(["cafe\u0301", "ni\u00f1o", "\uff34ee", "yak"], trained)
    assert names == ["caf\u00e9", "nin\u0303o", "\uff34ee", "yak"]
    found = match_classes("site", names, trained)
    assert (found["matched"], found["missing"], found["open"]) == (trained[:2], ["tee"], names[2:])
    assert found["spelled_differently"] == ["\uff34ee (tee)"]  # a wide T


def test_evaluations_on_other_images_never_share_a_folder(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    here, there = site(toy, tmp_path / "a", "wax"), site(toy, tmp_path / "b", "ink")
    first = evaluate_elsewhere(run.path, here)
    second = evaluate_elsewhere(run.path, there)
    tested = evaluate_elsewhere(run.path, here, split="test")
    assert first.metrics["data"]["checksum"] == second.metrics["data"]["checksum"], "the same names everywhere"
    folders = [result.folder for result in (first, second, tested)]
    assert folders[0] == run.path / "evaluations" / "images"
    assert folders[1].name.startswith("images-all-")
    assert folders[2].name.startswith("images-test-")
    for result in (first, second, tested):
        assert json.loads((result.folder / "evaluation.json").read_text()) == result.metrics
    again = [evaluate_elsewhere(run.path, here), evaluate_elsewhere(run.path, there)]
    assert [result.folder for result in again] == folders[:2], "the same evaluation, the same folder"
    assert len(list((run.path / "evaluations").iterdir())) == 3


def test_who_gets_an_exported_model_does_not_get_its_evaluations(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = site(toy, tmp_path / "a", "wax")
    model = tmp_path / "model"
    ltds.export(trained(toy, tmp_path / "run").path, out=model)
    exported = sorted(model.iterdir())
    assert evaluate_elsewhere(model, images).folder == tmp_path / "model-evaluations" / "images"
    monkeypatch.chdir(model)
    assert evaluate_elsewhere(".", images).folder == tmp_path / "model-evaluations" / "images", "the same evaluation"
    assert sorted(model.iterdir()) == exported


def test_an_evaluation_needs_no_training_images(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    folder = tmp_path / "site"
    for split in ("val", "test"):
        shutil.copytree(toy.root / "images" / "test" / "wax", folder / split)
    images = len(list(folder.rglob("*.png")))
    assert evaluate_elsewhere(run.path, folder).metrics["data"]["images"] == images
    assert evaluate_elsewhere(run.path, folder, split="test").metrics["data"]["images"] == images // 2
    preview(folder).write()  # the same as a dataset
    assert evaluate_elsewhere(run.path, folder).metrics["data"]["images"] == images
    with pytest.raises(DataError, match="no training image in any domain"):
        Manifest.read(folder)


def test_an_evaluation_from_before_content_was_recorded_is_replaced(tmp_path: Path) -> None:
    data = {"name": "new site", "checksum": "1", "split": "all", "content": "2"}
    folder = tmp_path / "evaluations" / "new-site"
    write_json(folder / "evaluation.json", {"data": {"name": "new site", "checksum": "1", "split": "all"}})
    assert evaluation_folder(folder.parent, {"data": data}) == folder
    other = evaluation_folder(folder.parent, {"data": data | {"checksum": "3"}})
    assert other.name == f"new-site-all-{hashlib.sha256(b'3 2').hexdigest()[:8]}"
    (folder / "evaluation.json").write_text("[1]")
    assert evaluation_folder(folder.parent, {"data": data}) != folder, "a file of somebody else is left alone"


def test_a_class_called_unknown_is_told_from_the_answer_unknown(toy: Manifest, tmp_path: Path) -> None:
    manifest = replace(toy, classes=("unknown", *toy.classes[1:]))
    session = toy_session(manifest)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    result = evaluate_elsewhere(run.path, manifest, split="test")
    model = ltds.load_model(run.path)
    answers = model.predict([toy.root / one.path for one in result.judged])
    both = list(zip(result.judged, answers, strict=True))
    assert {answer.unknown for one, answer in both if answer.classes[0][0] == "unknown"} == {True, False}
    known = [(one, answer) for one, answer in both if one.known]
    right = [answer.classes[0][0] == one.truth and not answer.unknown for one, answer in known]
    overall = result.metrics["overall"]
    assert overall["named_right"] == pytest.approx(sum(right) / len(known))
    assert overall["known_called_unknown"] == pytest.approx(sum(answer.unknown for _, answer in known) / len(known))
    with (result.folder / "predictions.csv").open() as file:
        said = [row["unknown"] for row in csv.DictReader(file)]
    assert said == ["yes" if answer.unknown else "no" for answer in answers]


def test_no_path_in_predictions_csv_is_a_formula(tmp_path: Path) -> None:
    judged = [Judged(path, "-cat", "+site", "-cat", "-cat", 0.5, 0.7, True, False) for path in ("=1+1.png", "a/=1.png")]
    write_evaluation(tmp_path, {}, judged)
    with (tmp_path / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == ["./=1+1.png", "a/=1.png"]
    assert {(row["class"], row["domain"]) for row in rows} == {("-cat", "+site")}


def test_an_image_that_is_listed_twice_is_counted_once(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    shutil.copytree(toy.root / "images" / "test", tmp_path / "site" / "images")
    rows = toy.rows("test")
    paths = tuple(toy.paths[row].replace("images/test/", "images/") for row in rows)
    count, columns = len(rows), [column[rows] for column in (toy.labels, toy.domain_ids)]
    splits = np.repeat([SPLITS.index("train"), SPLITS.index("test")], count)
    twice = Manifest(  # as PACS-ODG tests on every image of a domain
        tmp_path / "site",
        "site",
        toy.classes,
        toy.domains,
        (*paths, *(f"./{path}" for path in paths)),
        *(np.tile(column, 2) for column in columns),
        splits,
        test_repeats=True,
    )
    whole, tested = (evaluate_elsewhere(run.path, twice, split=split) for split in ("all", "test"))
    assert whole.metrics["data"]["images"] == tested.metrics["data"]["images"] == len(whole.judged) == count
    assert [one.path for one in whole.judged] == list(paths)
    assert whole.metrics["overall"] == tested.metrics["overall"]


def test_names_that_are_not_utf8_are_written_with_their_bytes(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    photos = site(toy, tmp_path, "wax")
    try:
        os.rename(photos / "site" / "ant" / "0.png", os.fsencode(photos / "site" / "ant") + b"/caf\xe9.png")
        os.rename(photos / "site" / "fox", os.fsencode(photos / "site") + b"/f\xf6x")
        os.rename(photos / "site", os.fsencode(photos) + b"/Z\xfcrich")
        os.rename(photos, os.fsencode(tmp_path) + b"/b\xe4der")
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    found = ltds.evaluate(run.path, data=os.fsdecode(os.fsencode(tmp_path) + b"/b\xe4der"), out=tmp_path / "outcome")
    assert found["data"]["images"] == 18
    assert json.loads((tmp_path / "outcome" / "evaluation.json").read_text()) == found
    assert (found["data"]["name"], list(found["per_domain"])) == ("b\\xe4der", ["Z\\xfcrich"])
    assert found["classes"]["open"] == ["f\\xf6x"]
    with (tmp_path / "outcome" / "predictions.csv").open() as file:
        rows = {row["image"]: row for row in csv.DictReader(file)}
    assert rows["Z\\xfcrich/ant/caf\\xe9.png"]["class"] == "ant"
    assert rows["Z\\xfcrich/f\\xf6x/0.png"]["class"] == "f\\xf6x"
    assert "Z\\xfcrich" in (tmp_path / "outcome" / "report.html").read_text()
