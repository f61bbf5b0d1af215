"""The estimator's parameters as plain Python values: searches over np.arange give NumPy's numbers."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from ltds.core.errors import ConfigError, expected


def whole_number(name: str, value: Any, least: int) -> int:
    """The parameter as an int, of any integer type."""
    rule = f"a whole number of at least {least}"
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ConfigError(expected(name, rule, repr(value), "Choose another value.")) from error
    if number < least:
        raise ConfigError(expected(name, rule, number, "Choose another value."))
    return number


def fraction(name: str, value: Any) -> float:
    """The parameter as a float from 0 to below 1."""
    if not isinstance(value, Real) or not 0 <= float(value) < 1:
        raise ConfigError(expected(name, "a number from 0 to below 1", repr(value), "Choose another value."))
    return float(value)


def plain(value: Any) -> Any:
    """The value without NumPy's types, also inside mappings and lists."""
    match value:
        case np.generic():
            return value.item()
        case np.ndarray():
            return value.tolist()
        case Mapping():
            return {name: plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case _:
            return value
