"""Settings that can be written to a file and read again: a run is resumed and its model is loaded from that file."""

from __future__ import annotations

import tomllib
from typing import Any

import tomli_w
from pydantic import ValidationError

from ltds.core.config import Settings, as_tuples
from ltds.core.errors import ConfigError, expected

TYPES = "bool, int, float, str, Literal, tuple, dict with texts as keys, another ltds.Settings, or one of them | None"


def stored_values(settings: Settings) -> dict[str, Any]:
    """The settings as plain values for TOML, which has no None: a setting that is None is left out."""
    return settings.model_dump(mode="json", exclude_none=True)


def require_storable(settings: Settings, prefix: str) -> None:
    """Raise a ConfigError that names the first setting that would not be the same after writing and reading."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if _survives(settings, name):
            continue
        if value is None:
            remedy = f"A file cannot hold None, which must therefore be the default: {name}: TYPE | None = None."
        else:
            remedy = f"Give it one of these types: {TYPES}."
        got = f"{value!r} (declared as {field.annotation})"
        rule = "a value that a file of settings can hold"
        raise ConfigError(expected(f"setting '{prefix}{name}'", rule, got, remedy))


def _survives(settings: Settings, name: str) -> bool:
    """Whether this setting is the same after it was written and read, alone."""
    try:
        written = tomli_w.dumps(settings.model_dump(mode="json", exclude_none=True, include={name}))
    except Exception:  # each library has its own errors for a type that it does not know
        return False
    others = {other: getattr(settings, other) for other in type(settings).model_fields if other != name}
    try:
        again = type(settings).model_validate({**others, **as_tuples(tomllib.loads(written))})
    except ValidationError:
        return False
    return bool(getattr(again, name) == getattr(settings, name))
