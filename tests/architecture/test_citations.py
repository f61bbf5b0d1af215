"""What the repository cites exists in the repository: files, pages, anchors."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from repository import MODULES, PAGES, ROOT, find, texts

SCRIPTS = [file for folder in ("examples", "benchmarks", "tests") for file in sorted((ROOT / folder).rglob("*.py"))]
CONFIGS = sorted((ROOT / "configs").rglob("*.toml"))
CITING = [*MODULES, *PAGES, *CONFIGS, *(f for f in SCRIPTS if "architecture" not in f.parts)]
PATH = r"(?<![\w/.-])(?:docs|benchmarks|configs|examples|results|src|tests)/[\w/.-]*\.(?:md|py|toml|json)(?:#[\w-]+)?"
LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ +(.*)$", page.read_text(encoding="utf-8"))
    plain = [re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings]
    return frozenset(plain)


def problem(target: str, folder: Path) -> str:
    """Why a cited path or link, with or without an anchor, leads nowhere; "" where it leads somewhere."""
    name, _, anchor = target.partition("#")
    file = folder / name
    if not file.exists():
        return f"{target}: there is no such file"
    return f"{target}: there is no such heading" if anchor and anchor not in anchors(file) else ""


def test_no_file_is_cited_that_only_the_authors_have() -> None:
    public = [file for file in CITING if "tests" not in file.relative_to(ROOT).parts]
    assert find(r"(?<![\w/])(?:\.\./)?shared/", public) == []
    assert find(r"\bMETHODS(?:\.md| section| of| \d)|\b(?:DESIGN|HOUSE)\b", CITING) == []


@pytest.mark.parametrize("file", CITING, ids=lambda f: str(f.relative_to(ROOT)))
def test_cited_paths_exist(file: Path) -> None:
    cited = [match for _, text in texts(file) for match in re.findall(PATH, text) if "NAME" not in match]
    assert [said for path in cited if (said := problem(path, ROOT))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda f: str(f.relative_to(ROOT)))
def test_links_of_pages_lead_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    inside = [f"{page.name}{link}" if link.startswith("#") else link for link in links]
    assert [said for link in inside if (said := problem(link, page.parent))] == []


def test_anchors_are_githubs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`, three!\n\n## 4. A-b_c\n")
    assert anchors(page) == {"one-two-three", "4-a-b_c"}
    assert problem("page.md#4-a-b_c", tmp_path) == ""
    assert problem("page.md#four", tmp_path) == "page.md#four: there is no such heading"
