"""Pictures of README.md and docs/ are those that `make pictures` draws today."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from repository import ROOT


def _sources() -> ModuleType:
    spec = importlib.util.spec_from_file_location("picture_sources", ROOT / "benchmarks" / "picture_sources.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCES = _sources()


def test_every_picture_has_a_source() -> None:
    assert {file.name for file in (ROOT / "docs" / "images").iterdir()} == set(SOURCES.SOURCES)


@pytest.mark.parametrize("name", SOURCES.SOURCES)
def test_pictures_are_up_to_date(name: str) -> None:
    assert SOURCES.carried(name) == SOURCES.checksum(name), f"{name} is stale: run `make pictures`"
