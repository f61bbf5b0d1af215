"""Values, ranks, missing cells and escaping of the tables."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from ltds.reporting.answer import answer
from ltds.reporting.collection import Collection, collect
from ltds.reporting.formats.csv_table import csv_table
from ltds.reporting.formats.json_record import report_record
from ltds.reporting.formats.latex import latex_table, latex_text
from ltds.reporting.formats.markdown import markdown_table, markdown_text
from ltds.reporting.formats.terminal import terminal_rows
from ltds.reporting.glossary import METRICS
from ltds.reporting.result_table import MISSING, TableCell, cell, detail_table, main_table, ranked


def row(markdown: str, method: str) -> list[str]:
    line = next(line for line in markdown.splitlines() if line.startswith(f"| {method} |"))
    return [field.strip() for field in line.strip("|").split("|")]


def test_values_by_hand(grid: Collection) -> None:
    """agg, photo: 40, 44 -> 42, std sqrt(8) = 2.83. Average by seed: agg (30, 33), dc (35.5, 38.5), std 2.12."""
    text = markdown_table(grid)
    assert row(text, "agg") == [
        "agg", "<u>42.0 ± 2.8</u>", "**50.0 ± 0.0**", "**40.0 ± 0.0**",
        "<u>21.0 ± 1.4</u>", "**50.0 ± 0.0**", "**40.0 ± 0.0**",
        "<u>31.5 ± 2.1</u>", "**50.0 ± 0.0**", "**40.0 ± 0.0**", "12.3 k", "0.0200",
    ]  # fmt: skip
    assert row(text, "dc")[1:10:3] == ["**51.0 ± 1.4**", "**23.0 ± 2.8**", "**37.0 ± 2.1**"]


def test_headings_say_percent_and_oracle(grid: Collection) -> None:
    main, *_, detail = (line for line in markdown_table(grid).splitlines() if line.startswith("| Method"))
    assert "photo Acc-U % | photo Acc % | photo H oracle % | sketch Acc-U %" in main
    assert "Average H oracle %" in main
    assert all("%" in name for name in detail.split("|")[2:-1])
    assert "H fixed on validation %" in detail


def test_an_undefined_metric_is_missing_not_zero_and_an_empty_column_goes(make_run, runs: Path) -> None:
    make_run("agg", summary={"unseen_pairs": 0.2})
    make_run("dc")
    found = collect([runs])
    table = detail_table(found.datasets[0])
    keys = [column.metric.key for column in table.columns]
    assert [cells[keys.index("unseen_pairs")].text() for _, cells in table.rows] == ["20.0†", MISSING]
    assert f"{MISSING} no value." in markdown_table(found)
    assert "unseen_pairs_sources" not in keys
    assert "h_best" not in keys


def test_one_seed_is_marked_and_never_bold(make_run, runs: Path) -> None:
    make_run("agg", seed=0, acc_u=0.40)
    make_run("agg", seed=1, acc_u=0.42)
    make_run("dc", seed=0, acc_u=0.60)
    text = markdown_table(collect([runs]))
    assert row(text, "dc")[1] == "60.0†"
    assert row(text, "agg")[1] == "<u>41.0 ± 1.4</u>"  # second: the mark is not handed to whoever has two seeds
    assert "† one seed" in text


def test_missing_domain_is_a_dash_and_has_no_average(make_run, runs: Path) -> None:
    make_run("agg", "photo", acc_u=0.4)
    make_run("agg", "sketch", acc_u=0.3)
    make_run("dc", "photo", acc_u=0.5)
    table = main_table(collect([runs]).datasets[0])
    assert [c.text() for c in dict(table.rows)["dc"]] == ["50.0†", "50.0†", "40.0†", *[MISSING] * 6]
    assert dict(table.rows)["agg"][6].mean == pytest.approx(35.0)


def test_average_takes_only_seeds_with_every_domain(make_run, runs: Path) -> None:
    make_run("agg", "photo", 0, 0.4)
    make_run("agg", "photo", 1, 0.9)
    make_run("agg", "sketch", 0, 0.2)
    average = main_table(collect([runs]).datasets[0]).rows[0][1][6]
    assert (average.mean, average.seeds) == (pytest.approx(30.0), 1)


def test_one_held_out_domain_needs_no_average_and_none_held_out_has_no_acc_u(make_run, runs: Path) -> None:
    make_run("agg", None, acc_u=None)
    table = main_table(collect([runs]).datasets[0])
    assert table.groups == [("none held out", 2)]
    assert [column.metric.key for column in table.columns] == ["acc", "h_oracle"]
    assert [c.text() for c in table.rows[0][1]] == ["50.0†", "40.0†"]


def rename_domain(runs: Path, old: str, new: str) -> None:
    for file in [*runs.rglob("*.json"), *runs.rglob("*.toml")]:
        file.write_text(file.read_text().replace(f'"{old}"', f'"{new}"'))


def test_a_domain_called_average_is_not_the_average(make_run, runs: Path) -> None:
    make_run("agg", "photo", acc_u=0.4)
    make_run("agg", "sketch", acc_u=0.2)
    rename_domain(runs, "sketch", "Average")
    found = collect([runs])
    table = main_table(found.datasets[0])
    assert table.groups == [("photo", 3), ("Average", 3), ("(Average)", 3)]
    assert [c.mean for c in table.rows[0][1][::3]] == pytest.approx([40, 20, 30])
    assert detail_table(found.datasets[0]).groups[0][0] == "(Average)"
    lines = [line for line in csv.DictReader(io.StringIO(csv_table(found))) if line["metric"] == "acc_u"]
    assert [(line["held_out"], float(line["mean_percent"])) for line in lines] == [
        ("photo", 40), ("Average", 20), ("(Average)", 30)
    ]  # fmt: skip
    cells = [cell for cell in report_record(found)["datasets"][0]["cells"] if cell["metric"] == "acc_u"]
    assert [(cell["held_out"], len(cell["runs"])) for cell in cells] == [("photo", 1), ("Average", 1), ("(Average)", 2)]
    assert "on average over 2 held-out domains" in answer(found.datasets[0]).verdict


def test_a_domain_called_none_held_out_is_one(make_run, runs: Path) -> None:
    make_run("agg", "sketch", acc_u=0.2)
    make_run("agg", None, acc_u=None)
    rename_domain(runs, "sketch", "none held out")
    (dataset,) = collect([runs]).datasets
    assert dataset.held_out == ("none held out", "(none held out)")
    assert dataset.held_out_only == ("none held out",)
    assert [name for name, _ in main_table(dataset).groups] == ["none held out", "(none held out)"]


def marks(means: list[float | None], higher: bool = True, seeds: int = 2) -> list[str]:
    return [
        c.mark
        for c in ranked(
            [TableCell(m, 1.0, seeds) if m is not None else TableCell(None, None, 0) for m in means], higher
        )
    ]


def test_ranks() -> None:
    assert marks([1.0, 3.0, 2.0]) == ["", "best", "second"]
    assert marks([1.0, 3.0, 2.0], higher=False) == ["best", "", "second"]
    assert marks([3.0, 3.04, 2.0]) == ["best", "best", ""]  # equal as printed; nobody is second
    assert marks([3.0, 2.0, 2.0]) == ["best", "second", "second"]
    assert marks([3.0]) == [""]
    assert marks([None, 3.0]) == ["", ""]
    assert marks([3.0, 2.0], seeds=1) == ["", ""]


def test_cell_uses_the_sample_deviation() -> None:
    value = cell([0.1, 0.2, 0.6])
    assert value.mean == pytest.approx(30.0)
    assert value.std == pytest.approx(26.457513)
    assert cell([]).text() == MISSING


def test_csv_has_every_number_and_empty_where_missing(grid: Collection) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_table(grid))))
    assert len(rows) == 2 * 3 * len(METRICS)
    found = {(r["method"], r["held_out"], r["metric"]): r for r in rows}
    assert found["agg", "photo", "acc_u"]["mean_percent"] == "42.0000"
    assert found["agg", "photo", "acc_u"]["std_percent"] == "2.8284"
    assert found["dc", "Average", "acc_u"]["seeds"] == "2"
    assert found["dc", "Average", "unseen_pairs"]["mean_percent"] == ""


def test_csv_quotes_names_and_defuses_formulas(make_run, runs: Path) -> None:
    make_run('=1+1,"x"')
    rows = list(csv.DictReader(io.StringIO(csv_table(collect([runs])))))
    assert rows[0]["method"] == '\'=1+1,"x"'


def test_latex_is_balanced_and_escaped(make_run, runs: Path) -> None:
    for method in ("a_b&c%d#{}", "dc"):
        for held_out in ("photo", "art_&_co"):
            for seed in (0, 1):
                make_run(method, held_out, seed, 0.3 + 0.1 * seed + 0.2 * (method == "dc"))
    text = latex_table(collect([runs]))
    assert re.findall(r"\\begin\{(\w+)\}", text) == ["table", "tabular"] * 5
    assert re.findall(r"\\end\{(\w+)\}", text) == ["tabular", "table"] * 5
    bare = re.sub(r"\\.", "", text.split("\n", 2)[2])
    assert bare.count("{") == bare.count("}")
    assert not set("%#_") & set(bare)
    assert "\\textbf{art\\_\\&\\_co}" in text
    assert "\\cmidrule(lr){5-7}" in text
    assert "\\textbf{55.0{\\scriptsize\\,$\\pm$\\,7.1}}" in text
    assert "\\underline{35.0" in text
    assert "H oracle \\%" in text
    for block in re.findall(r"\\begin\{tabular\}\{(lc*r*)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        for line in block[1].splitlines():
            if re.match(r"\\textbf\{Method|a\\_b|dc", line):  # every row fills every column
                assert len(re.findall(r"(?<!\\)&", line)) == len(block[0]) - 1


def test_latex_and_markdown_text() -> None:
    assert latex_text("a\\b~^<%") == "a\\textbackslash{}b\\textasciitilde{}\\textasciicircum{}\\textless{}\\%"
    assert markdown_text("<b>|*x*\n[y]") == "&lt;b&gt;\\|\\*x\\* \\[y\\]"


def test_terminal_rows(grid: Collection, make_run, runs: Path) -> None:
    header, rows = terminal_rows(grid)
    assert header == ["Method", "Held out", "Acc-U %", "Acc %", "H oracle %", "Seeds"]
    assert rows[0] == ["agg", "photo", "42.0 ± 2.8", "50.0 ± 0.0", "40.0 ± 0.0", "2"]
    assert [r[:2] for r in rows[3:6]] == [["dc", "photo"], ["dc", "sketch"], ["dc", "Average"]]
    # 50 of each of eight classes, of which no run has an open one: H has no images of it
    assert rows[6:] == [
        ["Test images", "photo", "400", "1,200", "", ""],
        ["Test images", "sketch", "400", "1,200", "", ""],
        ["Test images", "Average", "800", "1,200", "", ""],
    ]
    assert rows[2][:3] == ["agg", "Average", "31.5 ± 2.1"]
    make_run("agg", dataset="other")
    header, rows = terminal_rows(collect([runs]))
    assert header[0] == "Dataset"
    assert {r[0] for r in rows} == {"toy", "other"}
