"""What makes the report of many runs quick: fewer lines of journals, curves as plain SVG, figures on request."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from conftest import MakeRun
from ltds.reporting import figures, write
from ltds.reporting.collection import collect
from ltds.reporting.figures.axes_svg import nice_ticks, short_number
from ltds.reporting.figures.curves_svg import SvgCurve, SvgPanel, curves_svg
from ltds.reporting.figures.tsne import similarities, tsne
from ltds.reporting.formats.html.page import render_page
from ltds.reporting.journal_file import FEWEST, STEPS, lines_for, read_journal


def test_the_more_runs_the_fewer_lines_of_each() -> None:
    assert [lines_for(runs) for runs in (1, 20, 40, 100, 200, 5000)] == [STEPS, STEPS, STEPS, 120, FEWEST, FEWEST]


def test_each_kind_of_line_is_thinned_alike(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    steps = [{"kind": "step", "step": i} for i in range(1, 101)]
    checks = [{"kind": "validation", "step": i} for i in range(10, 101, 10)]
    file.write_text("".join(json.dumps(line) + "\n" for line in [*steps, *checks]))
    rows = list(read_journal(file, most=5))
    assert [row["step"] for row in rows if row["kind"] == "step"] == [1, 21, 41, 61, 81]
    assert [row["step"] for row in rows if row["kind"] == "validation"] == [10, 30, 50, 70, 90]
    assert len(list(read_journal(file))) == 110


def test_lines_are_read_as_json_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    good = [
        b'{"kind": "step", "step": 1, "x": NaN}',
        b' {"kind": "step", "step": 2} \r',
        '{"step": 3, "n": "ä"}'.encode(),
    ]
    bad = [b'{"kind": "step", "step": 4', b'{"step": 5} {}', b"[6]", b"7", b'{"step": "8"}', b'{"step": true}', b""]
    cut = '{"step": 9, "n": "ä"}'.encode().replace("ä".encode(), "ä".encode()[:1])
    file.write_bytes(b"\n".join([*good, *bad, cut, b"[" * 100_000]))
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    expected = [json.loads(lines[i]) for i in (0, 1, 2, 10)]
    assert repr(list(read_journal(file))) == repr(expected)
    assert [row["step"] for row in expected] == [1, 2, 3, 9]
    assert list(read_journal(tmp_path / "none")) == []


def test_figures_of_single_runs_of_many_are_drawn_on_request(
    make_run: MakeRun, runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_run("agg")
    make_run("dc")
    found = collect([runs])
    words = "figures of single runs"
    assert words not in render_page(found)
    without = [figure for figure in figures.FIGURES if figure not in figures.OF_SINGLE_RUNS]
    assert len(without) == len(figures.FIGURES) - 5
    assert words in render_page(found, figures=without)
    monkeypatch.setattr(write, "MANY_RUNS", 1)
    page = tmp_path / "report.html"
    write.write_report(found, [page])
    assert words in page.read_text()
    write.write_report(found, [page], all_figures=True)
    assert words not in page.read_text()


def test_curves_are_where_their_values_are() -> None:
    line = SvgCurve(np.array([0.0, 50, 100]), np.array([0.0, 100, 50]), "#123456", "--", 'a"b')
    dot = SvgCurve(np.array([100.0]), np.array([100.0]), "#654321", "-")
    text = curves_svg([SvgPanel("Share <%>", [line, dot], [("name", line)], (0.0, 100.0))])
    (points,) = re.findall(r'points="([^"]+)"', text)
    assert points == "34.0,142.0 339.0,20.0 644.0,81.0", "from the corner of the axes to its right end"
    assert 'cx="644.0" cy="20.0"' in text
    assert 'data-domain="a&quot;b"' in text
    assert "Share &lt;%&gt;" in text
    assert "no curve here" in curves_svg([SvgPanel("", [], [], empty="no curve here")])


def test_a_gap_where_a_value_is_not_finite() -> None:
    curve = SvgCurve(np.array([1.0, 2, 4]), np.array([1.0, np.nan, 3.0]), "#123456", "-")
    (points,) = re.findall(r'points="([^"]+)"', curves_svg([SvgPanel("", [curve], [])]))
    assert len(points.split()) == 2


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0, 2400, [0, 500, 1000, 1500, 2000]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (3, 3, [3]),
    ],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == pytest.approx(ticks)


def test_numbers_are_short() -> None:
    assert [short_number(n) for n in (0, -0.0, 0.5, 2400, 20_000, 1e-7)] == [
        "0",
        "0",
        "0.5",
        "2400",
        "20\u2009k",
        "1e-07",
    ]


def test_t_sne_finds_as_good_maps_as_scikit_learn() -> None:
    """By the divergence that both minimise, from the same starts; over several, because rounding decides about one."""
    manifold = pytest.importorskip("sklearn.manifold")
    ours, theirs = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(10, 8))[rng.integers(0, 10, 120)] * 2 + rng.normal(size=(120, 8))
        start = points[:, :2] / points[:, 0].std() * 1e-4
        shares = similarities(points, 20).astype(np.float64)
        assert shares.sum() == pytest.approx(1, abs=1e-5)
        np.testing.assert_array_equal(shares, shares.T)
        other = manifold.TSNE(perplexity=20, init=start.astype(np.float32), max_iter=500).fit_transform(points)
        places = tsne(points, start, 20)
        ours.append(_divergence(shares, places))
        theirs.append(_divergence(shares, other))
    np.testing.assert_array_equal(places, tsne(points, start, 20))
    assert np.mean(ours) <= 1.1 * np.mean(theirs)


def test_each_point_has_as_many_neighbours_as_asked() -> None:
    """The perplexity of its shares, before these are made symmetric, which for points on a circle changes nothing."""
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    shares = similarities(np.stack([np.cos(angle), np.sin(angle)], axis=1), 10).astype(np.float64) * 60
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1)
    assert np.exp(entropy) == pytest.approx([10] * 60, rel=0.05)


def _divergence(shares: np.ndarray, places: np.ndarray) -> float:
    near = 1 / (1 + ((places[:, None] - places) ** 2).sum(axis=-1))
    np.fill_diagonal(near, 0)
    known = shares > 0
    return float((shares[known] * np.log(shares[known] / (near / near.sum())[known])).sum())
