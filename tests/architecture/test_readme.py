"""The first page: short, with its two pictures, small enough to load at once, and with a table of results."""

from __future__ import annotations

import re

import pytest
from PIL import Image
from repository import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURES = ("docs/images/bestiary.png", "docs/images/report.png", "docs/images/lead.png")


def test_it_is_short() -> None:
    before, heading, _ = README.partition("\n## Links\n")
    assert heading, "README.md ends with a section 'Links'"
    text = re.sub(r"<!-- table:.*?<!-- end of table -->", "", before, flags=re.DOTALL)
    assert len(text.split()) < 450


@pytest.mark.parametrize("name", PICTURES)
def test_it_shows_the_picture(name: str) -> None:
    assert f"]({name})" in README
    file = ROOT / name
    assert file.stat().st_size < 300_000, "make pictures draws small ones"
    with Image.open(file) as image:
        image.load()
        assert image.width >= 600


def test_results_are_a_short_generated_table() -> None:
    (block,) = re.findall(r"<!-- table: [^>]* -->\n(.*?)<!-- end of table -->", README, re.DOTALL)
    rows = [line for line in block.splitlines() if line.startswith("| `")]
    assert 3 <= len(rows) <= 5


def test_the_python_lines_end_in_a_prediction() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= 10
    assert "predict" in code
    compile(code, "README.md", "exec")
