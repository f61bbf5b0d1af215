"""Every named method, whole: a class and the settings that make it that method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ltds.core.errors import ConfigError
from ltds.core.names import find
from ltds.methods.agg import Agg
from ltds.methods.base import Method


@dataclass(frozen=True)
class Preset:
    """A method's class, the settings that differ from its defaults, and what it is in one line."""

    method: type[Method]
    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)


PRESETS: dict[str, Preset] = {
    "agg": Preset(Agg, "all source domains together, plain cross-entropy: the baseline"),
    "bsce": Preset(
        Agg, "balanced softmax: logits shifted by log class counts, pooled over domains", {"criterion": "bsce"}
    ),
    "dc": Preset(Agg, "the paper's distribution calibrated loss (Eq. 2): counts of each domain", {"criterion": "dc"}),
}


def find_preset(name: str) -> Preset:
    """The preset of this name, or the user's own Method class given as "package.module:Class"."""
    found = find("method", name, PRESETS)
    if isinstance(found, Preset):
        return found
    if isinstance(found, type) and issubclass(found, Method):
        return Preset(found, (found.__doc__ or name).splitlines()[0])
    raise ConfigError(f"Expected '{name}' to be a subclass of ltds.methods.base.Method, but got {found!r}.")
