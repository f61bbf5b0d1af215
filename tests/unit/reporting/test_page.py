"""The page: self-contained, escaped, sortable, and honest about what is missing."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from pathlib import Path

from ltds.reporting.collection import collect
from ltds.reporting.formats.html.page import render_page
from ltds.reporting.formats.html.run_details import run_details
from ltds.reporting.result_table import MISSING

EVIL = "<script>alert(1)</script>"
VOID = {"meta", "link", "img", "br", "input"}


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


def test_it_is_well_formed_and_loads_nothing(report_page: Path) -> None:
    text = report_page.read_text()
    reader = Reader(text)
    assert text.startswith("<!DOCTYPE html>")
    assert reader.all("html") == [{"lang": "en"}]
    addresses = [a[name] for _, a in reader.tags for name in ("src", "href", "srcset", "action") if name in a]
    assert addresses
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    assert len(reader.all("script")) == 1


def test_names_are_escaped_everywhere(report_page: Path) -> None:
    text = report_page.read_text()
    assert EVIL not in text
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>" in text
    assert "other &#34;&amp;&#34; &lt;b&gt;" in text
    assert "قطة" in text
    assert "🦊" in text


def test_figures_have_words_and_hold_no_script(report_page: Path) -> None:
    reader = Reader(report_page.read_text())
    drawings = reader.all("svg")
    assert len(drawings) >= 8
    assert all(drawing["role"] == "img" and drawing["aria-label"] for drawing in drawings)
    pairs = [drawing["aria-label"] for drawing in drawings if "class-domain pairs" in drawing["aria-label"]]
    # toy: photo, sketch and art lack 1 + 3 + 2 classes; the other dataset knows sketch and art only
    assert any(alt.startswith("6 of 24 class-domain pairs have no training image") for alt in pairs)
    assert any(alt.startswith("5 of 16") for alt in pairs)


def test_it_says_the_answer_the_problems_and_the_choices(report_page: Path) -> None:
    text = report_page.read_text()
    assert "dc is ahead with 37.0 ± 2.1 % Acc-U" in text
    assert text.index("dc is ahead with") < text.index("<table")
    plain = "On domains that it has never seen, the best of 2 methods (dc) is right for 37 of 100 images (800 test"
    assert text.index(plain) < text.index("dc is ahead with") < text.index("What to do next: <bdi>toy</bdi>")
    assert "is left out because it is unfinished" in text
    assert "Chosen on the test split (an oracle: it uses test labels): best of 10 thresholds." in text
    assert "Chosen on the val split: 5th percentile." in text
    assert "ltds train --set method.name=dc" in text
    assert "12,345" in text
    assert "steps_per_epoch = 30" in text


def test_headings_and_cells(report_page: Path) -> None:
    text = report_page.read_text()
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert '<td data-value="51.0" class="best">' in text
    assert '<td data-value="42.0" class="second">' in text
    assert f'<td data-value="" class="bar unseen"><span class="none">{MISSING}' in text  # art was never held out
    sortable = [a for a in Reader(text).all("th") if a.get("aria-sort")]
    assert all(a["aria-sort"] == "none" for a in sortable)
    assert {a["data-first"] for a in sortable} == {"ascending", "descending"}


def test_without_a_script_nothing_is_hidden_but_the_controls(report_page: Path) -> None:
    tags = Reader(report_page.read_text()).tags
    hidden = [
        (tag, attributes.get("id") or attributes.get("class")) for tag, attributes in tags if "hidden" in attributes
    ]
    assert set(hidden) == {("section", "filters"), ("p", "chooser")}
    boxes = [(a["name"], a["value"]) for tag, a in tags if tag == "input"]
    domains = [("domain", "photo"), ("domain", "sketch")]
    assert boxes == [("method", EVIL), ("method", "agg"), ("method", "dc"), *domains, ("seed", "0"), ("seed", "1")]


def test_a_repeated_run_stands_with_the_row_that_it_repeats(make_run, runs: Path) -> None:
    make_run("agg", seed=0)
    make_run("agg", seed=0, folder="again")
    make_run("agg", seed=0, folder="other", config={"optimizer": {"lr": 0.2}})
    entries = {entry.run.path.name: entry for entry in run_details(collect([runs]))}
    assert entries["again"].label == entries["toy-agg-photo-0"].label == "agg (optimizer.lr=0.1)"
    assert entries["other"].label == "agg (optimizer.lr=0.2)"
    assert entries["again"].counts != entries["toy-agg-photo-0"].counts
    assert entries["other"].numbers == (50.0, 50.0, 40.0)


def test_the_same_runs_make_the_same_page(report_page: Path) -> None:
    assert render_page(collect([report_page.parents[1] / "runs"])) == report_page.read_bytes().decode()
