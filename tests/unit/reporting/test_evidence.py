"""From stored predictions, features and journals to the drawings of a report."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.evaluation.features import FeatureTable, half
from ltds.evaluation.metrics import expected_calibration_error
from ltds.evaluation.openset import Verdicts, known_and_open_rates, oscr
from ltds.evaluation.table import PredictionTable
from ltds.reporting import figure_files, observations
from ltds.reporting.answer import answer
from ltds.reporting.collect import collect
from ltds.reporting.dataset import Dataset
from ltds.reporting.drawing import Drawing
from ltds.reporting.evidence import evidence, looked_into
from ltds.reporting.page import render
from ltds.reporting.pictures import pictures

CLASSES, DOMAINS = 8, 3


def predictions(seed: int, images: int = 240) -> PredictionTable:
    rng = np.random.default_rng(seed)
    labels = np.arange(images) % CLASSES
    logits = rng.normal(size=(images, CLASSES)) + 2 * np.eye(CLASSES)[labels]
    rows = np.arange(images, dtype=np.int64)
    return PredictionTable(logits.astype(np.float32), labels, rows // CLASSES % DOMAINS, rows)


def features(seed: int, semantic: bool, images: int = 48) -> FeatureTable:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(images)
    labels, domains = rows % CLASSES, rows // CLASSES % DOMAINS
    cloud = 5 * np.eye(CLASSES)[labels] + rng.normal(size=(images, CLASSES))
    square = np.abs(rng.normal(size=(CLASSES, CLASSES)))
    views = {"projected": half(np.abs(cloud)), "embeddings": half(np.eye(CLASSES))} if semantic else {}
    views |= {"covariances": half(square), "updated": half(square / 2)} if semantic else {}
    return FeatureTable(half(cloud), labels, domains, rows, views)


def enrich(path: Path, seed: int = 0, semantic: bool = False) -> Path:
    """Give a run what its model said, what it made of images, and how far domains lay apart."""
    run = RunDirectory(path)
    predictions(seed).save(run.predictions_file("test"))
    features(seed, semantic).save(run.features_file)
    with run.journal_file.open("a") as journal:
        for epoch in (0, 2):
            pairs = {"a|b": 1.0 + epoch + seed, "a|c": 3.0 + epoch + seed}
            line = {"kind": "frechet", "step": 60, "epoch": epoch, "pairs": pairs, "mean": 2.0 + epoch + seed}
            journal.write(json.dumps(line) + "\n")
    return path


@pytest.fixture
def dataset(runs: Path, make_run) -> Dataset:
    """agg, and an ltds that leads with a semantic space, both with 'art_&_co' held out, so that class 7 is open."""
    enrich(make_run("agg", "art_&_co", 0, 0.4), 0)
    enrich(make_run("ltds", "art_&_co", 0, 0.6, seconds=0.1, parameters=99999), 1, semantic=True)
    return collect([runs]).datasets[0]


def test_open_set_and_reliability_agree_with_the_metrics(dataset: Dataset) -> None:
    run, table = dataset.rows["ltds"][0], predictions(1)
    verdicts = observations.verdicts_of(run)
    assert verdicts is not None
    case = observations.open_set_of(run, verdicts)
    assert case is not None
    assert (len(case.known), len(case.opened)) == (210, 30)
    place = 70
    both = known_and_open_rates(table.probabilities, table.labels, (7,), case.thresholds[place])
    assert both == (case.a[place], case.b[place])
    assert case.h[place] == pytest.approx(2 * both[0] * both[1] / sum(both))
    area = float((np.diff(case.x) * (case.y[1:] + case.y[:-1])).sum() / 2)
    exact = oscr(Verdicts.of(table.probabilities, table.labels, (7,)))
    assert area == pytest.approx(exact, abs=0.005), "the curve is thinned, its area is not"
    assert case.marked == {"oracle": 0.4, "fixed": 0.2}
    bins = observations.reliability_of(verdicts)
    assert bins is not None
    known = verdicts.where(verdicts.known)
    assert bins.ece == expected_calibration_error(known.score, known.correct)
    gaps = np.nan_to_num(np.abs(bins.accuracy - bins.confidence)) * bins.images
    assert gaps.sum() / bins.images.sum() == pytest.approx(bins.ece)


def test_distances_are_means_over_runs(runs: Path, make_run) -> None:
    enrich(make_run("agg", "photo", 0), 0)
    enrich(make_run("agg", "photo", 1), 2)
    drift = observations.drift_of(collect([runs]).datasets[0].rows["agg"])
    assert drift is not None
    assert drift.epochs.tolist() == [1, 3]
    assert (drift.mean.tolist(), drift.nearest.tolist(), drift.farthest.tolist()) == ([3, 5], [2, 4], [4, 6])
    assert observations.drift_of([]) is None


def test_every_figure_appears_once_with_words(dataset: Dataset) -> None:
    drawings = list(evidence(dataset, answer(dataset)))
    assert [d.title.split(" (")[0] for d in drawings] == [
        "Cost against quality",
        "Known and open images",
        "Reliability",
        "Distance between source domains over training",
        "Test features",
        "Similarity of classes in ltds",
        "Nearest images in the semantic space of ltds",
    ]
    assert all(d.caption.endswith(".") and d.alt.endswith(".") for d in drawings)
    assert "on the line are agg, ltds" in drawings[0].alt
    assert "48 test images" in drawings[4].alt
    assert drawings[6].alt.startswith("Neighbours of the query's own class: ant: 5 of 5")


def test_old_runs_without_features_and_predictions_lose_only_those_figures(grid) -> None:
    dataset = grid.datasets[0]
    assert [d.title for d in evidence(dataset, answer(dataset))] == ["Cost against quality"]


def test_a_damaged_file_costs_only_its_figures(dataset: Dataset) -> None:
    for run in (dataset.rows["agg"][0], dataset.rows["ltds"][0]):
        run.directory.predictions_file("test").write_bytes(b"PK broken")
        run.directory.features_file.write_bytes(b"PK broken")
    titles = [d.title for d in evidence(dataset, answer(dataset))]
    assert titles == ["Cost against quality", "Distance between source domains over training"]


def test_the_leader_and_the_reference_are_looked_into_on_the_same_task(runs: Path, make_run) -> None:
    for method, seeds, value in (("a", (0, 1), 0.1), ("b", (1,), 0.9), ("agg", (1,), 0.5), ("d", (0,), 0.2)):
        for seed in seeds:
            make_run(method, "photo", seed, value)
    dataset = collect([runs]).datasets[0]
    few = looked_into(dataset, answer(dataset), None)
    assert list(few) == ["b", "agg", "a"]
    assert {(run.held_out, run.seed) for run in few.values()} == {("photo", 1)}
    # d has no run at the leader's seed: the leader comes first.
    assert list(looked_into(dataset, answer(dataset), "d")) == ["b", "a"]


def test_queries_are_of_head_middle_and_tail_in_the_held_out_domain(dataset: Dataset) -> None:
    run = dataset.rows["ltds"][0]
    table = observations.features_of(run)
    assert table is not None
    rows = observations.retrieved_of(run, table)
    assert [row.query.label for row in rows] == ["ant", "q\"&'", "_under"] or len(rows) == 3
    assert {row.query.domain for row in rows} == {"art_&_co"}
    assert rows[0].seen == ("photo", "sketch")
    assert all(row.query.image is None for row in rows), "there is no dataset here"
    assert all(len(row.neighbours) == 5 for row in rows)


def test_pictures_of_the_query_come_from_the_runs_own_dataset(tmp_path: Path, make_run, runs: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    paths = []
    for row in range(48):
        Image.new("RGB", (200, 100), (row, 0, 0)).save(data / f"{row}.png")
        paths.append(f"{row}.png")
    ids = np.arange(48)
    names = collect([make_run("x").parent]).datasets[0]
    manifest = Manifest(data, "toy", names.classes, names.domains, tuple(paths), ids % 8, ids // 8 % 3, ids % 3)
    manifest.write()
    enrich(make_run("ltds", "art_&_co", config={"data": {"root": str(data)}}), semantic=True)
    run = collect([runs]).datasets[0].rows["ltds"][0]
    table = observations.features_of(run)
    assert table is not None
    assert observations.retrieved_of(run, table)[0].query.image is None, "the run was made from other images"
    environment = {**run.directory.read_environment(), "data": manifest.checksum}
    run.directory.write_environment(environment)
    run = collect([runs]).datasets[0].rows["ltds"][0]
    query = observations.retrieved_of(run, table)[0].query
    assert query.image is not None
    assert query.image.shape == (48, 96, 3)
    assert query.image[0, 0, 0] in table.rows[table.labels == run.task.classes.index(query.label)]
    (data / "0.png").write_bytes(b"broken")
    assert observations.thumbnail(data / "0.png") is None


def test_the_page_folds_by_part_and_stays_small(runs: Path, dataset: Dataset) -> None:
    text = render(collect([runs]))
    for part, count in (
        ("Accuracy of each class in each domain", "1 figure"),
        ("Open classes and calibration", "2 figures"),
        ("Domains, features and the semantic space", "4 figures"),
        ("Training of each method", "2 figures"),
    ):
        assert f"<summary>{part} ({count})</summary>" in text
    assert text.count("data:image/png;base64,") == 3
    assert len(text) < 2_000_000


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_figures_are_written_as_files_with_their_captions(
    tmp_path: Path, runs: Path, dataset: Dataset, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind]
    monkeypatch.setattr(figure_files, "pictures", lambda dataset, found, reference: islice(pictures(dataset, found), 2))
    files = list(figure_files.write_figures(collect([runs]), tmp_path / "out", kind))
    first, second, captions = files
    assert first.name == f"01-training-images.{kind}"
    assert all(file.read_bytes().startswith(start) for file in (first, second))
    assert captions.read_text().splitlines()[1].startswith(f"{second.name}: toy. Accuracy from head to tail. Where")


def test_file_names_are_plain() -> None:
    assert Drawing(None, "a/b: «ß» $x$\n../..", "", "").file_name == "a-b-ß-x"
    assert Drawing(None, "🦊", "", "").file_name == "figure"


def test_a_report_needs_no_torch() -> None:
    code = "import sys, ltds.reporting.page, ltds.reporting.figure_files; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
