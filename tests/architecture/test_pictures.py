"""Pictures of README.md and docs/ are those that `make pictures` draws today."""

from __future__ import annotations

import pytest
from repository import ROOT, benchmark_module, needs_pinned

SOURCES = benchmark_module("picture_sources")


def test_every_picture_has_a_source() -> None:
    assert {file.name for file in (ROOT / "docs" / "images").iterdir()} == set(SOURCES.SOURCES)


@needs_pinned("pillow")  # draws the labels
@pytest.mark.parametrize("name", SOURCES.SOURCES)
def test_pictures_are_up_to_date(name: str) -> None:
    assert SOURCES.carried(name) == SOURCES.checksum(name), f"{name} is stale: run `make pictures`"
