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


def test_the_same_python_is_asked_for_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    for name in ("README.md", "docs/quickstart.md", "Makefile"):
        assert set(re.findall(r"Python ([\d.]+) or newer", (ROOT / name).read_text(encoding="utf-8"))) == {oldest}, name
    checked = ", ".join(oldest.split("."))
    assert f"sys.version_info < ({checked})" in (ROOT / "Makefile").read_text(encoding="utf-8")
