"""The arrays that figures draw, and what the figures show of them."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from ltds.core.runs import RunDirectory
from ltds.reporting.class_accuracy import class_accuracy
from ltds.reporting.collection import Collection, collect
from ltds.reporting.figures.canvas import svg
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.distribution import distribution
from ltds.reporting.figures.frequency import draw as draw_frequency
from ltds.reporting.figures.frequency import frequency, running_mean
from ltds.reporting.figures.pairs import draw as draw_pairs
from ltds.reporting.figures.pairs import pair_accuracy, pairs
from ltds.reporting.figures.training import loss_terms, thinned, training, validation_curves
from ltds.reporting.formats.html.page import render_page
from ltds.reporting.formats.html.wide_tables import by_class

NAMES = ["<script>alert(1)</script>", "$a_1$", "_b", "🦊 & قطة", "plain"]


def texts(figure) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of glyphs that no font has
        root = ET.fromstring(svg(figure))
    return [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_distribution_shows_names_as_they_are_from_head_to_tail_and_crosses_out_what_is_missing() -> None:
    counts = np.array([[1, 9, 0, 3, 0], [1, 9, 5, 0, 0]], dtype=np.int64)
    figure = distribution(counts, NAMES, ["photo", "$x$"])
    bars, matrix, _ = figure.axes
    assert [bar.get_height() for bar in bars.patches] == [18, 5, 3, 2, 0]
    crosses = matrix.collections[0].get_offsets().data
    assert {tuple(int(v) for v in place) for place in crosses} == {(1, 0), (2, 1), (4, 0), (4, 1)}
    shown = texts(figure)
    for name in ("$a_1$", "_b", "🦊 & قطة", "plain", "photo", "$x$", "<script>alert(1)</scrip…"):
        assert name in shown


def test_a_thousand_classes_stay_small_and_unnamed() -> None:
    counts = np.zeros((5, 1000), dtype=np.int64)
    counts[:, :500] = 3
    figure = distribution(counts, [f"class {c}" for c in range(1000)], list("abcde"))
    assert "1000 classes, from most to fewest training images" in texts(figure)
    assert len(svg(figure)) < 400_000


def test_frequency_sorts_classes_and_keeps_odd_method_names() -> None:
    accuracy = np.array([[0.1, 0.9, 0.5], [0.2, np.nan, 0.6]])
    figure = frequency(np.array([2.0, 50.0, 10.0]), accuracy, ["_hidden", "$m$"], ["tail", "head", "middle"])
    upper, lower = figure.axes
    assert [bar.get_height() for bar in lower.patches] == [50, 10, 2]
    assert upper.collections[0].get_offsets()[:, 1].tolist() == pytest.approx([90, 50, 10])
    shown = [text.strip("\u200b") for text in texts(figure)]
    assert {"_hidden", "$m$", "head"} <= set(shown)


def test_running_mean_ignores_missing_values_and_ends() -> None:
    assert running_mean(np.array([1.0, 2.0, 6.0, np.nan]), 3).tolist() == [1.5, 3.0, 4.0, 6.0]
    assert np.isnan(running_mean(np.array([np.nan]), 3)).all()


def test_pairs_put_a_dot_on_every_unseen_pair() -> None:
    seen = np.array([[True, False], [False, True]])
    figure = pairs({"agg": np.array([[0.5, np.nan], [0.2, 1.0]])}, ~seen, np.array([1, 0]), ["a", "b"], ["x", "y"])
    panel = figure.axes[0]
    assert {tuple(int(v) for v in p) for p in panel.collections[0].get_offsets().data} == {(0, 0), (1, 1)}
    drawn = panel.images[0].get_array()
    assert drawn.mask.tolist() == [[True, False], [False, False]]
    assert drawn.data[1].tolist() == [100, 20]


def test_open_classes_are_no_cost_of_domain_shift(make_run, runs: Path) -> None:
    """art held out: class 7 is open, so always wrong. It is grey, without dots, and in no mean."""
    run = RunDirectory(make_run("agg", "art_&_co"))
    metrics = run.read_metrics()
    metrics["pairs"]["accuracy"] = [[1.0] * 7 + [0.0]] * 3
    run.write_metrics(metrics)
    (drawing,) = draw_pairs(FigureContext(collect([runs]).datasets[0]))
    assert drawing.alt == "agg: 100.0 % over seen pairs, 100.0 % over unseen ones."
    assert drawing.caption.endswith("Grey: no test images, or a class without training images in any domain.")
    panel = drawing.figure().axes[0]
    assert panel.images[0].get_array().mask.sum(axis=0).tolist() == [0] * 7 + [3]
    # of the trained classes, sketch lacks bee and $x_1$, and art, held out, has all 7 unseen
    assert len(panel.collections[0].get_offsets()) == drawing.page_svg.count("<circle") == 2 + 7


def test_training_draws_terms_and_validation() -> None:
    curve = (np.array([1.0, 2.0]), np.array([3.0, 1.0]))
    left, right = training({"ce": curve, "z2s": curve}, [("photo", (np.array([2.0]), np.array([0.4])))]).axes
    assert [line.get_ydata().tolist() for line in left.lines] == [[3, 1], [3, 1]]
    assert right.lines[0].get_ydata().tolist() == [40]
    assert "no validation images" in texts(training({}, []))


def test_figures_are_repeatable() -> None:
    counts = np.array([[3, 1]], dtype=np.int64)
    first, second = (svg(distribution(counts, ["a", "b"], ["d"])) for _ in range(2))
    assert first == second


def test_thinned_curves_are_means_of_equal_parts() -> None:
    steps, values = thinned(np.array([1.0, 2, 3, 4, 1]), np.array([1.0, 3, 5, 7, 2]), points=2)
    assert steps.tolist() == pytest.approx([4 / 3, 3.5])
    assert values.tolist() == [2, 6]


def test_loss_terms_and_validation_from_journals(grid: Collection) -> None:
    runs = grid.datasets[0].rows["dc"]
    terms = loss_terms(runs)
    assert list(terms) == ["total", "ce", "z2s"]
    assert terms["ce"][0].tolist() == list(range(1, 61))
    np.testing.assert_allclose(terms["total"][1], terms["ce"][1] + 0.1 * terms["z2s"][1])
    curves = validation_curves(runs)
    assert len(curves) == 4
    assert [held_out for held_out, _ in curves] == ["photo", "photo", "sketch", "sketch"]
    assert curves[0][1][0].tolist() == [10, 20, 30, 40, 50, 60]


def test_class_accuracy_leaves_open_classes_out(grid: Collection) -> None:
    images, accuracy, trained = class_accuracy(grid.datasets[0])
    assert trained == list(range(8))  # art, which holds class 7, is a source in every run
    assert images[0] == (90 + 70 + 120 + 70) / 2
    runs = grid.datasets[0].rows["agg"]
    assert accuracy[0, 1] == pytest.approx(np.mean([run.metrics.per_class[1].accuracy for run in runs]))


def set_class_accuracy(path: Path, accuracy: float) -> None:
    run = RunDirectory(path)
    metrics = run.read_metrics()
    for row in metrics["per_class"]:
        row["accuracy"] = accuracy
    run.write_metrics(metrics)


def test_a_held_out_domain_with_more_seeds_counts_no_more(make_run, runs: Path) -> None:
    for held_out, seed in (("photo", 0), ("photo", 1), ("photo", 2), ("sketch", 0)):
        set_class_accuracy(make_run("agg", held_out, seed), 0.9 if held_out == "photo" else 0.1)
    images, accuracy, _ = class_accuracy(collect([runs]).datasets[0])
    assert accuracy[0, 0] == pytest.approx((0.9 + 0.1) / 2)
    assert images[0] == (90 + 70 + 120 + 70) / 2


def test_classes_are_compared_over_the_held_out_domains_that_every_method_has(make_run, runs: Path) -> None:
    """agg and dc are as good with photo held out; that dc was also trained with sketch held out says nothing of it."""
    for method, held_out in (("agg", "photo"), ("dc", "photo"), ("dc", "sketch")):
        set_class_accuracy(make_run(method, held_out), 0.9 if held_out == "photo" else 0.1)
    collection = collect([runs])
    dataset = collection.datasets[0]
    (part,) = by_class(dataset)
    assert {tuple(cell.mean for cell in row.cells) for row in part.classes} == {(90.0, 90.0)}
    (drawing,) = draw_frequency(FigureContext(dataset))
    dots = [points.get_offsets()[:, 1].tolist() for points in drawing.figure().axes[0].collections]
    assert dots == [[90.0] * len(part.classes)] * 2
    assert "has training images, with held-out domains that every method has</caption>" in render_page(collection)


def test_pair_accuracy_is_the_mean_over_runs(grid: Collection) -> None:
    runs = [run for run in grid.datasets[0].rows["dc"] if run.held_out == "photo"]
    values = pair_accuracy(runs)
    assert values is not None
    assert values[2, 3] == pytest.approx(np.mean([run.metrics.pairs.accuracy[2][3] for run in runs]))
    assert pair_accuracy([]) is None
