"""Finding a thing by its name: in a literal dict, or as the user's own "package.module:Thing"."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, TypeVar

from ltds.core.errors import ConfigError, nearest

Thing = TypeVar("Thing")


def find(kind: str, name: str, known: Mapping[str, Thing]) -> Thing | Any:
    """`known[name]`, or the object that "package.module:Thing" names."""
    if name in known:
        return known[name]
    if ":" not in name:
        remedy = f"{nearest(name, known)} Your own is named as 'package.module:Thing'."
        raise ConfigError(f"Expected the name of a {kind}, but got '{name}'. {remedy}")
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"Expected '{name}' to name a {kind} that can be imported, but got: {error}. "
            "Check the spelling, and that its package is installed or on PYTHONPATH."
        ) from error
