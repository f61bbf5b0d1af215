"""The page: self-contained, escaped, sortable, and honest about what is missing."""

from __future__ import annotations

import base64
import itertools
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ltds.report.cells import MISSING
from ltds.report.collect import collect
from ltds.report.page import write_page

EVIL = "<script>alert(1)</script>"
VOID = {"meta", "link", "img", "br"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, run_writers) -> Path:
    """The grid, a second dataset with a hostile method name, and an unfinished run."""
    folder = tmp_path_factory.mktemp("page")
    write_run, write_grid = run_writers
    write_grid(folder / "runs")
    write_run(folder / "runs", EVIL, dataset='other "&" <b>')
    (write_run(folder / "runs", "late") / "DONE").unlink()
    out = folder / "out" / "report.html"
    write_page(collect([folder / "runs"]), out)
    return out


class Reader(HTMLParser):
    """Keeps the tags with their attributes, and fails on one that is not closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_it_is_well_formed_and_loads_nothing(page: Path) -> None:
    text = page.read_text()
    reader = Reader(text)
    assert text.startswith("<!DOCTYPE html>")
    assert reader.all("html") == [{"lang": "en"}]
    addresses = [a[name] for _, a in reader.tags for name in ("src", "href", "srcset", "action") if name in a]
    assert addresses
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert not re.search(r"https?://|@import|url\(", text)
    assert len(reader.all("script")) == 1


def test_names_are_escaped_everywhere(page: Path) -> None:
    text = page.read_text()
    assert EVIL not in text
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>" in text
    assert "other &#34;&amp;&#34; &lt;b&gt;" in text
    assert "قطة" in text
    assert "🦊" in text


def test_figures_have_words_and_hold_no_script(page: Path) -> None:
    images = Reader(page.read_text()).all("img")
    assert len(images) >= 8
    for image in images:
        assert image["alt"]
        drawing = base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,")).decode()
        assert "<script" not in drawing
    pairs = [image["alt"] for image in images if "class-domain pairs" in image["alt"]]
    # toy: photo, sketch and art lack 1 + 3 + 2 classes; the other dataset knows sketch and art only
    assert any(alt.startswith("6 of 24 class-domain pairs have no training image") for alt in pairs)
    assert any(alt.startswith("5 of 16") for alt in pairs)


def test_it_says_the_answer_the_problems_and_the_choices(page: Path) -> None:
    text = page.read_text()
    assert "dc is ahead with 37.0 ± 2.1 % Acc-U" in text
    assert text.index("dc is ahead with") < text.index("<table")
    assert "is left out because it is unfinished" in text
    assert "Chosen on the test split (an oracle: it looks at test labels): best of 10 thresholds." in text
    assert "Chosen on the val split: 5th percentile." in text
    assert "ltds train --set method.name=dc" in text
    assert "12,345" in text
    assert "steps_per_epoch = 30" in text


def test_headings_and_cells(page: Path) -> None:
    text = page.read_text()
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert '<td data-value="51.0" class="best">' in text
    assert '<td data-value="42.0" class="second">' in text
    assert f'<td data-value=""><span class="none">{MISSING}' in text
    sortable = [a for a in Reader(text).all("th") if a.get("aria-sort")]
    assert all(a["aria-sort"] == "none" for a in sortable)
    assert {a["data-first"] for a in sortable} == {"ascending", "descending"}


def test_the_same_runs_make_the_same_page(page: Path) -> None:
    before = page.read_bytes()
    write_page(collect([page.parents[1] / "runs"]), page)
    assert page.read_bytes() == before


def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs a browser: none of chromium, chromium-browser, google-chrome is on the PATH")
    return found


def dom(file: Path, tmp_path: Path) -> str:
    """The document after the browser ran its script."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [browser(), *options, "--virtual-time-budget=2000", "--dump-dom", file.resolve().as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_script_runs_in_a_browser(page: Path, tmp_path: Path) -> None:
    text = dom(page, tmp_path)
    root = re.search(r"<html[^>]*>", text)
    assert root is not None
    assert 'data-ready="yes"' in root[0]
    assert "data-error" not in root[0]
    assert "<caption" in text


def test_sorting_in_a_browser(page: Path, tmp_path: Path) -> None:
    """A copy without the policy, which would stop the test's own script, and with clicks on Acc-U and Method."""
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    clicks = """<script>
      const rows = (table) => Array.from(table.tBodies[0].rows, (row) => row.cells[0].textContent).join(",");
      const table = document.querySelector("#dataset-2 table");
      const seen = [];
      for (const column of [1, 1, 0]) {
        const head = table.querySelector(`th[data-column="${column}"]`);
        head.querySelector("button").click();
        seen.push(`${head.getAttribute("aria-sort")}:${rows(table)}`);
      }
      document.documentElement.dataset.sorted = seen.join(" ");
    </script></body>"""
    copy = tmp_path / "copy.html"
    copy.write_text(policy.sub("", page.read_text()).replace("</body>", clicks))
    text = dom(copy, tmp_path)
    assert 'data-sorted="descending:dc,agg ascending:agg,dc ascending:agg,dc"' in text
    assert "data-error" not in text[:3000]
