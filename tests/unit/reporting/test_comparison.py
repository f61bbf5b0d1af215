"""Comparisons with a reference: values by hand, families of tests, the paper's numbers, in every format."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path

import pytest

from ltds.core.errors import ConfigError
from ltds.reporting.answer import answer
from ltds.reporting.collection import Collection, collect
from ltds.reporting.comparison import check_reference, comparisons, reference_of
from ltds.reporting.comparison_table import comparison_table, interval, p_equals
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.critical_difference import critical_difference_figure, draw
from ltds.reporting.formats.csv_table import csv_table
from ltds.reporting.formats.html.page import render_page
from ltds.reporting.formats.json_record import json_text, report_record
from ltds.reporting.formats.latex import latex_table
from ltds.reporting.formats.markdown import markdown_table
from ltds.reporting.glossary import METRICS
from ltds.reporting.paired_runs import all_pairs
from ltds.reporting.paper.matching import paper_table, printed_value
from ltds.reporting.paper.tables import preset_averages
from ltds.reporting.ranking import ranking
from ltds.reporting.result_table import AVERAGE, MISSING, Column

ACC_U = METRICS["acc_u"]
HELD_OUT = ("photo", "sketch", "art_&_co")


@pytest.fixture
def three(make_run, runs: Path) -> Collection:
    """dc is 10, 11, 12 points above agg by seed; bsce level with agg in one seed of three; 9 pairs each."""
    for held_out, seed in itertools.product(HELD_OUT, range(3)):
        make_run("agg", held_out, seed, 0.40 + 0.01 * seed)
        make_run("dc", held_out, seed, 0.50 + 0.02 * seed)
        make_run("bsce", held_out, seed, 0.40 + 0.01 * seed + (0.01, -0.01, 0.0)[seed])
    return collect([runs])


def test_differences_tests_and_ranks_by_hand(three: Collection) -> None:
    table = comparisons(three.datasets[0])[0]
    assert (table.reference, table.group, table.metric.key) == ("agg", AVERAGE, "acc_u")
    rows = {row.label: row for row in table.rows}
    assert rows["agg"].difference is None
    dc = rows["dc"].difference
    assert dc is not None
    assert dc.paired.mean == pytest.approx(11)
    assert (dc.paired.wins, dc.paired.pairs, dc.seeds) == (9, 9, 3)
    assert dc.paired.p == pytest.approx(2 / 512)
    assert dc.p == pytest.approx(4 / 512)  # two methods against the reference
    assert dc.verdict == "better"
    bsce = rows["bsce"].difference
    assert bsce is not None
    assert (bsce.paired.wins, bsce.paired.ties, bsce.paired.losses) == (3, 3, 3)
    assert (bsce.p, bsce.verdict) == (1.0, "no difference shown")
    ranks = {row.label: row.rank for row in table.rows}
    assert ranks == pytest.approx({"agg": (3 + 2 + 2.5) / 3, "bsce": (2 + 3 + 2.5) / 3, "dc": 1})
    assert all_pairs(three.datasets[0], ACC_U)[frozenset(("agg", "dc"))] == pytest.approx(6 / 512)


def test_another_reference_turns_the_sign(three: Collection) -> None:
    (dataset,) = three.datasets
    rows = {row.label: row for row in comparisons(dataset, "dc")[0].rows}
    assert rows["agg"].difference is not None
    assert rows["agg"].difference.paired.mean == pytest.approx(-11)
    assert rows["agg"].difference.verdict == "worse"
    assert reference_of(dataset, "nothing") == "agg"
    check_reference(three.datasets, "dc")
    check_reference(three.datasets, None)
    with pytest.raises(ConfigError, match=r"Expected the reference to be a method of these runs, but got 'bsc'.*bsce"):
        check_reference(three.datasets, "bsc")


def test_the_reference_without_agg_is_the_first_and_a_variant_answers_to_its_method(make_run, runs: Path) -> None:
    make_run("dc", seed=0)
    make_run("dc", seed=1, config={"optimizer": {"lr": 0.01}})
    (dataset,) = collect([runs]).datasets
    assert reference_of(dataset) == "dc (optimizer.lr=0.1)"
    make_run("agg", seed=0)
    (dataset,) = collect([runs]).datasets
    assert reference_of(dataset) == "agg"
    assert reference_of(dataset, "dc") == "dc (optimizer.lr=0.1)"


def test_a_lone_method_or_a_lone_pair_is_not_compared(make_run, runs: Path) -> None:
    make_run("agg")
    assert comparisons(collect([runs]).datasets[0]) == ()
    make_run("dc")
    assert comparisons(collect([runs]).datasets[0]) == ()
    assert "against" not in markdown_table(collect([runs]))


def test_one_seed_is_never_called_better(make_run, runs: Path) -> None:
    for held_out in HELD_OUT:
        make_run("agg", held_out, 0, 0.3)
        make_run("dc", held_out, 0, 0.6)
    row = comparisons(collect([runs]).datasets[0])[0].rows[1]
    assert row.difference is not None
    assert row.difference.verdict == "one seed"


def test_rows_with_one_seed_are_no_tests(make_run, runs: Path) -> None:
    """They can never be called better or worse, so they take no verdict from rows that can: p = 2 / 2^6 stays."""
    for held_out, seed in itertools.product(("photo", "sketch"), range(3)):
        make_run("agg", held_out, seed, 0.40 + 0.01 * seed)
        make_run("dc", held_out, seed, 0.50 + 0.02 * seed)
    for method, held_out in itertools.product(("bsce", "crt", "la"), ("photo", "sketch")):
        make_run(method, held_out, 0, 0.3)
    (dataset,) = collect([runs]).datasets
    rows = {row.label: row.difference for row in comparisons(dataset)[0].rows}
    dc, bsce = rows["dc"], rows["bsce"]
    assert dc is not None
    assert (dc.p, dc.verdict) == (pytest.approx(2 / 64), "better")
    assert bsce is not None
    assert (bsce.p, bsce.paired.p, bsce.verdict) == (None, pytest.approx(0.5), "one seed")
    tested = {two: p for two, p in all_pairs(dataset, ACC_U).items() if p is not None}
    assert tested == {frozenset(("agg", "dc")): pytest.approx(2 / 64)}
    found = answer(dataset)
    assert (found.beaten, found.undecided) == (("agg",), ("bsce", "crt", "la"))
    assert found.certainty == (
        "It beats agg in 6 of 6 pairs (difference 11.0 [11.0, 11.0], p = 0.031); one shared seed cannot tell it from "
        "bsce, crt, la."
    )


def test_ranks_take_complete_blocks_only(make_run, runs: Path) -> None:
    for seed in range(2):
        make_run("agg", "photo", seed, 0.3)
        make_run("dc", "photo", seed, 0.6)
    make_run("bsce", "photo", 1, 0.3)
    ranked = ranking(collect([runs]).datasets[0], ACC_U)
    assert ranked is not None
    assert ranked.blocks == 1
    assert ranked.mean_ranks == {"agg": 2.5, "bsce": 2.5, "dc": 1.0}
    make_run("crt", "sketch", 0, 0.3)  # shares no block with the others
    assert ranking(collect([runs]).datasets[0], ACC_U) is None


def test_the_comparison_table_in_words(three: Collection) -> None:
    found = comparison_table(comparisons(three.datasets[0])[0])
    assert found.title == "toy: Acc-U against agg (Average)"
    assert found.headings == ("Acc-U %", "Difference", "p (Holm)", "Verdict", "Won / tied / lost", "Mean rank")
    rows = dict(found.rows)
    assert rows["agg"] == ("41.0 [38.5, 43.5]", "reference", MISSING, MISSING, MISSING, "2.50")
    assert rows["dc"][1].startswith("+11.0 [+11.0, ")
    assert rows["dc"][2:] == ("0.008", "better", "9 / 0 / 0", "1.00")
    assert found.legend[0] == "[low, high] next to a mean: 95 % interval over seeds (Student's t)."


def test_every_format_has_the_comparison(three: Collection) -> None:
    markdown = markdown_table(three)
    assert "## toy: Acc-U against agg \\(Average\\)" in markdown
    assert "| 0.008 | better | 9 / 0 / 0 | 1.00 |" in markdown
    latex = latex_table(three)
    assert "$+$11.0 [$+$1" in latex
    lines = {(r["method"], r["held_out"], r["metric"]): r for r in csv.DictReader(io.StringIO(csv_table(three)))}
    dc = lines["dc", "Average", "acc_u"]
    assert (dc["reference"], dc["p_holm"], dc["won"], dc["mean_rank"]) == ("agg", "0.0078125", "9", "1")
    assert (dc["low_percent"], dc["high_percent"]) == ("47.0317", "56.9683")
    assert lines["dc", "photo", "acc_u"]["reference"] == ""
    page = render_page(three, "bsce")
    assert "toy: Acc-U against bsce (Average)" in page
    assert "Mean ranks in Acc-U" in page
    assert '<span class="spoken"> interval </span>[47.0, 57.0]' in page


def test_the_record_names_the_runs_behind_each_number(three: Collection) -> None:
    read = json.loads(json_text(three))
    assert read == json.loads(json.dumps(report_record(three)))
    assert read["commits"] == ["abc"]
    (dataset,) = read["datasets"]
    cells = {(c["method"], c["held_out"], c["metric"]): c for c in dataset["cells"]}
    average = cells["dc", "Average", "acc_u"]
    low = pytest.approx(52 - 4.302653 * 2 / 3**0.5)
    assert (average["mean"], average["seeds"], average["low"]) == (pytest.approx(52), 3, low)
    assert len(average["runs"]) == 9
    photo = cells["dc", "photo", "acc_u"]["runs"]
    assert [read["runs"][path]["seed"] for path in photo] == [0, 1, 2]
    assert {read["runs"][path]["held_out"] for path in photo} == {"photo"}
    undefined = cells["dc", "photo", "unseen_pairs"]
    assert (undefined["mean"], undefined["seeds"], undefined["runs"]) == (None, 0, [])
    assert dataset["comparisons"][0]["methods"]["dc"]["p_holm"] == pytest.approx(4 / 512)
    assert dataset["comparisons"][0]["ranking"]["blocks"] == 9
    assert dataset["answer"]["leader"] == "dc"


def test_a_record_of_an_average_leaves_incomplete_seeds_out(make_run, runs: Path) -> None:
    make_run("agg", "photo", 0, 0.4)
    make_run("agg", "photo", 1, 0.9)
    kept = make_run("agg", "sketch", 0, 0.2)
    (dataset,) = report_record(collect([runs]))["datasets"]
    cell = next(c for c in dataset["cells"] if (c["held_out"], c["metric"]) == ("Average", "acc_u"))
    assert len(cell["runs"]) == 2
    assert str(kept) in cell["runs"]


def test_printed_numbers_only_on_the_papers_datasets(make_run, runs: Path) -> None:
    """The toy's domains are not the paper's: no printed number is set beside them, whatever the dataset is called."""
    make_run("agg", dataset="AWA2-LTS")
    (dataset,) = collect([runs]).datasets
    assert (paper_table("AWA2-LTS"), paper_table("awa2_lts"), paper_table("bestiary")) == ("2", "2", None)
    assert (paper_table("pacs-odg-cps-a"), paper_table("awa2-lts-500-20")) == ("S5", None)
    assert printed_value(dataset, "agg", Column("photo", ACC_U)) is None
    assert printed_value(dataset, "agg", Column(AVERAGE, ACC_U)) is None


def test_printed_numbers_stand_beside_ours(make_run, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ltds.reporting.paper import matching
    from ltds.reporting.paper.tables import PublishedNumber

    def number(held_out: str, value: float) -> PublishedNumber:
        return PublishedNumber("2", "AWA2-LTS", "", "Agg", "", "agg", held_out, "Acc-U", value)

    printed = (number("Photo", 29.4), number("Sketch", 20.4))
    monkeypatch.setattr(matching, "rows", lambda table: printed)
    for method, held_out, seed in itertools.product(("agg", "dc"), ("photo", "sketch"), range(2)):
        make_run(method, held_out, seed, 0.3, dataset="awa2-lts")
    (dataset,) = collect([runs]).datasets
    assert printed_value(dataset, "agg", Column("photo", ACC_U)) == 29.4
    assert printed_value(dataset, "dc", Column("photo", ACC_U)) is None
    average = preset_averages("2", "Acc-U")["agg"]
    assert printed_value(dataset, "agg", Column(AVERAGE, ACC_U)) == average
    found = comparison_table(comparisons(dataset)[0])
    assert found.headings[-2:] == ("Paper", "Ours minus paper")
    assert dict(found.rows)["agg"][-2:] == (f"{average:.1f}", f"{30 - average:+.1f}")
    assert dict(found.rows)["dc"][-2:] == (MISSING, MISSING)


@pytest.mark.parametrize("table", ["2", "3", "S5"])
def test_every_results_table_has_averages_by_preset(table: str) -> None:
    assert "agg" in preset_averages(table, "Acc-U")


def test_the_critical_difference_figure_shows_ranks_gap_and_bars() -> None:
    figure = critical_difference_figure([2.5, 1.0, 2.5, 4.0], ["$a$", "_b", "c", "d"], 1.6, [(1.0, 2.5), (2.5, 4.0)])
    (axes,) = figure.axes
    shown = [text.get_text() for text in axes.texts]
    assert {"_b  1.00", "$a$  2.50", "4.00  d", "2.50  c", "critical difference 1.60"} <= set(shown)
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == 4]
    assert [list(bar) for bar in bars] == [[1.0, 2.5], [2.5, 4.0]]


def test_a_small_p_is_below_and_never_equal(make_run, runs: Path) -> None:
    """Ten seeds, always in one order: Friedman's chi-squared is 20 with 2 degrees of freedom."""
    assert [p_equals(p) for p in (0.0004, 0.0314, None)] == ["p < 0.001", "p = 0.031", f"p = {MISSING}"]
    for seed, (method, acc_u) in itertools.product(range(10), (("agg", 0.3), ("dc", 0.4), ("bsce", 0.5))):
        make_run(method, seed=seed, acc_u=acc_u)
    (drawing,) = draw(FigureContext(collect([runs]).datasets[0]))
    assert "; Friedman test: p < 0.001. Methods" in drawing.caption


def test_no_number_is_written_as_minus_zero() -> None:
    assert interval(-0.04, 0.04, "+") == " [+0.0, +0.0]"
    assert interval(-0.06, 0.04) == " [-0.1, 0.0]"
