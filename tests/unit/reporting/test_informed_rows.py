"""Rows of methods that know the names of the open classes are marked in every format, and no others."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from conftest import MakeRun
from ltds.core.runs import RunDirectory
from ltds.reporting.collection import Collection, collect
from ltds.reporting.formats.csv_table import csv_table
from ltds.reporting.formats.html.page import render_page
from ltds.reporting.formats.json_record import report_record
from ltds.reporting.formats.latex import latex_table
from ltds.reporting.formats.markdown import markdown_table
from ltds.reporting.formats.terminal import terminal_rows
from ltds.reporting.legend import comparison_tables
from ltds.reporting.open_names import KNOWS_NAMES, about_names

ART = "art_&_co"  # the domain that alone has a class
INFORMED = ["ltds", "agg-embeddings"]


def with_embeddings(path: Path) -> None:
    run = RunDirectory(path)
    run.write_environment({**run.read_environment(), "semantics": "1829b8"})


@pytest.fixture
def collection(make_run: MakeRun, runs: Path) -> Collection:
    make_run("agg", ART)
    with_embeddings(make_run("ltds", ART, config={"method": {"hide_open_names": False}}))
    with_embeddings(make_run("ltds-hidden-names", ART, config={"method": {"hide_open_names": True}}))
    with_embeddings(make_run("agg-embeddings", ART))
    return collect([runs])


def test_every_format_marks_the_same_rows(collection: Collection, tmp_path: Path) -> None:
    (dataset,) = collection.datasets
    assert {label for label, runs in dataset.rows.items() if runs[0].knows_open_names} == set(INFORMED)
    marked = {row[0] for row in terminal_rows(collection)[1]}
    assert marked >= {"agg", "ltds §", "ltds-hidden-names", "agg-embeddings §"}
    rows = list(csv.DictReader(io.StringIO(csv_table(collection))))
    assert {row["method"] for row in rows if row["knows_open_names"] == "yes"} == set(INFORMED)
    assert {row["method"] for row in rows if row["knows_open_names"] == "no"} == {"agg", "ltds-hidden-names"}
    markdown = markdown_table(collection)
    assert "| ltds § |" in markdown
    assert "| ltds-hidden-names |" in markdown
    assert "knows the names of the open classes" in markdown
    latex = latex_table(collection)
    assert "ltds \\S{} &" in latex
    assert "ltds-hidden-names &" in latex
    (said,) = json.loads(json.dumps(report_record(collection)))["datasets"]
    assert sorted(said["knows_open_names"]) == sorted(INFORMED)
    page = render_page(collection)
    assert "<bdi>ltds</bdi> §</th>" in page
    assert "<bdi>ltds-hidden-names</bdi></th>" in page
    assert "knows the names of the open classes" in page


def test_without_such_a_row_nothing_is_said(grid: Collection) -> None:
    assert "§" not in markdown_table(grid)
    assert KNOWS_NAMES not in markdown_table(grid)


def test_our_remedy_is_named_for_our_method_alone(make_run: MakeRun, runs: Path) -> None:
    make_run("agg", ART)
    with_embeddings(make_run("theirs:Method", ART))
    assert "know of these classes." in markdown_table(collect([runs]))
    for label in ("ltds", "ltds-a", "ltds (method.temperature=1)", "`ltds`"):
        assert about_names(["agg-embeddings", label]).endswith("without the names: ltds-hidden-names.")
    for label in ("agg-embeddings", "ltdsx:Method"):
        assert about_names([label]).endswith("know of these classes.")


def test_without_open_classes_there_are_no_names_to_know(make_run: MakeRun, runs: Path) -> None:
    with_embeddings(make_run("ltds", held_out=None))
    (dataset,) = collect([runs]).datasets
    assert not dataset.rows["ltds"][0].knows_open_names


def test_comparisons_are_marked_too(make_run: MakeRun, runs: Path) -> None:
    for seed in (0, 1):
        make_run("agg", ART, seed)
        with_embeddings(make_run("ltds", ART, seed, config={"method": {"hide_open_names": False}}))
    found = collect([runs])
    for table in comparison_tables(found.datasets[0]):
        assert [table.name(label) for label, _ in table.rows] == ["agg", "ltds §"]
        assert about_names(["ltds"]) in table.legend
    markdown, latex = markdown_table(found), latex_table(found)
    assert markdown.count("| ltds § |") == 5  # results, three comparisons, details
    assert markdown.count("knows the names of the open classes") == 1
    assert (latex.count("ltds \\S{} &"), latex.count("knows the names")) == (5, 5)
    page = render_page(found)
    assert page.count("<bdi>ltds</bdi> §</th>") == 6  # and accuracy in each domain
    assert page.count("<bdi>ltds § %</bdi>") == 1  # accuracy of each class
