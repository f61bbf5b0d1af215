"""Figures that the page has as SVG text show what those by matplotlib show, at the places of their values."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from ltds.reporting.figures import cost, cost_svg, distribution, frechet, frequency
from ltds.reporting.figures.axes_svg import WIDTH, Scale, marks, method_legend, polyline, short_number
from ltds.reporting.figures.canvas import ABSENT, COLOURS, style
from ltds.reporting.figures.critical_difference import LINE, MARGIN, critical_difference_svg
from ltds.reporting.figures.matrix_svg import ROW, colour

HOSTILE = "<script>\"&'"


def elements(svg: str, kind: str, **wanted: str) -> list[ET.Element]:
    found = ET.fromstring(svg).iter(kind)
    return [one for one in found if all(one.get(name.replace("_", "-")) == value for name, value in wanted.items())]


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in elements(svg, "text")]


def bar_tops(path: str) -> list[float]:
    return [float(top) for top in re.findall(r"M[\d.]+ [\d.]+V([\d.]+)h", path)]


def places(path: str) -> np.ndarray:
    """(N,2) where the marks of a path begin."""
    return np.array([(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)", path)])


def points(element: ET.Element) -> np.ndarray:
    return np.array([[float(v) for v in pair.split(",")] for pair in element.attrib["points"].split()])


def test_a_scale_puts_values_between_its_ends() -> None:
    assert Scale(0, 10, 100, 0)(np.array([0.0, 5, 10])).tolist() == [100, 50, 0]
    assert Scale(1, 100, 0, 10, log=True)(np.array([1.0, 10, 100])) == pytest.approx([0, 5, 10])


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (Scale(0, 100, 0, 1), [0, 20, 40, 60, 80, 100]),
        (Scale(0.9, 1.1e3, 0, 1, log=True), [1, 3, 10, 30, 100, 300, 1000]),
        (Scale(0.9, 1.1e4, 0, 1, log=True), [1, 10, 100, 1000, 10_000]),
        (Scale(4, 9, 0, 1, log=True), [4, 5, 6, 7, 8, 9]),
    ],
)
def test_ticks_of_a_scale_are_round(scale: Scale, ticks: list[float]) -> None:
    assert scale.ticks() == pytest.approx(ticks)


def test_millions_are_short() -> None:
    assert [short_number(n) for n in (999_000, 1_000_000, 2_500_000)] == ["999\u2009k", "1\u2009M", "2.5\u2009M"]


@pytest.mark.parametrize("marker", "os^D")
def test_a_mark_for_each_point_that_is_finite(marker: str) -> None:
    path = marks(np.array([1.0, 2, 3]), np.array([4.0, np.nan, 6]), marker, 5, "#123456")
    assert path.count("M") == 2
    assert polyline(np.array([1.0, 2]), np.array([np.inf, 6]), "").count(",") == 1


def test_distribution_has_the_bars_cells_and_crosses_of_the_figure() -> None:
    counts = np.array([[1, 9, 0, 3, 0], [1, 9, 5, 0, 0]], dtype=np.int64)
    shown = counts, ["a", HOSTILE, "c", "d", "e"], ["photo", "art"]
    svg = distribution.distribution_svg(*shown)
    upper, matrix, _ = distribution.distribution(*shown).axes
    (bars,) = elements(svg, "path", fill=COLOURS[0])
    scale = Scale(0, 1.05 * 18, distribution.TOP + distribution.BARS, distribution.TOP)
    heights = np.array([bar.get_height() for bar in upper.patches])
    assert bar_tops(bars.attrib["d"]) == pytest.approx(scale(heights).tolist(), abs=0.06)
    (crosses,) = elements(svg, "path", stroke="#9aa1ab")
    wide, top = (WIDTH - 44 - 4) / 5, distribution.TOP + distribution.BARS + 8
    crossed = {(int((x - 44) // wide), int((y - top) // ROW)) for x, y in places(crosses.attrib["d"])}
    assert crossed == {tuple(int(v) for v in place) for place in matrix.collections[0].get_offsets().data}
    assert [len(places(one.attrib["d"])) for one in elements(svg, "path", fill=colour(100))] == [2], "nine images"
    assert [len(places(one.attrib["d"])) for one in elements(svg, "path", fill=ABSENT)] == [4]
    assert {HOSTILE, "photo", "art", "Training images", "Images (log)\u00a0\u00a0 1", "9"} <= set(texts(svg))


def test_a_thousand_classes_stay_small() -> None:
    counts = np.tile(np.geomspace(900, 1, 1000).astype(np.int64), (5, 1))
    svg = distribution.distribution_svg(counts, [str(c) for c in range(1000)], list("abcde"))
    assert "1000 classes, from most to fewest training images" in texts(svg)
    assert len(svg) < 400_000
    distribution.distribution_svg(np.zeros((2, 3), dtype=np.int64), list("abc"), ["x", "y"])


def test_frequency_has_the_dots_lines_and_bars_of_the_figure() -> None:
    accuracy = np.array([[0.1, 0.9, 0.5], [0.2, np.nan, 0.6]])
    shown = np.array([2.0, 50.0, 10.0]), accuracy, [HOSTILE, "m"], ["tail", "head", "middle"]
    svg = frequency.frequency_svg(*shown)
    upper, lower = frequency.frequency(*shown).axes
    scale = Scale(-2, 102, 22.4 + frequency.UPPER, 22.4)
    for m, name in enumerate(shown[2]):
        (dots,) = elements(svg, "path", data_method=name)
        values = np.asarray(upper.collections[m].get_offsets()[:, 1].data)
        known = np.isfinite(values)
        assert places(dots.attrib["d"])[:, 1] == pytest.approx(scale(values[known]), abs=0.06)
        (line,) = elements(svg, "polyline", data_method=name)
        assert points(line)[:, 1] == pytest.approx(scale(np.asarray(upper.lines[m].get_ydata())), abs=0.06)
        assert line.attrib["stroke"] == style(m)[0]
    (bars,) = elements(svg, "path", fill="#c4c8cf")
    images = Scale(1.4, 65, 22.4 + frequency.UPPER + 10 + frequency.LOWER, 22.4 + frequency.UPPER + 10, log=True)
    heights = np.array([bar.get_height() for bar in lower.patches])
    assert bar_tops(bars.attrib["d"]) == pytest.approx(images(heights).tolist(), abs=0.06)
    assert texts(svg)[-3:] == ["head", "middle", "tail"]


def test_ranks_stand_on_the_line_at_their_values() -> None:
    ranks, names = [2.5, 1.0, 2.5, 4.0], ["$a$", HOSTILE, "c", "d"]
    svg = critical_difference_svg(ranks, names, 1.6, [(1.0, 2.5), (2.5, 4.0)])
    at = Scale(1, 4, MARGIN, WIDTH - MARGIN)
    for rank, name in zip(ranks, names, strict=True):
        (group,) = elements(svg, "g", data_method=name)
        (dot,) = group.iter("circle")
        assert float(dot.attrib["cx"]) == pytest.approx(float(at(rank)), abs=0.06)
        assert float(dot.attrib["cy"]) == LINE
        assert [one.text for one in group.iter("text")] in ([f"{name}\u2002{rank:.2f}"], [f"{rank:.2f}\u2002{name}"])
    bars = [one.attrib["d"] for one in elements(svg, "path", stroke_width="4")]
    assert bars == ["M148.0 49H324.0", "M324.0 60H500.0"]
    assert "critical difference 1.60" in texts(svg)
    assert "critical difference 9.00 (longer than the line)" in texts(critical_difference_svg(ranks, names, 9.0, []))


def test_cost_marks_stand_at_cost_and_quality() -> None:
    costs = {"Seconds": np.array([1.0, 2.0, np.nan]), "Parameters": np.array([1e5, 3e6, 2e6])}
    quality, names = np.array([40.0, 60.0, 50.0]), [HOSTILE, "b", "c"]
    spreads = {"Seconds": [(0.5, 1.5), None, None]}
    joined = {name: cost.pareto_front(values, quality) for name, values in costs.items()}
    svg = cost_svg.cost_svg(costs, quality, "Acc-U %", names, spreads, joined, cost.SPAN)
    up = Scale(40 - 2.4, 60 + 2.4, cost_svg.BOTTOM, cost_svg.TOP)
    wide = (WIDTH - cost_svg.LEFT - cost_svg.GAP) / 2
    left = cost_svg.LEFT + wide + cost_svg.GAP
    seconds = Scale(0, 1.12 * 2, cost_svg.LEFT, cost_svg.LEFT + wide - 4)
    parameters = Scale(1e5 / 30**0.12, 3e6 * 30**0.12, left, left + wide - 4, log=True)
    for m, name in enumerate(names):
        found = np.concatenate([places(one.attrib["d"]) for one in elements(svg, "path", data_method=name)])
        marked = [(float(seconds(1.0)), float(up(40.0)))] if m == 0 else []
        marked += [(float(seconds(2.0)), float(up(60.0)))] if m == 1 else []
        marked += [(float(parameters(costs["Parameters"][m])), float(up(quality[m])))]
        if m == 0:
            assert found[0] == pytest.approx([float(seconds(0.5)), float(up(40.0))], abs=0.06), "the spread"
            found = found[1:]
        assert found == pytest.approx(np.array(marked), abs=0.06)
    first, second = elements(svg, "polyline")
    assert points(first) == pytest.approx(np.array([[169.0, 172.4], [294.0, 172.4], [294.0, 25.6]])), "a step"
    assert len(points(second)) == 5, "two steps"
    assert {"Acc-U %", "Seconds", "Parameters", HOSTILE} <= set(texts(svg))


def test_frechet_has_the_lines_and_bands_of_the_figure() -> None:
    one = frechet.DomainDistances(*(np.array(v) for v in ([1.0, 2, 4], [2.0, 3, 5], [1.0, 2, 4], [3.0, 4, 8])))
    svg = frechet.frechet_svg({HOSTILE: one})
    (axes,) = frechet.frechet({HOSTILE: one}).axes
    band, line = elements(svg, "polyline", data_method=HOSTILE)
    up, across = Scale(0, 8.4, 22.4 + frechet.HEIGHT, 22.4), Scale(0.85, 4.15, frechet.LEFT, WIDTH - 4)
    (drawn,) = axes.lines
    expected = np.stack([across(np.asarray(drawn.get_xdata())), up(np.asarray(drawn.get_ydata()))], axis=1)
    assert points(line) == pytest.approx(expected, abs=0.06)
    assert points(band)[:, 1] == pytest.approx(up(np.array([1.0, 2, 4, 8, 4, 3])), abs=0.06)
    frechet.frechet_svg({"a": frechet.DomainDistances(*(np.zeros(1) for _ in range(4)))})


def test_the_legend_names_every_method_beside_its_look() -> None:
    svg = f"<svg>{''.join(method_legend(['a', 'b', 'c', 'd', HOSTILE], 0))}</svg>"
    assert texts(svg) == ["a", "b", "c", "d", HOSTILE]
    assert [one.get("data-method") for one in elements(svg, "g")] == texts(svg)
    assert [float(one.attrib["y"]) for one in elements(svg, "text")] == pytest.approx([10.8] * 4 + [25.2])
