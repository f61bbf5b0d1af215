"""Figures of decisions, features and cost: what they draw of the arrays they get."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ltds.reporting.figures.canvas import COLOURS, pdf, png, style, svg
from ltds.reporting.figures.cost import cost, pareto_front
from ltds.reporting.figures.embedding_map import FeatureMap, embedding_map, principal, project_to_plane
from ltds.reporting.figures.frechet import DomainDistances, frechet
from ltds.reporting.figures.open_set import BINS, OpenSetCurves, open_set
from ltds.reporting.figures.reliability import ReliabilityBins, reliability
from ltds.reporting.figures.retrieval import LabelledImage, RetrievedImages, retrieval
from ltds.reporting.figures.similarity import covariance_similarity, similarity

HOSTILE = "$m_1$ _x <b>"


def drawn(figure) -> bytes:
    """The SVG; a warning of matplotlib fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return svg(figure)


def test_the_first_28_styles_differ() -> None:
    assert len({style(place) for place in range(28)}) == 28
    assert style(8) == (COLOURS[1], "--", "s")


def test_all_formats_are_written_and_repeat() -> None:
    def figure():
        return frechet({HOSTILE: DomainDistances(*(np.array([1.0, 2.0]) for _ in range(4)))})

    for write, start in ((png, b"\x89PNG"), (pdf, b"%PDF"), (svg, b"<?xml")):
        first, second = write(figure()), write(figure())
        assert first.startswith(start)
        assert first == second


def test_maps_draw_each_image_once_by_domain_and_once_by_class() -> None:
    places = np.arange(12.0).reshape(6, 2)
    cloud = FeatureMap(places, np.array([0, 0, 1, 1, 1, 2]), np.array([3, 0, 1, 1, 2, 3]))
    figure = embedding_map({HOSTILE: cloud, "other": cloud}, ["photo", "_ink", "$oil$ (held out)"], 4)
    upper, _, lower, _ = figure.axes[:4]
    assert [len(c.get_offsets()) for c in upper.collections] == [2, 3, 1]
    assert upper.get_title(loc="left") == HOSTILE
    np.testing.assert_array_equal(lower.collections[0].get_offsets(), places)
    assert lower.collections[0].get_array().tolist() == [3, 0, 1, 1, 2, 3]
    legend = figure.legends[0].get_texts()
    assert [text.get_text().strip("\u200b") for text in legend] == ["photo", "_ink", "$oil$ (held out)"]
    assert b"tail" in drawn(figure)


def test_t_sne_keeps_groups_together_and_repeats() -> None:
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(size=(20, 5)), rng.normal(size=(20, 5)) + 50]).astype(np.float16)
    places, way = project_to_plane(features)
    assert way == "t-SNE"
    gap = np.linalg.norm(places[:20].mean(0) - places[20:].mean(0))
    assert gap > 3 * max(places[:20].std(axis=0).max(), places[20:].std(axis=0).max())
    np.testing.assert_array_equal(places, project_to_plane(features)[0])


def test_principal_components_stand_in_for_too_few_images() -> None:
    places, way = project_to_plane(np.array([[0.0, 0, 1], [10, 0, 1], [20, 1, 1], [30, 0, 1]]))
    assert way == "principal components"
    assert np.abs(np.diff(places[:, 0])) == pytest.approx([10] * 3, abs=0.1)


def test_principal_components_always_fill_a_plane() -> None:
    assert principal(np.array([[1.0], [2.0], [4.0]]), 50).shape == (3, 2)
    assert principal(np.zeros((1, 7)), 50).tolist() == [[0.0, 0.0]]


def test_distances_are_a_line_in_a_band_for_each_method() -> None:
    drift = DomainDistances(np.array([1.0, 5.0]), np.array([3.0, 4.0]), np.array([1.0, 2.0]), np.array([6.0, 7.0]))
    figure = frechet({"agg": drift, HOSTILE: drift})
    (axes,) = figure.axes
    assert [line.get_ydata().tolist() for line in axes.lines] == [[3, 4], [3, 4]]
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (1, 7)
    assert axes.get_ylim()[0] == 0
    drawn(figure)


