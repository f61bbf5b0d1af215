"""Cost: parameters and training time of a method."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from ltds.reporting.run import Run

HEADINGS = ("Parameters", "s / step")


@dataclass(frozen=True)
class Cost:
    """Parameters of all networks, and seconds of a training step without loading and validation.

    Both are medians over the runs of a row; the seconds of a run are the median over its steps. None: not recorded.
    `spread`: from the lowest first to the highest third quartile of the steps of its runs.
    """

    parameters: int | None
    seconds: float | None
    spread: tuple[float, float] | None = field(default=None, compare=False)

    @property
    def spread_text(self) -> str:
        """The spread as printed, or "" if both ends are printed the same."""
        low, high = ("", "") if self.spread is None else map(short_seconds, self.spread)
        return "" if low == high else f"[{low}, {high}]"

    def texts(self, missing: str) -> tuple[str, str]:
        """Both as printed under `HEADINGS`."""
        return (
            missing if self.parameters is None else short_count(self.parameters),
            missing if self.seconds is None else short_seconds(self.seconds),
        )


def cost_of(runs: Iterable[Run]) -> Cost:
    """The cost of one row of a table."""
    members = list(runs)
    parameters = [n for run in members if isinstance(n := run.environment.get("parameters"), int)]
    quartiles = [q for run in members if (q := run.step_quartiles) is not None]
    return Cost(
        statistics.median_low(parameters) if parameters else None,
        statistics.median(q[1] for q in quartiles) if quartiles else None,
        (min(q[0] for q in quartiles), max(q[2] for q in quartiles)) if quartiles else None,
    )


def times_are_noise(costs: Iterable[Cost]) -> bool:
    """Whether the step times of two or more methods overlap, all of them, so that no difference is shown."""
    spreads = [cost.spread for cost in costs if cost.spread]
    return len(spreads) > 1 and max(low for low, _ in spreads) <= min(high for _, high in spreads)


def any_cost(cost: Cost) -> bool:
    """Whether some of it was recorded."""
    return cost.parameters is not None or cost.seconds is not None


def short_count(number: int) -> str:
    """Three significant digits and a unit: 850, 12.3 k, 4.90 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 0.9995 * size:
            return f"{_three(number / size)} {unit}"
    return str(number)


def short_seconds(seconds: float) -> str:
    """Three significant digits, or four decimals if smaller: 12.3, 0.123, 0.0012."""
    return _three(seconds) if seconds >= 0.1 else f"{seconds:.4f}"


def _three(value: float) -> str:
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 2
    rounded = round(value, max(0, digits))
    return f"{rounded:.{max(0, 2 - math.floor(math.log10(rounded)))}f}" if rounded else "0"
