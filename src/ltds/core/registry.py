"""Finding a thing by its name: in a dict, or as "package.module:Thing" in the user's code."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, TypeVar

from ltds.core.errors import ConfigError, did_you_mean, expected
from ltds.core.trust import module_of

Thing = TypeVar("Thing")


def find(kind: str, name: str, known: Mapping[str, Thing]) -> Thing:
    """`known[name]`."""
    if name not in known:
        raise ConfigError(f"Expected the name of a {kind}, but got '{name}'. {did_you_mean(name, known)}")
    return known[name]


def find_or_import(kind: str, name: str, known: Mapping[str, Thing]) -> Thing | Any:
    """`known[name]`, or the object that "package.module:Thing" names.

    A name that came from a file has passed `require_trust` (core/trust.py) before.
    """
    if name in known:
        return known[name]
    module = module_of(name)
    if module is None:
        remedy = f"{did_you_mean(name, known)} Name your own as 'package.module:Thing'."
        raise ConfigError(f"Expected the name of a {kind}, but got '{name}'. {remedy}")
    if module == "__main__":  # another program, or this one tomorrow, has another main module
        remedy = f"Put it into a file that can be imported: 'mine:{name.partition(':')[2]}' for mine.py."
        raise ConfigError(expected(f"'{name}'", "in a module that a later program can import", "'__main__'", remedy))
    try:
        return getattr(importlib.import_module(module), name.partition(":")[2])
    except Exception as error:  # importing runs the user's code, which may fail in any way
        raise ConfigError(
            f"Expected '{name}' to name a {kind} that can be imported, but got {type(error).__name__}: {error}. "
            "Check the spelling, and that its package is installed or on PYTHONPATH."
        ) from error
