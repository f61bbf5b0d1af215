"""Whether a class from outside the package can work as a method, found out before anything is computed."""

from __future__ import annotations

import inspect

from ltds.core.config import settings_class
from ltds.core.errors import ConfigError, expected
from ltds.methods.base import Method
from ltds.methods.entry import MethodEntry


def outside_entry(name: str, found: object) -> MethodEntry:
    """An entry for what "package.module:Class" names; raises unless it is a complete method."""
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise ConfigError(
            f"Expected '{name}' to be a subclass of ltds.Method, but got {found!r}. Derive it from ltds.Method."
        )
    settings_class("method", name, found.Config)
    if missing := sorted(found.__abstractmethods__):
        remedy = "Define it as in docs/extending.md: it takes a batch and a clock, and returns a ltds.StepLoss."
        raise ConfigError(expected(f"'{name}'", f"a class with a method '{missing[0]}'", "one without it", remedy))
    _check_arguments(name, found)
    summary = next(iter((found.__doc__ or "").strip().splitlines()), name)
    return MethodEntry(name, found, summary, networks="", passes="")


def _check_arguments(name: str, found: type[Method]) -> None:
    """The engine builds a method as Class(config, problem)."""
    try:
        inspect.signature(found).bind("config", "problem")
    except TypeError as error:
        remedy = "Write 'def __init__(self, config, problem)' and call super().__init__(config, problem) first in it."
        raise ConfigError(expected(f"'{name}'", "built as Class(config, problem)", f"'{error}'", remedy)) from error