def test_similarity_orders_classes_and_no_matrix_is_blank() -> None:
    cosine = np.array([[1.0, 0.2, np.nan], [0.2, 1.0, np.nan], [np.nan] * 3])
    distances = np.array([[0.0, 2, 4], [2, 0, 1], [4, 1, 0]])
    old, new = covariance_similarity(1e6 * distances), covariance_similarity(distances)
    assert old[0].tolist() == pytest.approx([1, np.exp(-1), np.exp(-2)])  # the median distance is 2
    assert covariance_similarity(np.zeros((2, 2))).tolist() == [[1, 1], [1, 1]]
    figure = similarity(cosine, {"old": old, "new": new}, np.array([1, 0, 2]), ["a", "$b$", "c"])
    first, second, third = (axes for axes in figure.axes if axes.get_title(loc="left"))
    shown = first.images[0].get_array()
    assert shown[0, 1] == 0.2
    assert shown.mask[2].all()
    assert first.images[0].get_clim() == (0.0, 1.0)  # one pair of different classes: no range of its own
    assert second.images[0].get_clim() == third.images[0].get_clim() == pytest.approx((np.exp(-2), np.exp(-0.5)))
    assert [t.get_text() for t in first.get_yticklabels()] == ["$b$", "a", "c"]
    drawn(figure)
    assert len(similarity(cosine, {}, np.arange(3), ["a", "b", "c"]).axes) == 2, "one matrix and its scale"


def test_retrieval_marks_the_querys_class_and_says_where_it_was_seen() -> None:
    image = np.zeros((4, 6, 3), dtype=np.uint8)
    query, same, other = (
        LabelledImage(image, "fox", "ink"),
        LabelledImage(image, "fox", "oil"),
        LabelledImage(None, "cat", "oil"),
    )
    figure = retrieval([RetrievedImages(query, (same, other), ("oil", "wax")), RetrievedImages(other, (), ())])
    words, asked, first, second, *rest = figure.axes[:7]
    assert [axes.get_title() for axes in (asked, first, second)] == ["query: fox", "✓ fox", "✗ cat"]
    assert first.get_xlabel() == "oil"
    assert (len(first.images), len(second.images)) == (1, 0)
    assert "oil\nwax" in words.texts[1].get_text()
    assert "nowhere" in figure.axes[7].texts[1].get_text()
    assert not any(axes.axison for axes in rest)


def test_open_set_draws_shares_rates_and_the_area() -> None:
    t = np.array([0.0, 0.5, 1.0])
    case = OpenSetCurves(
        known=np.array([0.9, 0.97, 0.98, 0.3]),
        opened=np.array([0.1, 0.2]),
        thresholds=t,
        a=np.array([0.75, 0.75, 0.0]),
        b=np.array([0.0, 1.0, 1.0]),
        h=np.array([0.0, 6 / 7, 0.0]),
        x=np.array([0.0, 0.0, 1.0]),
        y=np.array([0.0, 0.75, 0.75]),
        marked={"oracle": 0.5},
    )
    figure = open_set({HOSTILE: case})
    histogram, rates, curve = figure.axes
    known, _, opened, _ = histogram.patches
    assert known.get_data().values.sum() == opened.get_data().values.sum() == 100
    assert known.get_data().values[BINS - 1] == 50
    assert rates.lines[2].get_ydata().tolist() == pytest.approx([0, 600 / 7, 0])
    assert rates.texts[0].get_text() == " oracle "
    assert curve.texts[0].get_text() == "Area 75.0"
    drawn(figure)


def test_reliability_draws_full_bins_only() -> None:
    nan = np.nan
    case = ReliabilityBins(
        np.array([0, 4, 0, 12]), np.array([nan, 0.4, nan, 0.9]), np.array([nan, 0.5, nan, 0.75]), 0.1375
    )
    figure = reliability({HOSTILE: case, "other": case})
    upper, lower = figure.axes[0], figure.axes[2]
    assert [bar.get_height() for bar in upper.patches] == [50, 75]
    assert upper.texts[0].get_text() == "ECE 13.8"
    assert upper.lines[1].get_ydata().tolist() == pytest.approx([40, 90])
    assert [bar.get_height() for bar in lower.patches] == [0, 25, 0, 75]
    drawn(figure)


def test_the_front_is_what_no_cheaper_method_equals() -> None:
    values, quality = np.array([3.0, 1, 2, np.nan, 2]), np.array([50.0, 40, 40, 90, 45])
    assert pareto_front(values, quality) == [1, 4, 0]
    figure = cost({"Seconds": values, "Parameters": values * 100}, quality, "Acc-U", ["a", HOSTILE, "c", "d", "e"])
    left, right = figure.axes
    assert left.lines[0].get_xdata().tolist() == [1, 2, 3]
    marks = [line for line in right.lines[1:] if len(line.get_xdata())]
    assert [float(line.get_ydata()[0]) for line in marks] == [50, 40, 40, 45]
    assert [t.get_text().strip("\u200b") for t in figure.legends[0].get_texts()] == ["a", HOSTILE, "c", "d", "e"]
    drawn(figure)
