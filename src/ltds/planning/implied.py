"""Names that the user's settings imply: of a planned average or network of which they set only a detail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ltds.core.config import merge
from ltds.planning.choose import averaging_settings
from ltds.planning.network import IMAGE_NETWORK_SETTINGS, PLANNED_BACKBONE, pretrained_is_installed
from ltds.planning.run_plan import Given


def with_implied_names(given: Given) -> dict[str, Any]:
    """The user's settings with these names, so that a detail alone is valid before anything is planned."""
    return merge(_averaging(given), _network(given), given)


def _averaging(given: Given) -> dict[str, Any]:
    if not given.get("averaging") or "averaging.name" not in (averaging_settings(given, 1) or {}):
        return {}
    return {"averaging": {"name": "ema"}}


def _network(given: Given) -> dict[str, Any]:
    """The pretrained network, where the settings only say what of it stays fixed."""
    own = given.get("backbone", {})
    if not isinstance(own, Mapping) or not IMAGE_NETWORK_SETTINGS & own.keys() or {"name", "weights"} & own.keys():
        return {}
    return {"backbone": {"name": PLANNED_BACKBONE, "weights": "imagenet"}} if pretrained_is_installed() else {}
