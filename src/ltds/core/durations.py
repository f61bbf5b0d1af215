"""Durations as people write and read them: 90s, 10m, 2h."""

from __future__ import annotations

import re

from ltds.core.errors import ConfigError

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str | float) -> float:
    """Seconds: "90s", "10m", "1.5h", "1h30m", or a number of seconds."""
    if isinstance(text, int | float):
        seconds = float(text)
    else:
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip().lower())
        whole = "".join(f"{number}{unit}" for number, unit in parts)
        if not parts or whole != re.sub(r"\s+", "", text.strip().lower()):
            raise ConfigError(
                f"Expected argument 'budget' to be a time such as 90s, 10m or 2h, but got '{text}'. Correct it.",
                arguments=["budget=10m"],
            )
        seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
    if not 0 < seconds < 3.2e8:
        raise ConfigError(
            f"Expected argument 'budget' to be a time above 0, but got '{text}'. Correct it.", arguments=["budget=10m"]
        )
    return seconds


def say_duration(seconds: float) -> str:
    """Rounded for reading: "40 seconds", "7 minutes", "2.5 hours"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds" if round(seconds) > 1 else "1 second"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"
