"""The estimator's parameters, checked, as plain Python values: searches over np.arange give NumPy's numbers."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import ConfigError, DataError, expected


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


def numbered(argument: str, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The names among the values, sorted, and the number of each sample's.

    Raises where one is missing or they cannot be sorted. `argument`: what the caller has given.
    """
    missing = [row for row, name in enumerate(values.tolist()) if is_missing_value(name)]
    if missing:
        got = f"{len(missing)} missing, the first in row {missing[0]}"
        raise DataError(expected(argument, "one for each sample", got, "Fill them in, or leave these samples out."))
    try:
        names, ids = np.unique(values, return_inverse=True)
    except TypeError as error:
        got, remedy = f"a mixture ({error})", "Give all of them as texts."
        raise DataError(expected(argument, "all texts or all numbers", got, remedy)) from error
    return names, ids.astype(np.int64)


def is_missing_value(value: Any) -> bool:
    """None, NaN, or what pandas has for them."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
