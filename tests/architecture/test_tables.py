"""Tables of results in README.md and docs/ are those that `make tables` writes from results/*.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from repository import benchmark_module

TABLES = benchmark_module("tables")
WITH_TABLES = [page for page in TABLES.pages() if TABLES.BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WITH_TABLES, ids=lambda page: page.name)
def test_tables_are_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == TABLES.written(page), "stale tables: run `make tables`"


def test_the_first_page_and_the_pages_on_datasets_have_generated_tables() -> None:
    assert {"README.md", "bestiary-results.md", "pacs.md", "results.md"} <= {page.name for page in WITH_TABLES}


def test_a_table_by_hand() -> None:
    """Two methods, two domains, two seeds: averages, spread over seeds, and the paired difference."""
    numbers = {("a", "x"): (0.5, 0.6), ("a", "y"): (0.7, 0.8), ("b", "x"): (0.4, 0.4), ("b", "y"): (0.6, 0.8)}
    runs = [
        {
            "row": row,
            "data": "d",
            "held_out": domain,
            "seed": seed,
            "commit": "1234567890",
            "known_images": 100,
            "open_images": 4,
            "summary": {"acc_u": value, "acc": None},
        }
        for (row, domain), values in numbers.items()
        for seed, value in enumerate(values)
    ]
    text = TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u,acc", "against": "a"})
    lines = text.splitlines()
    assert lines[0] == "| method | Acc-U | Acc | seeds | Acc-U: `a` minus this (95 %) |"
    assert lines[2] == "| `a` | **65.0 ± 7.1** | - | 2 |  |", "averages of the seeds: 60 and 70"
    assert lines[3].startswith("| `b` | 55.0 ± 7.1 | - | 2 | +10.0 (")
    assert lines[5].startswith(
        "8 runs; 2 held-out domains with 100 images of known and 4 of open classes; commit 1234567;"
    )
    unfinished = [run for run in runs if (run["row"], run["held_out"]) != ("b", "x")]
    assert "| `a` | **75.0 ± 7.1** |" in TABLES.table(TABLES.Study("s", unfinished), {"columns": "acc_u"}), "y alone"
    by_domain = TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u", "by": "held_out", "rows": "b"}).splitlines()
    assert by_domain[0] == "| method | x: Acc-U | y | average |"
    assert by_domain[2] == "| `b` | 40.0 | 70.0 | 55.0 |"
    short = TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u", "short": "yes"}).splitlines()
    assert short[0] == "| method | Acc-U |"
    assert short[2:] == [
        "| `a` | **65.0 ± 7.1** |",
        "| `b` | 55.0 ± 7.1 |",
        "",
        "Averages of 8 runs with 2 seeds; ± over seeds ([every run](RESULTS/s.json)).",
    ]


def test_a_table_of_pairs_by_hand() -> None:
    """b minus a: 19.9 and 0 in x, -10 in y, so their mean would be printed as -0.0; z, which c lacks, takes no part."""
    numbers = {
        ("a", "x"): [0.4, 0.6], ("a", "y"): [0.5, 0.3], ("a", "z"): [0.9, 0.9],
        ("b", "x"): [0.599, 0.6], ("b", "y"): [0.4, 0.2], ("b", "z"): [0.1, 0.1],
        ("c", "x"): [0.499], ("c", "y"): [0.5],
    }  # fmt: skip
    shared = {"data": "d", "commit": "1", "known_images": 9, "open_images": 0}
    runs = [
        {**shared, "row": row, "held_out": domain, "seed": seed, "summary": {"acc_u": value, "few": None}}
        for (row, domain), values in numbers.items()
        for seed, value in enumerate(values)
    ]
    lines = TABLES.pair_table(TABLES.Study("s", runs), {"columns": "acc_u,few", "pairs": "b:a,c:b"}).splitlines()
    assert lines[0] == "| | Acc-U | Few |"
    assert lines[2] == "| `b` minus `a` | +0.0 (1/4) | - |"
    assert lines[3] == "| `c` minus `b` | +0.0 (1/2) | - |", "-10 and +10, of seed 0"
    assert lines[5].endswith("and in how many the first is ahead ([every run](RESULTS/s.json)).")


def test_two_files_are_one_study_and_rows_get_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    files = {"whole": ({"agg": [0.5], "bsce": [0.6]}, 0.9), "parts": ({"ltds-c": [0.7]}, 0.8)}
    for name, (numbers, validation) in files.items():
        record = {"runs": runs_of(numbers, validation={"accuracy": validation})}
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(sys.modules["studies"], "ROOT", tmp_path)
    page = tmp_path / "page.md"
    rows = "names=ltds-a:agg rows=ltds-a,ltds-c"
    block = f"<!-- table: whole+parts {rows} columns=acc_u,validation -->\n<!-- end of table -->"
    page.write_text(block, encoding="utf-8")
    lines = TABLES.written(page).splitlines()
    assert lines[1] == "| method | Acc-U | validation, seen pairs | seeds |"
    assert lines[3:5] == ["| `ltds-a` | 50.0 | **90.0** | 1 |", "| `ltds-c` | **70.0** | 80.0 | 1 |"]
    assert "/results/whole.json), [parts](" in lines[6]
    assert "/results/parts.json)." in lines[6]
    with pytest.raises(ValueError, match=r"several runs of \('agg', 'd', 'x', 0\)"):
        TABLES.Study.read("whole+whole")
    with pytest.raises(ValueError, match="several runs of"):
        TABLES.Study.read("whole", {"bsce": "agg"})
    with pytest.raises(ValueError, match="has no row 'agh'"):
        TABLES.Study.read("whole").only(["agg", "agh"])
    apart = [*runs_of({"a": [0.5]}), *runs_of({"b": [0.5]}, held_out="y")]
    with pytest.raises(ValueError, match="no held-out domain that all of a, b have"):
        TABLES.Study("s", apart).only(["a", "b"])


def test_pairs_are_shown_beside_the_papers_difference() -> None:
    paper = TABLES.preset_averages("2", "Acc-U")
    options = {"columns": "acc_u", "pairs": "bsce:agg,dc:agg", "paper": "2"}
    runs = runs_of({"agg": [0.5], "bsce": [0.6], "dc": [0.7]})
    lines = TABLES.pair_table(TABLES.Study("s", runs), options).splitlines()
    assert lines[0] == "| | Acc-U | paper: Acc-U |"
    assert lines[2] == f"| `bsce` minus `agg` | +10.0 (1/1) | {paper['bsce'] - paper['agg']:+.1f} |"
    assert lines[3] == "| `dc` minus `agg` | +20.0 (1/1) | - |"


def test_an_average_never_rests_on_fewer_domains_than_the_row_has() -> None:
    """Neither where seeds have different domains, nor where a number is not defined in all of them."""

    def run(row: str, domain: str, seed: int, value: float, few: float | None = None) -> dict[str, object]:
        shared = {"data": "d", "commit": "1", "known_images": 9, "open_images": 0}
        return {**shared, "row": row, "held_out": domain, "seed": seed, "summary": {"acc_u": value, "few": few}}

    scattered = [run("dc", "x", 0, 0.8), run("dc", "y", 1, 0.2)]
    whole = [run("agg", "x", 0, 0.8, 0.9), run("agg", "y", 0, 0.2)]
    lines = TABLES.table(TABLES.Study("s", [*scattered, *whole]), {"columns": "acc_u,few"}).splitlines()
    assert lines[2] == "| `agg` | **50.0** | - | 1 |"
    assert lines[3] == "| `dc` | - | - | 0 |"
    options = {"columns": "acc_u", "by": "held_out", "rows": "dc"}
    assert TABLES.table(TABLES.Study("s", scattered), options).splitlines()[2] == "| `dc` | 80.0 | 20.0 |  |"
    more = [run("dc", "x", 0, 0.8), run("dc", "z", 0, 0.99), run("agg", "x", 0, 0.9)]
    assert TABLES.table(TABLES.Study("s", more), {"columns": "acc_u"}).splitlines()[2] == "| `agg` | **90.0** | 1 |"


def test_a_row_rests_on_the_seeds_that_have_every_domain() -> None:
    """A seed without all domains is in no number of its row; one seed has no interval."""
    shared = {"data": "d", "commit": "1", "known_images": 9, "open_images": 0}
    numbers = {("a", "x"): [0.5, 0.5], ("a", "y"): [0.7, 0.7], ("b", "x"): [0.4, 0.9], ("b", "y"): [0.6]}
    runs = [
        {**shared, "row": row, "held_out": domain, "seed": seed, "summary": {"acc_u": value}}
        for (row, domain), values in numbers.items()
        for seed, value in enumerate(values)
    ]
    lines = TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u", "against": "a"}).splitlines()
    assert lines[3] == "| `b` | 50.0 | 1 | +10.0 |"
    assert lines[5].startswith("6 runs;")
    assert "[statistics](DOCS/statistics.md)" in lines[5]
    by_domain = TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u", "by": "held_out"}).splitlines()
    assert by_domain[3] == "| `b` | 40.0 | 60.0 | 50.0 |"


def test_numbers_by_an_earlier_rule_are_not_mixed_with_later_ones() -> None:
    shared = {"data": "d", "held_out": "x", "commit": "1", "known_images": 9, "open_images": 1}
    numbers = [("a", 0, None, 0.9), ("a", 1, 5, 0.5), ("b", 0, None, 0.4), ("c", 0, 5, 0.3), ("c", 1, 5, 0.4)]
    runs = [
        {**shared, "row": row, "seed": seed, "metrics_version": version, "summary": {"acc_u": value, "h_fixed": value}}
        for row, seed, version, value in numbers
    ]
    lines = TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u,h_fixed"}).splitlines()
    assert lines[2] == "| `a` | **70.0 ± 28.3** | 50.0 | 2 |", "accuracy of both seeds, H of the second"
    assert lines[3] == "| `b` | 40.0 | 40.0 | 1 |"
    assert lines[4] == "| `c` | 35.0 ± 7.1 | **35.0 ± 7.1** | 2 |"
    assert lines[6].endswith(
        "H fixed on validation: by the rule before it had a smallest threshold: `b`; fewer seeds, because the rule has "
        "changed: `a` 1."
    )


def test_values_that_are_printed_alike_are_all_best() -> None:
    shared = {"data": "d", "held_out": "x", "seed": 0, "commit": "1", "known_images": 9, "open_images": 0}
    runs = [{**shared, "row": row, "summary": {"acc_u": value}} for row, value in (("a", 0.50012), ("b", 0.50008))]
    assert TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u"}).count("**50.0**") == 2


def runs_of(numbers: dict[str, list[float]], **facts: object) -> list[dict[str, object]]:
    """Runs of one held-out domain: for each row its Acc-U and H by seed."""
    shared = {"data": "d", "held_out": "x", "commit": "1", "known_images": 9, "open_images": 0, **facts}
    return [
        {**shared, "row": row, "seed": seed, "summary": {"acc_u": value, "h_fixed": value}}
        for row, values in numbers.items()
        for seed, value in enumerate(values)
    ]


def bold(runs: list[dict[str, object]], column: str = "acc_u") -> list[str]:
    lines = TABLES.table(TABLES.Study("s", runs), {"columns": column}).splitlines()
    return [line.split("`")[1] for line in lines if "**" in line]


def test_bold_is_the_highest_mean_of_two_or_more_seeds() -> None:
    """Three seeds that are lower are no better than two; one seed may be chance, unless nothing else is there."""
    assert bold(runs_of({"three": [0.5, 0.5, 0.5], "two": [0.6, 0.6], "one": [0.7]})) == ["two"]
    assert bold(runs_of({"two": [0.5, 0.5], "one": [0.7]})) == ["two"]
    assert bold(runs_of({"one": [0.7], "other": [0.6]})) == ["one"]


def test_bold_is_never_a_number_by_an_earlier_rule() -> None:
    earlier = runs_of({"a": [0.9, 0.9], "b": [0.8]})
    latest = runs_of({"c": [0.6, 0.6], "d": [0.5, 0.5]}, metrics_version=5)
    assert bold([*earlier, *latest], "h_fixed") == ["c"]
    assert bold([*earlier, *latest]) == ["a"], "Acc-U has had one rule"
    assert bold([*earlier[2:], *runs_of({"c": [0.6]}, metrics_version=5)], "h_fixed") == ["c"]
    assert bold(earlier, "h_fixed") == ["a"], "all by the same rule"


def test_rows_that_know_the_names_of_open_classes_are_marked() -> None:
    """As the record says; for an older record, as the method's settings say."""
    run = {"data": "d", "held_out": "x", "seed": 0, "commit": "1", "known_images": 9, "summary": {"acc_u": 0.5}}
    rows = ("agg", "ltds", "ltds-hidden-names", "agg-embeddings", "mine")
    older = [{**run, "row": row, "method": row, "open_images": 3} for row in rows]
    said = [{**one, "knows_open_names": one["row"] == "mine"} for one in older]
    without = [{**one, "open_images": 0} for one in older]

    def first(runs: list[dict[str, object]]) -> list[str]:
        text = TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u", "rows": ",".join(rows)})
        assert text.count("§ knows the names of the open classes") == ("` § |" in text)
        return [line.split(" |")[0] for line in text.splitlines()[2:7]]

    plain = ["| `agg`", "| `ltds`", "| `ltds-hidden-names`", "| `agg-embeddings`", "| `mine`"]
    assert first(older) == ["| `agg`", "| `ltds` §", "| `ltds-hidden-names`", "| `agg-embeddings` §", "| `mine`"]
    assert first(said) == [*plain[:4], "| `mine` §"]
    assert first(without) == plain


