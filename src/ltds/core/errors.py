"""Errors for people: what was expected, what came, what to type next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LtdsError(ValueError):
    """A mistake the user can mend. The command line prints its sentence, without a traceback, and exits with 2."""


class DataError(LtdsError):
    """Images, manifests or datasets that cannot be used as they are."""


class ConfigError(LtdsError):
    """Settings that contradict each other, have no effect, or do not exist."""


class CheckpointError(LtdsError):
    """A run or checkpoint that cannot be read, resumed or trusted."""


class TrainingError(LtdsError):
    """Training that cannot go on, such as a loss that became NaN."""


def expected(thing: str, rule: str, got: object, remedy: str) -> str:
    """The standard sentence: "Expected <thing> to be <rule>, but got <value>. <Remedy.>"."""
    return f"Expected {thing} to be {rule}, but got {got}. {remedy}"


def nearest(name: str, choices: Iterable[str]) -> str:
    """A hint that names the closest valid choice first, then all of them."""
    known = sorted(choices)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    did_you_mean = f"Did you mean '{close[0]}'? " if close else ""
    return f"{did_you_mean}Choices: {', '.join(known) if known else '(none)'}."
