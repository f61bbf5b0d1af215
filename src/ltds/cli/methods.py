"""`ltds methods`: what there is to train."""

from __future__ import annotations

from ltds.cli.screen import SCREEN


def methods() -> None:
    """List the methods, a line each. Use a name with: ltds train --method NAME"""
    from ltds.methods.presets import PRESETS

    SCREEN.table(["method", "what it is"], [[name, preset.summary] for name, preset in PRESETS.items()])