def test_the_order_is_compared_with_the_papers() -> None:
    """Seven methods in the paper's order, then with two neighbours swapped: 1 - 6 * (1 + 1) / (7 * 48) = .96."""
    paper = TABLES.preset_averages("2", "Acc-U")
    order = sorted(["ltds", "bsce", "crt", "equal", "remix", "agg", "cumix"], key=lambda row: -paper[row])

    def text(rows: list[str]) -> str:
        shared = {"data": "d", "held_out": "x", "seed": 0, "commit": "1", "known_images": 9, "open_images": 0}
        runs = [
            {**shared, "row": "cumix-scratch" if row == "cumix" else row, "summary": {"acc_u": (50 - place) / 100}}
            for place, row in enumerate(rows)
        ]
        return str(TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u", "paper": "2"}))

    sentence = "Rank correlation (Spearman) with the paper's order: Acc-U"
    assert f"{sentence} 1.00 (7 methods)." in text(order)
    assert f"{sentence} 0.96 (7 methods)." in text([order[1], order[0], *order[2:]])
    assert f"{sentence} -1.00 (7 methods)." in text(order[::-1])
    assert sentence not in text(order[:5]), "too few to say anything"
    assert f"| `cumix-scratch` | {50 - order.index('cumix'):.1f} | 1 | {paper['cumix']:.1f} |" in text(order)


def test_the_order_takes_the_form_for_training_from_scratch() -> None:
    """In any order of the rows: the other form of cumix, with 99 %, would stand above all."""
    paper = TABLES.preset_averages("2", "Acc-U")
    rows = {row: [paper[row] / 100] for row in ("ltds", "bsce", "crt", "equal", "remix", "agg")}
    rows |= {"cumix-scratch": [paper["cumix"] / 100], "cumix": [0.99]}
    for names in (list(rows), list(rows)[::-1]):
        options = {"columns": "acc_u", "paper": "2", "rows": ",".join(names)}
        text = TABLES.table(TABLES.Study("s", runs_of(rows)), options)
        assert "with the paper's order: Acc-U 1.00 (7 methods)." in text, names


def test_methods_of_a_dataset_are_averaged_over_the_same_domains() -> None:
    """bsce has no y: with the 90 of agg there, agg would count for more than bsce, and y for less than x."""
    numbers = {("d/agg", "x"): 0.4, ("d/agg", "y"): 0.9, ("d/bsce", "x"): 0.6, ("e/agg", "y"): 0.2}
    shared = {"seed": 0, "commit": "1", "known_images": 9, "open_images": 1}
    runs = [
        {**shared, "row": data[0].upper(), "data": data, "held_out": domain, "summary": {"acc_u": value}}
        for (data, domain), value in numbers.items()
    ]
    lines = TABLES.table(TABLES.Study("s", runs), {"columns": "acc_u", "first": "data"}).splitlines()
    assert lines[2:4] == ["| `D` | 50.0 | 1 |", "| `E` | 20.0 | 1 |"]
    assert lines[5].startswith("3 runs; 2 held-out domains")
