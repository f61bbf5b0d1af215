"""`ltds methods`: the list, one method explained, the paper's tables, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from typing import Annotated, Literal, get_type_hints

import pytest
from pydantic import Field
from typer.testing import CliRunner

from ltds.cli.explanation import explanations, literal, setting_lines
from ltds.cli.main import app
from ltds.core.config import Settings
from ltds.core.errors import ConfigError
from ltds.engine.config import RunConfig
from ltds.methods.entry import GROUPS, OUTSIDE
from ltds.methods.registry import METHODS, find_method
from ltds.reporting.paper.tables import RESULTS, rows


def said(*words: str) -> str:
    done = CliRunner().invoke(app, ["methods", *words], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_list_has_every_method_under_its_group() -> None:
    lines = said().splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert heads[:-1] == list(GROUPS)
    group, listed = "", {}
    for line in lines:
        if line.startswith("  "):
            name, _, summary = line.strip().partition(" ")
            listed[name] = (group, summary.strip())
        else:
            group = line
    assert listed == {name: (entry.group, entry.summary) for name, entry in METHODS.items()}


def test_a_method_from_outside_the_package_is_listed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "mine", find_method("ltds.methods.agg:Agg"))
    assert f"{OUTSIDE}\n  mine " in said()
    assert "Cost" not in said("mine")


def test_bsce_explained() -> None:
    lines = said("bsce").splitlines()
    assert lines[0] == f"bsce: {METHODS['bsce'].summary}"
    assert "Class      Agg in ltds.methods.agg" in "\n".join(lines)
    assert "From       Ren et al., Balanced Meta-Softmax for Long-Tailed Visual Recognition, NeurIPS 2020" in lines
    assert "Page       docs/methods/agg.md" in lines
    cost = next(line for line in lines if line.startswith("Cost"))
    assert cost.endswith("1 network; a step takes K batches of one domain through a backbone, for K source domains.")
    paper = [line for line in lines if line.startswith("Paper")]
    assert paper[0].endswith("BSCE: on average Acc-U 30.32  Acc 35.82  H 40.48")
    assert [line.split()[2] for line in paper] == ["2,", "3,"]
    criterion = next(line for line in lines if line.startswith("method.criterion.name")).split()
    assert criterion[2:4] == ["ce", "bsce"]  # the default, and the value of bsce
    assert lines[-1].endswith("ltds train DATA --method bsce")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_explained(name: str) -> None:
    text = said(name)
    assert all(citation[:40] in text for citation in METHODS[name].citations)
    original = name.removesuffix("-scratch")
    printed = {(n.table, n.label) for table in RESULTS for n in rows(table) if n.preset == original}
    assert text.count("\nPaper ") == len(printed)


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_of_a_method_has_a_meaning(name: str) -> None:
    config = METHODS[name].method.Config()
    assert [line.name for line in setting_lines(config, config) if not line.description] == []


def test_every_setting_of_a_run_has_a_meaning() -> None:
    groups = {name: kind for name, kind in get_type_hints(RunConfig).items() if hasattr(kind, "model_fields")}
    lines = [
        line
        for name, kind in groups.items()
        if name != "method"
        for line in setting_lines(kind.model_construct(root=""), kind.model_construct(root=""), f"{name}.")
    ]
    assert len(lines) > 20
    assert [line.name for line in lines if not line.description] == []


def test_costs_are_formulas() -> None:
    assert "K networks; a step takes 2 K² batches" in said("daml")
    assert "K + 1 networks; a step takes 2 K + 1 batches" in said("epi-fcr")


def test_a_class_of_ones_own() -> None:
    text = said("ltds.methods.agg:Agg")
    assert "Agg in ltds.methods.agg" in text
    assert "From" not in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ltsd"], "Did you mean 'ltds'"),
        (["--paper", "S6"], r"table of the paper, but got 'S6'\. Did you mean 'S"),
        (["--paper", "bsce"], r"Choices: 1, 2, 3, 4, S1"),
        (["bsce", "--format", "json"], r"Add --paper\."),
        (["--paper", "--format", "csv"], r"ltds methods --paper 2 --format csv"),
    ],
)
def test_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        said(*words)


def test_the_papers_tables() -> None:
    text = said("--paper")
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("Table")] == [
        f"Table {number}" for number in ("1", "2", "3", "4", "S1", "S2", "S3", "S4", "S5")
    ]
    line = next(line for line in said("--paper", "2").splitlines() if " Ours " in line)
    assert line.split()[2:5] == ["49.4", "42.1", "45.8"]
    assert line.split()[-3:] == ["35.82", "41.96", "44.60"]


def test_the_papers_tables_in_other_formats() -> None:
    assert len(json.loads(said("--paper", "2", "--format", "json"))) == 195
    assert len(list(csv.DictReader(io.StringIO(said("--paper", "3", "--format", "csv"))))) == 150
    assert said("--paper", "--format", "markdown").count("\n### Table ") == 8  # the first opens the text


class Inner(Settings):
    """What is inside."""

    share: Annotated[float, Field(gt=0, le=1, description="of the whole")] = 1 / 3


class Outer(Settings):
    """What there is
    to set."""

    inner: Inner = Inner()
    mode: Literal["a", "b"] = "a"
    on: bool = True
    sizes: tuple[int, ...] = (1, 2)
    limit: int | None = None


class Undescribed(Outer):
    extra: str = ""


def test_settings_in_words() -> None:
    lines = list(setting_lines(Outer(), Outer(inner=Inner(share=0.5), on=False), "method."))
    assert [(line.name, line.kind, line.default, line.here) for line in lines] == [
        ("method.inner.share", "number > 0 ≤ 1", "0.3333", "0.5"),
        ("method.mode", "a | b", "a", ""),
        ("method.on", "true | false", "true", "false"),
        ("method.sizes", "[integer, …]", "[1, 2]", ""),
        ("method.limit", "integer | none", "None", ""),
    ]
    assert lines[0].description == "of the whole"
    assert list(explanations(Outer())) == [("", "What there is to set."), ("inner", "What is inside.")]
    assert list(explanations(Undescribed())) == [("inner", "What is inside.")]  # never the base class's words
    assert literal({"a": (1e-5, True)}) == "{a = [1e-05, true]}"
