"""The version is written in one place, and whatever repeats it agrees."""

from __future__ import annotations

import re
import tomllib

from repository import ROOT

import ltds


def test_the_version_comes_from_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/ltds/__init__.py"


def test_citation_and_changelog_name_it() -> None:
    version = ltds.__version__.partition(".dev")[0]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest, *_ = re.findall(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert newest == version


def test_the_changelog_is_sorted_into_its_parts() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    parts = re.findall(r"(?m)^### (.*)$", text.partition("\n## ")[2].partition("\n## ")[0])
    assert parts == ["Added", "Changed", "Fixed", "Numerics"]
