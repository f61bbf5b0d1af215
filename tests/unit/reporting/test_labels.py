"""The words in figures do not touch each other, nor does a legend cover what is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from ltds.reporting.figures.canvas import svg
from ltds.reporting.figures.cost import cost
from ltds.reporting.figures.critical_difference import critical_difference_figure
from ltds.reporting.figures.distribution import distribution
from ltds.reporting.figures.frechet import DomainDistances, frechet
from ltds.reporting.figures.frequency import frequency
from ltds.reporting.figures.inline import inline_svg, tag
from ltds.reporting.figures.matrix_svg import colour, matrix_svg
from ltds.reporting.figures.open_set import OpenSetCurves, open_set
from ltds.reporting.figures.reliability import ReliabilityBins, reliability
from ltds.reporting.figures.similarity import similarity
from ltds.reporting.figures.training import training

METHODS = ["agg", "a method with a very long name indeed", *(f"ltds-{letter}" for letter in "abcdefghij")]
DOMAINS = ["photo", "a domain with a long name", "sketch", "art painting", "woodblock"]
rng = np.random.default_rng(0)


def boxes(figure: Figure) -> Iterator[tuple[Text, Bbox]]:
    """Every text that is drawn, with its extent in pixels."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    axes = [axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)]
    labels = {id(t.label1) for axis in axes for t in (*axis.majorTicks, *axis.minorTicks)}
    drawn = {id(t.label1) for axis in axes if axis.axes.axison for t in axis._update_ticks() if t.label1.get_visible()}
    seen = set()
    for text in figure.findobj(Text):
        box = text.get_window_extent(renderer)
        place = (text.get_text(), round(box.x0), round(box.y0))
        shown = text.get_visible() and text.get_text().strip() and (id(text) in drawn or id(text) not in labels)
        if shown and box.width and place not in seen:
            seen.add(place)
            yield text, box


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    found = []
    for (one, a), (two, b) in combinations(boxes(figure), 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        turn = one.get_rotation()
        # Lines of text that are turned by the same angle are parallel: their distance counts, not their boxes.
        apart = abs(a.x1 - b.x1) * np.sin(np.radians(turn)) if turn % 90 and turn == two.get_rotation() else 0
        if wide > 1 and high > 1 and apart < one.get_fontsize():
            found.append((one.get_text(), two.get_text()))
    return found


def an_open_set() -> OpenSetCurves:
    t = np.linspace(0, 1, 11)
    marked = {"oracle": 0.97, "5th percentile": 0.93}
    return OpenSetCurves(rng.random(50), rng.random(9), t, 1 - t, t, 2 * t * (1 - t), t, t, marked)


def some_bins() -> ReliabilityBins:
    return ReliabilityBins(np.full(15, 4), np.linspace(0.03, 0.97, 15), np.ones(15), 0.5)  # underconfident: high bars


def curves(names: list[str], last: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {name: (np.linspace(0, last, 5), rng.random(5)) for name in names}


def costs(seconds: np.ndarray, parameters: np.ndarray) -> Figure:
    return cost({"Seconds per step": seconds, "Parameters": parameters}, rng.random(12), "Acc-U", METHODS)


def matrices() -> Figure:
    covariances = {"Covariances Σ": rng.random((40, 40)), "Updated covariances Σ'": rng.random((40, 40))}
    return similarity(rng.random((40, 40)), covariances, np.arange(40), names(40))


def counts(classes: int) -> Figure:
    return distribution(rng.integers(0, 9, (5, classes)), names(classes), DOMAINS)


FIGURES = {
    **{f"distribution of {n}": partial(counts, n) for n in (3, 12, 13, 60)},
    "frequency": lambda: frequency(np.arange(60.0) + 1, rng.random((12, 60)), METHODS, names(60)),
    "frechet": lambda: frechet({m: DomainDistances(*(np.arange(1.0, 4) for _ in range(4))) for m in METHODS}),
    "cost": lambda: costs(rng.random(12) + 0.2, rng.random(12) * 7e6),
    "cost over decades": lambda: costs(np.geomspace(0.05, 3, 12), np.geomspace(1e5, 3e7, 12)),
    "ranks": lambda: critical_difference_figure([1.5, 2.0, 2.5, *range(4, 13)], METHODS, 4.8, [(1.5, 5), (4, 8)]),
    "open set": lambda: open_set({name: an_open_set() for name in METHODS[:3]}),
    "reliability": lambda: reliability({name: some_bins() for name in METHODS[:3]}),
    "similarity": matrices,
    "training": lambda: training(curves([f"term {i}" for i in range(9)], 1.2e5), list(curves(DOMAINS, 1.2e5).items())),
}


def names(count: int) -> list[str]:
    return [f"class number {i}" for i in range(count)]


@pytest.mark.parametrize("name", FIGURES)
def test_no_words_touch(name: str) -> None:
    assert overlaps(FIGURES[name]()) == []


def test_the_check_finds_words_that_touch() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.text(0.5, 0.5, "first")
    axes.text(0.505, 0.5, "second")
    assert overlaps(figure) == [("first", "second")]


@pytest.mark.parametrize("name", ["frequency", "frechet", "cost", "open set", "training"])
def test_legends_stand_beside_the_axes(name: str) -> None:
    figure = FIGURES[name]()
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    panels = [axes.get_window_extent(renderer) for axes in figure.axes]
    assert all(axes.get_legend() is None for axes in figure.axes)
    assert figure.legends
    for legend in figure.legends:
        box = legend.get_window_extent(renderer)
        assert not any(box.overlaps(panel) for panel in panels)


def test_no_two_curves_share_a_style() -> None:
    figure = FIGURES["training"]()
    for axes in figure.axes:
        styles = [(line.get_color(), line.get_linestyle()) for line in axes.lines]
        assert len(set(styles)) == len(styles) > 4


def test_parts_of_a_drawing_say_which_method_they_show() -> None:
    evil = '"><script>alert(1)</script>'
    figure = frequency(np.array([3.0, 1.0]), rng.random((2, 2)), ["agg", evil], ["a", "b"])
    text = inline_svg(svg(figure).decode(), 7, f"Of {evil}")
    assert "<script" not in text
    found = re.findall(r'<g data-method="([^"]*)"', text)
    assert (found.count("agg"), len(set(found))) == (4, 2)  # dots, line, and two parts of the legend
    assert text.startswith('<svg role="img" style="max-width:1140px"')
    assert 'aria-label="Of &quot;&gt;&lt;script&gt;' in text
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    assert used <= set(re.findall(r'\bid="([^"]+)"', text))
    assert all(name.startswith("f7-") for name in used)
    assert tag(method="a b", domain="c") == "ltds?method=a+b&domain=c"


def test_a_matrix_has_a_cell_for_each_value_and_no_names_touch() -> None:
    values = np.array([[0.0, 50, np.nan], [100, 20, 70]])
    text = matrix_svg(
        values, np.array([[True, False, False], [False, False, True]]), ["<b>", "held out"], ["a", "b", "c"]
    )
    cells = re.findall(r'<rect x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="18.4" fill="(#\w+)"', text)
    assert [fill for _, fill in cells] == [colour(0), colour(50), "#eceef1", colour(100), colour(20), colour(70)]
    assert text.count("<circle") == 2
    assert "&lt;b&gt;" in text
    wide = matrix_svg(np.zeros((1, 60)), np.zeros((1, 60), dtype=bool), ["d"], names(60))
    placed = [(float(x), float(s)) for x, s in re.findall(r'<text x="([\d.]+)" y="\d+" font-size="([\d.]+)"', wide)]
    assert len(placed) == 60
    assert all(b[0] - a[0] > a[1] for a, b in pairwise(placed))
    assert "61 classes" in matrix_svg(np.zeros((1, 61)), np.zeros((1, 61), dtype=bool), ["d"], names(61))
    assert (colour(0), colour(100)) == ("#ffffd9", "#081d58")
