"""Names that the user's settings imply: of a planned average or network of which they set only a detail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ltds.core.config import merge, nested
from ltds.planning.choose import averaging_settings
from ltds.planning.network import IMAGE_NETWORK_SETTINGS, WEIGHTS_INSTALLED, pretrained_choice, pretrained_is_installed
from ltds.planning.run_plan import Choice, Given


def with_implied_names(given: Given) -> dict[str, Any]:
    """The user's settings with these names, so that a detail alone is valid before anything is planned."""
    implied = implied_network(given)
    network = nested(implied.settings) if implied else {}
    return merge(_averaging(given), network, given)


def _averaging(given: Given) -> dict[str, Any]:
    if not given.get("averaging") or "averaging.name" not in (averaging_settings(given, 1) or {}):
        return {}
    return {"averaging": {"name": "ema"}}


def implied_network(given: Given) -> Choice | None:
    """The pretrained network, where the settings only say what of it stays fixed."""
    own = given.get("backbone", {})
    details = IMAGE_NETWORK_SETTINGS & own.keys() if isinstance(own, Mapping) else set()
    if not details or {"name", "weights"} & own.keys() or not pretrained_is_installed():
        return None
    why = f"{' and '.join(f'backbone.{name}' for name in sorted(details))} without a backbone.name means this one"
    return pretrained_choice(f"{why}; {WEIGHTS_INSTALLED}")
