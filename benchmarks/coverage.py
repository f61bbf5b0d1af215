"""How often the report's intervals hold the truth, and its test errs, on invented normal noise (docs/statistics.md).

python benchmarks/coverage.py [--draws 1000]
"""

from __future__ import annotations

import argparse

import numpy as np

from ltds.core.rng import numpy_generator
from ltds.evaluation.significance import paired_difference, summary, wilcoxon

T = {2: 12.706, 3: 4.303, 5: 2.776, 10: 2.262, 20: 2.093}  # 97.5 % quantiles of Student's t, n - 1 degrees of freedom


def over_seeds(seeds: int, draws: int) -> tuple[float, float]:
    """Share of intervals of a mean that hold the truth, 0: percentile bootstrap, and Student's t."""
    rng, held = numpy_generator(0, "coverage/seeds", seeds), np.zeros(2)
    for _ in range(draws):
        x = rng.standard_normal(seeds)
        found = summary(x.tolist())
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        half = T[seeds] * x.std(ddof=1) / np.sqrt(seeds)
        held += (found.low <= 0 <= found.high, abs(x.mean()) <= half)
    return tuple(held / draws)


def over_domains(domains: int, spread: float, draws: int, seeds: int = 3) -> tuple[float, float]:
    """Share of intervals of a difference of 0 that hold it, and of Wilcoxon tests that see one at 5 %."""
    rng, held, seen = numpy_generator(0, "coverage/domains", domains, round(10 * spread)), 0, 0
    for _ in range(draws):
        values = spread * rng.standard_normal((domains, 1)) + rng.standard_normal((domains, seeds))
        here = {str(d): row.tolist() for d, row in enumerate(values)}
        found = paired_difference(here)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
        seen += wilcoxon(values.ravel()) <= 0.05
    return held / draws, seen / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    for seeds in T:
        boot, student = over_seeds(seeds, draws)
        print(f"{seeds:2d} seeds: percentile bootstrap {boot:.0%}, t {student:.0%}")
    for domains, spread in ((5, 0.0), (5, 1.0), (5, 2.0), (10, 1.0)):
        held, seen = over_domains(domains, spread, draws)
        print(f"{domains:2d} domains, spread {spread}: interval {held:.0%}, Wilcoxon errs {seen:.0%}")


if __name__ == "__main__":
    main()
