"""Whoever reads a report learns which runs are left out, repeated or unlike: in the file, or from the call."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import ltds
from ltds.core.errors import LtdsWarning
from ltds.reporting.collection import Collection, collect
from ltds.reporting.formats.csv_table import csv_table
from ltds.reporting.formats.latex import latex_table
from ltds.reporting.formats.markdown import markdown_table, markdown_text


@pytest.fixture
def doubtful(make_run, runs: Path) -> Collection:
    """An unfinished run, a repeated one, and one with other settings."""
    for seed in (0, 1):
        make_run("agg", seed=seed)
        make_run("dc", seed=seed)
    (runs / "toy-dc-photo-1" / "DONE").unlink()
    make_run("agg", seed=0, acc_u=0.9, folder="zz-again")
    make_run("dc", seed=2, config={"optimizer": {"lr": 0.3}})
    found = collect([runs])
    assert len(found.problems) > 1
    return found


def test_markdown_lists_the_problems_at_the_end(doubtful: Collection) -> None:
    expected = "\n".join(f"- {markdown_text(problem)}" for problem in doubtful.problems)
    assert markdown_table(doubtful).endswith(f"\n\n## Problems\n\n{expected}\n")


def test_latex_has_the_problems_as_comments_of_one_line(doubtful: Collection) -> None:
    torn = replace(doubtful, problems=(*doubtful.problems, "50 %\n\\input{x}\rend"))
    _, _, *lines = latex_table(torn).splitlines()
    comments = [f"% Problem: {problem}" for problem in (*doubtful.problems, "50 % \\input{x} end")]
    assert lines[: len(comments)] == comments
    assert lines[len(comments)].startswith("\\begin{table}")


def test_csv_stays_a_table(doubtful: Collection) -> None:
    clean = replace(doubtful, problems=())
    assert csv_table(doubtful) == csv_table(clean)


def test_without_problems_nothing_is_said(grid: Collection, runs: Path, tmp_path: Path) -> None:
    assert "Problem" not in markdown_table(grid) + latex_table(grid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ltds.report(runs, out=tmp_path / "table.csv")


def test_the_call_warns_of_the_first_problems(doubtful: Collection, runs: Path, tmp_path: Path) -> None:
    for name in ("late", "later", "last"):
        (runs / name).mkdir()
        (runs / name / "task.json").write_text("{}")
    problems = collect([runs]).problems
    with pytest.warns(LtdsWarning) as caught:
        ltds.report(runs, out=tmp_path / "table.csv")
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message) == (
        f"Problems of the runs: {' '.join(problems[:3])} And {len(problems) - 3} more: write a page (.html) or a table "
        "(.md) to see them."
    )
