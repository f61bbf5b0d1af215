"""The docstring of a public function explains each of its arguments, in their order."""

from __future__ import annotations

import inspect
import re

import pytest

import ltds

FUNCTIONS = [name for name in ltds.__all__ if inspect.isroutine(getattr(ltds, name))]


def explained(docstring: str) -> list[str]:
    """The names in the section "Args:"."""
    _, _, section = docstring.partition("\nArgs:\n")
    return re.findall(r"^    (\w+): [A-Z\"]", section, flags=re.MULTILINE)


def test_there_are_functions() -> None:
    assert {"train", "evaluate", "predict", "export", "serve", "report"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_is_explained(name: str) -> None:
    function = getattr(ltds, name)
    assert explained(inspect.getdoc(function) or "") == list(inspect.signature(function).parameters)
