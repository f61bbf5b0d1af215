"""From stored predictions, features and journals to the drawings of a report."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ltds.core.runs import RunDirectory
from ltds.evaluation.features import FeatureTable, to_float16
from ltds.evaluation.metrics import expected_calibration_error
from ltds.evaluation.openset import OpenSetScores, known_and_open_rates, oscr
from ltds.evaluation.retrieval import retrieval_examples
from ltds.evaluation.table import PredictionTable
from ltds.evaluation.thumbnails import make_thumbnails, save_thumbnails
from ltds.reporting import report
from ltds.reporting.answer import answer
from ltds.reporting.collection import collect
from ltds.reporting.dataset import Dataset
from ltds.reporting.figures import FIGURES, drawings
from ltds.reporting.figures.canvas import new_figure
from ltds.reporting.figures.context import FigureContext, stored_features
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.figures.files import write_figures
from ltds.reporting.figures.frechet import domain_distances
from ltds.reporting.figures.open_set import open_set_curves
from ltds.reporting.figures.reliability import reliability_bins
from ltds.reporting.figures.retrieval import retrieved_images
from ltds.reporting.formats.html.page import render_page

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
    diagnostics = {
        "projected": to_float16(np.abs(cloud)),
        "embeddings": to_float16(np.eye(CLASSES)),
        "covariances": to_float16(square),
        "updated": to_float16(square / 2),
    }
    return FeatureTable(to_float16(cloud), labels, domains, rows, diagnostics if semantic else {})


def store_thumbnails(run: RunDirectory, table: FeatureTable) -> None:
    """As at the end of a run; then the dataset is deleted, so that nothing can be read from it."""
    data = run.path / "dataset"
    data.mkdir()
    for row in range(48):
        Image.new("RGB", (200, 100), (row, 0, 0)).save(data / f"{row}.png")
    examples = retrieval_examples(table, run.read_task())
    rows = {int(table.rows[i]) for example in examples for i in (example.query, *example.neighbours)}
    save_thumbnails(run.thumbnails_file, make_thumbnails((row, data / f"{row}.png") for row in rows))
    shutil.rmtree(data)


def enrich(path: Path, seed: int = 0, semantic: bool = False) -> Path:
    """Give a run predictions, features, thumbnails and distances between domains."""
    run = RunDirectory(path)
    predictions(seed).save(run.predictions_file("test"))
    table = features(seed, semantic)
    table.save(run.features_file)
    if semantic:
        store_thumbnails(run, table)
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


def titles(dataset: Dataset) -> list[str]:
    return [drawing.title for drawing in evidence(dataset)]


def evidence(dataset: Dataset) -> list[Drawing]:
    """The figures between the tables and the training curves."""
    return list(drawings(FigureContext(dataset, answer(dataset).leader), FIGURES[4:-1]))


def test_open_set_and_reliability_agree_with_the_metrics(dataset: Dataset) -> None:
    run, table = dataset.rows["ltds"][0], predictions(1)
    scores = FigureContext(dataset, "ltds").open_set_scores["ltds"]
    case = open_set_curves(run, scores)
    assert case is not None
    assert (len(case.known), len(case.opened)) == (210, 30)
    place = 70
    both = known_and_open_rates(table.probabilities, table.labels, (7,), case.thresholds[place])
    assert both == (case.a[place], case.b[place])
    assert case.h[place] == pytest.approx(2 * both[0] * both[1] / sum(both))
    area = float((np.diff(case.x) * (case.y[1:] + case.y[:-1])).sum() / 2)
    exact = oscr(OpenSetScores.of(table.probabilities, table.labels, (7,)))
    assert area == pytest.approx(exact, abs=0.005), "the curve is thinned, its area is not"
    assert case.marked == {"oracle": 0.4, "5th percentile": 0.2}
    bins = reliability_bins(scores)
    assert bins is not None
    known = scores.where(scores.known)
    assert bins.ece == expected_calibration_error(known.confidence, known.correct)
    gaps = np.nan_to_num(np.abs(bins.accuracy - bins.confidence)) * bins.images
    assert gaps.sum() / bins.images.sum() == pytest.approx(bins.ece)


def test_the_open_set_figure_shows_the_deployed_score_and_its_threshold(runs: Path, make_run) -> None:
    path = enrich(make_run("agg", "art_&_co", 0, 0.4), 1)
    run, table = RunDirectory(path), predictions(1)
    metrics = run.read_metrics()
    metrics["choices"]["h_fixed"] |= {"threshold": 0.6, "temperature": 0.5}
    metrics["choices"]["h_best"] = {"threshold": 0.7}
    run.write_metrics(metrics)
    context = FigureContext(collect([runs]).datasets[0], "agg")
    scores = context.deployed_scores["agg"]
    case = open_set_curves(context.compared_runs["agg"], scores)
    assert case is not None
    logits = table.logits[:, :7].astype(np.float64) / 0.5
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = (powers / powers.sum(axis=1, keepdims=True)).max(axis=1)
    np.testing.assert_allclose(case.known, expected[table.labels != 7])
    assert (case.score, dict(case.marked)) == ("Softened confidence", {"deployed": 0.6, "oracle": 0.7})
    kept = np.mean((expected >= 0.6)[table.labels != 7] & (logits.argmax(axis=1) == table.labels)[table.labels != 7])
    rejected = np.mean(expected[table.labels == 7] < 0.6)
    h = 100 * 2 * kept * rejected / (kept + rejected)
    (drawing,) = (one for one in evidence(context.dataset) if one.title == "Known and open images")
    assert f"agg: H {h:.1f} % at the deployed threshold, best H {100 * case.h.max():.1f} % (oracle:" in drawing.alt


def test_distances_are_means_over_runs(runs: Path, make_run) -> None:
    enrich(make_run("agg", "photo", 0), 0)
    enrich(make_run("agg", "photo", 1), 2)
    drift = domain_distances(collect([runs]).datasets[0].rows["agg"])
    assert drift is not None
    assert drift.epochs.tolist() == [1, 3]
    assert (drift.mean.tolist(), drift.nearest.tolist(), drift.farthest.tolist()) == ([3, 5], [2, 4], [4, 6])
    assert domain_distances([]) is None


def test_every_figure_appears_once_with_words(dataset: Dataset) -> None:
    figures = evidence(dataset)
    assert [d.title.split(" (")[0] for d in figures] == [
        "Cost against quality",
        "Known and open images",
        "Reliability",
        "Distance between source domains over training",
        "Test features",
        "Similarity of classes in ltds",
        "Nearest images in the semantic space of ltds",
    ]
    assert all(d.caption.endswith(".") and d.alt.endswith(".") for d in figures)
    assert "on the line are agg, ltds" in figures[0].alt
    assert "48 test images" in figures[4].alt
    assert figures[6].alt.startswith("Neighbours of the same class as the query: ant: 5 of 5")


def test_old_runs_without_features_and_predictions_lose_only_those_figures(grid) -> None:
    assert titles(grid.datasets[0]) == ["Cost against quality"]


def test_a_damaged_file_costs_only_its_figures(dataset: Dataset) -> None:
    for run in (dataset.rows["agg"][0], dataset.rows["ltds"][0]):
        run.directory.predictions_file("test").write_bytes(b"PK broken")
        run.directory.features_file.write_bytes(b"PK broken")
    assert titles(dataset) == ["Cost against quality", "Distance between source domains over training"]


def test_the_leader_and_the_reference_are_compared_on_the_same_task(runs: Path, make_run) -> None:
    for method, seeds, value in (("a", (0, 1), 0.1), ("b", (1,), 0.9), ("agg", (1,), 0.5), ("d", (0,), 0.2)):
        for seed in seeds:
            make_run(method, "photo", seed, value)
    dataset = collect([runs]).datasets[0]
    leader = answer(dataset).leader
    few = FigureContext(dataset, leader).compared_runs
    assert list(few) == ["b", "agg", "a"]
    assert {(run.held_out, run.seed) for run in few.values()} == {("photo", 1)}
    # d has no run at the leader's seed: the leader comes first.
    assert list(FigureContext(dataset, leader, "d").compared_runs) == ["b", "a"]


def test_queries_are_of_head_middle_and_tail_in_the_held_out_domain(dataset: Dataset) -> None:
    run = dataset.rows["ltds"][0]
    table = stored_features(run)
    assert table is not None
    rows = retrieved_images(run, table)
    assert [row.query.label for row in rows] == ["ant", "q\"&'", "_under"] or len(rows) == 3
    assert {row.query.domain for row in rows} == {"art_&_co"}
    assert rows[0].seen == ("photo", "sketch")
    assert all(len(row.neighbours) == 5 for row in rows)
    query = rows[0].query
    assert query.pixels is not None
    assert query.pixels.shape == (48, 96, 3)
    assert query.pixels[0, 0, 0] in table.rows[table.labels == run.task.classes.index(query.label)]


def test_a_run_without_thumbnails_has_no_retrieval_figure(dataset: Dataset) -> None:
    run = dataset.rows["ltds"][0]
    table = stored_features(run)
    assert table is not None
    run.directory.thumbnails_file.unlink()
    assert retrieved_images(run, table) == []
    assert not any(title.startswith("Nearest images") for title in titles(dataset))


def test_a_figure_from_outside_is_in_the_page_and_in_the_files(tmp_path: Path, runs: Path, dataset: Dataset) -> None:
    def own_figure(context: FigureContext) -> Iterator[Drawing]:
        figure = new_figure(2, 2)
        yield Drawing(figure, f"Methods of {context.dataset.name}", "Look here.", ", ".join(context.dataset.rows) + ".")

    page, folder = tmp_path / "report.html", tmp_path / "figures"
    written = report(runs, out=page, figures=folder, figure_format="svg", extra_figures=[own_figure])
    assert written[0] == page
    assert any(file.name.endswith("methods-of-toy.svg") for file in written)
    assert "<bdi>Methods of toy</bdi>" in page.read_text()
    assert "Methods of toy. Look here." in (folder / "captions.txt").read_text()


def test_the_page_folds_by_part_and_stays_small(runs: Path, dataset: Dataset) -> None:
    text = render_page(collect([runs]))
    for part, count in (
        ("Accuracy of each class in each domain", "2 figures"),
        ("Open classes and calibration", "2 figures"),
        ("Domains, features and the semantic space", "4 figures"),
        ("Training of each method", "2 figures"),
    ):
        assert f"<summary>{part} ({count})</summary>" in text
    assert text.count('<img src="data:image/png;base64,') == 2  # similarity and retrieval
    assert len(text) < 2_000_000


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_figures_are_written_as_files_with_their_captions(
    tmp_path: Path, runs: Path, dataset: Dataset, kind: str
) -> None:
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind]
    files = list(write_figures(collect([runs]), tmp_path / "out", kind, figures=FIGURES[:2]))
    first, second, captions = files
    assert first.name == f"01-training-images.{kind}"
    assert all(file.read_bytes().startswith(start) for file in (first, second))
    assert captions.read_text().splitlines()[1].startswith(f"{second.name}: toy. Accuracy from head to tail. A line")


def test_file_names_are_plain() -> None:
    assert Drawing(None, "a/b: «ß» $x$\n../..", "", "").file_name == "a-b-ß-x"
    assert Drawing(None, "🦊", "", "").file_name == "figure"


def test_a_report_needs_no_torch() -> None:
    code = "import sys, ltds.reporting.write; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
