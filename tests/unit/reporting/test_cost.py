"""What training costs, in every table: medians over steps and runs, and missing where not recorded."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from pathlib import Path

import pytest

from ltds.reporting.collection import Collection, collect
from ltds.reporting.cost import Cost, cost_of, short_count, short_seconds, times_are_noise
from ltds.reporting.formats.csv_table import csv_table
from ltds.reporting.formats.html.page import render_page
from ltds.reporting.formats.latex import latex_table
from ltds.reporting.formats.markdown import markdown_table
from ltds.reporting.formats.terminal import cost_rows
from ltds.reporting.legend import COST, NO_VALUE, NOISE, cost_headings, cost_texts, legend
from ltds.reporting.result_table import MISSING, detail_table, main_table


@pytest.fixture
def priced(make_run, runs: Path) -> Collection:
    """agg: 0.1, 0.2, 0.9 s in three runs; dc is larger, and its two runs took 1 and 2 s."""
    for seed, seconds in enumerate((0.1, 0.2, 0.9)):
        make_run("agg", seed=seed, seconds=seconds, parameters=4_896_000)
    for seed, seconds in enumerate((1.0, 2.0)):
        make_run("dc", seed=seed, seconds=seconds, parameters=19_500_000)
    return collect([runs])


def test_medians_over_steps_then_runs(priced: Collection) -> None:
    """Each run's first step took 9 s, which a mean would show."""
    assert main_table(priced.datasets[0]).costs == (Cost(4_896_000, 0.2), Cost(19_500_000, 1.5))
    assert detail_table(priced.datasets[0]).costs == ()


def test_the_median_is_of_steps_only(make_run) -> None:
    path = make_run("agg")
    steps = [{"kind": "step", "step": 1, "terms": {"x": 7.0}, "seconds": s} for s in (3, 1e-05, 2.5, None)]
    lines = [json.dumps(line) for line in (*steps, {"kind": "validation", "step": 1, "seconds": 50}, {"kind": "step"})]
    (path / "log.jsonl").write_text("\n".join([*lines, '{"kind": "step", "seconds": ']))
    (run,) = collect([path]).runs
    assert cost_of([run]).seconds == 2.5
    (path / "log.jsonl").write_text("")
    (run,) = collect([path]).runs
    assert run.step_quartiles is None
    assert cost_of([run]).seconds is None
    assert cost_of([]) == Cost(None, None)


def test_the_quick_reading_is_what_the_journal_says(priced: Collection) -> None:
    for run in priced.runs:
        assert cost_of([run]).seconds == statistics.median(r["seconds"] for r in run.journal if r["kind"] == "step")


def test_markdown_and_terminal(priced: Collection) -> None:
    lines = markdown_table(priced).splitlines()
    heads = [line for line in lines if line.startswith("| Method")]
    assert heads[0].endswith("| H oracle % | Parameters | s / step |")
    assert "Parameters" not in heads[1]
    assert next(line for line in lines if line.startswith("| dc |")).endswith("| 19.5 M | 1.50 |")
    assert f"- {COST}" in lines
    assert "depend on the machine and on its load" in COST
    assert cost_rows(priced) == (
        ["Method", "Parameters", "s / step"],
        [["agg", "4.90 M", "0.200"], ["dc", "19.5 M", "1.50"]],
    )


def test_latex_has_the_columns_and_the_caption(priced: Collection) -> None:
    main, detail = latex_table(priced).split("\\end{table}")[:2]
    assert "\\begin{tabular}{lcccrr}" in main
    assert "\\multicolumn{2}{c}{\\textbf{Cost}}" in main
    assert "\\cmidrule(lr){5-6}" in main
    assert "& 4.90 M & 0.200 \\\\" in main
    assert "depend on the machine" in main.split("\\begin{tabular}")[0]
    assert "depend on the machine" not in detail


def test_csv_repeats_the_cost_of_the_method(priced: Collection) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_table(priced))))
    assert {(r["method"], r["parameters"], r["seconds_per_step"]) for r in rows} == {
        ("agg", "4896000", "0.2"),
        ("dc", "19500000", "1.5"),
    }


def test_the_page_sorts_by_cost(priced: Collection) -> None:
    page = render_page(priced)
    assert '<th scope="colgroup" colspan="2">Cost</th>' in page
    spread = '<span class="interval"><span class="spoken"> quartiles </span>[0.100, 0.900]</span>'
    assert f'<td data-value="4896000">4.90 M</td><td data-value="0.2">0.200{spread}</td></tr>' in page
    columns = re.findall(r'data-column="(\d+)" data-first="(\w+)"[^>]*><button type="button">([^<]*)', page)
    assert columns[4:6] == [("4", "ascending", "Parameters"), ("5", "ascending", "s / step")]
    assert "depend on the machine and on its load." in page
    assert page.count("Parameters<span") == 1  # the details have no costs


def test_not_recorded_is_missing(make_run, runs: Path) -> None:
    path = make_run("agg")
    make_run("dc", seconds=0.5)
    (path / "environment.json").unlink()
    (path / "log.jsonl").unlink()
    found = collect([runs])
    table = main_table(found.datasets[0])
    assert table.costs == (Cost(None, None), Cost(12345, 0.5))
    assert NO_VALUE in legend([table])
    line = next(line for line in markdown_table(found).splitlines() if line.startswith("| agg |"))
    assert line.endswith(f"| {MISSING} | {MISSING} |")
    assert "& -- & -- \\\\" in latex_table(found)
    assert next(csv.DictReader(io.StringIO(csv_table(found))))["parameters"] == ""
    assert render_page(found).count(f'<td data-value=""><span class="none">{MISSING}') >= 2


def test_a_cost_that_no_run_recorded_has_no_column(make_run, runs: Path) -> None:
    path = make_run("agg")
    (path / "log.jsonl").unlink()
    table = main_table(collect([runs]).datasets[0])
    assert (cost_headings(table), cost_texts(table, "")) == (("Parameters",), [("12.3 k",)])
    (path / "environment.json").unlink()
    assert main_table(collect([runs]).datasets[0]).costs == ()


def test_times_that_overlap_are_noise(priced: Collection, make_run, runs: Path) -> None:
    """agg took 0.1 to 0.9 s, dc 1 to 2 s: they differ; a third method from 0.5 to 1.5 s overlaps with each, not all."""
    costs = main_table(priced.datasets[0]).costs
    assert [cost.spread for cost in costs] == [(0.1, 0.9), (1.0, 2.0)]
    assert not times_are_noise(costs)
    assert NOISE not in legend([main_table(priced.datasets[0])])
    between = Cost(1, 1.0, (0.5, 1.5))
    assert not times_are_noise([*costs, between])
    assert times_are_noise([costs[0], between])
    assert not times_are_noise([between])
    make_run("late", dataset="other", seconds=0.3)
    make_run("later", dataset="other", seconds=0.3)
    (other,) = (d for d in collect([runs]).datasets if d.name == "other")
    assert NOISE in legend([main_table(other)])


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00 k"),
        (12345, "12.3 k"),
        (999_499, "999 k"),
        (999_500, "1.00 M"),
        (4e9, "4.00 G"),
    ],
)
def test_short_counts(number: int, said: str) -> None:
    assert short_count(number) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0.0000"),
        (0.00123, "0.0012"),
        (0.0999, "0.0999"),
        (0.1, "0.100"),
        (0.9999, "1.00"),
        (12.34, "12.3"),
        (1234.4, "1234"),
    ],
)
def test_short_seconds(seconds: float, said: str) -> None:
    assert short_seconds(seconds) == said
