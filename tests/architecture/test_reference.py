"""docs/reference is what `make docs-data` writes from the code, and the site knows every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_dialect import for_site
from reference_pages import PAGES, stale
from repository import ROOT, needs_pinned
from setting_pages import unused_origins

from ltds.core.runs import EVALUATIONS_FOLDER, NEAREST_FILE, SEEN_FILE, RunDirectory

DOCS = ROOT / "docs"


@needs_pinned("typer")
def test_reference_pages_are_up_to_date() -> None:
    assert stale() == [], "stale pages: run `make docs-data`"


def test_origins_name_settings_that_exist() -> None:
    assert unused_origins() == [], "correct docs/tools/origins.toml"


@pytest.mark.parametrize("name", PAGES)
def test_pages_of_the_reference_are_not_empty(name: str) -> None:
    assert len((DOCS / "reference" / name).read_text(encoding="utf-8").splitlines()) > 60


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"(?m)[ :]([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.parent != DOCS / "methods"}
    assert pages - named == set(), "add these to the navigation in mkdocs.yml"
    assert named - pages - {"changelog.md", "contributing.md"} == set()


def test_every_file_of_a_run_is_explained() -> None:
    page = (DOCS / "walk.md").read_text(encoding="utf-8")
    listed = re.search(r"(?ms)^## A run directory$.*?^## ", page)
    assert listed is not None
    run = RunDirectory(Path("run"))
    found = [getattr(run, name) for name, what in vars(RunDirectory).items() if isinstance(what, property)]
    files = [file for file in found if isinstance(file, Path)]
    files += [run.predictions_file("val"), run.best_of("PHASE")]
    files += [run.path / name for name in (SEEN_FILE, NEAREST_FILE, EVALUATIONS_FOLDER)]
    assert len(files) > 20
    named = listed.group().replace("`test.npz`", "`predictions/test.npz`")
    assert [file for file in files if f"`{file.relative_to('run').as_posix()}" not in named] == []


@pytest.mark.parametrize("page", sorted((DOCS / "methods").glob("*.md")), ids=lambda page: page.name)
def test_pages_of_methods_start_in_plain_words(page: Path) -> None:
    title, first, *_ = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert first.startswith("**In plain words.** "), "one paragraph for people who did not read the paper"


def test_markdown_of_github_becomes_that_of_the_site() -> None:
    page = "# A\nText:\n- one\n  more\n- two\n\n      ltds demo\n\n| a | b |\n|--:|---|\n| `x | y` | c \\| d |\n1. x\n"
    page = page.replace("`x | y`", "`x \\| y`")
    assert for_site(page).splitlines() == [
        *("# A", "", "Text:", ""),
        *("-   one", "    more", "-   two", "", "    ```text", "    ltds demo", "    ```", "", ""),
        *("| a | b |", "| --: | --- |", "| `x | y` | c \\| d |", ""),
        *("1.  x", ""),
    ]


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_every_page_can_be_converted(page: Path) -> None:
    assert for_site(page.read_text(encoding="utf-8")).startswith("# ")
