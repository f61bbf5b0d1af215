"""How often the report's intervals hold the truth, and its verdict errs, on invented normal noise (docs/statistics.md).

python benchmarks/coverage.py [--draws 1000]
"""

from __future__ import annotations

import argparse

import numpy as np

from ltds.core.rng import numpy_generator
from ltds.evaluation.significance import summary
from ltds.reporting.paired_runs import ALPHA, method_difference

SEEDS = (2, 3, 5, 10)
DOMAINS = ((1, 5, 0.0), (2, 3, 2.0), (3, 3, 1.0), (3, 5, 4.0), (4, 5, 4.0), (5, 3, 0.0), (5, 3, 2.0), (10, 3, 1.0))
GAIN = 2.0  # the true difference of the last column, in units of the noise between seeds


def over_seeds(seeds: int, draws: int) -> float:
    """Share of intervals of a mean that hold the truth, 0."""
    rng = numpy_generator(0, "coverage/seeds", seeds)
    found = [summary(rng.standard_normal(seeds).tolist()) for _ in range(draws)]
    return float(np.mean([one.low <= 0 <= one.high for one in found]))


def over_domains(domains: int, seeds: int, spread: float, draws: int) -> tuple[float, ...]:
    """Without a true difference: shares of intervals that hold 0, of tests and of verdicts that see one.

    And with one of GAIN: the share of verdicts that see it. `spread`: the standard deviation of the true difference
    between domains, in units of the noise between seeds.
    """
    rng, told = numpy_generator(0, "coverage/domains", domains, seeds, round(10 * spread)), np.zeros(4)
    for _ in range(draws):
        values = spread * rng.standard_normal((domains, 1)) + rng.standard_normal((domains, seeds))
        none, gain = (method_difference(_by_run(values + shift), _by_run(0 * values)) for shift in (0.0, GAIN))
        told += (
            none.paired.low <= 0 <= none.paired.high,
            none.p <= ALPHA,
            none.verdict in ("better", "worse"),
            gain.verdict == "better",
        )
    return tuple(told / draws)


def _by_run(values: np.ndarray) -> dict[tuple[str, int], float]:
    return {(str(domain), seed): value for (domain, seed), value in np.ndenumerate(values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    for seeds in SEEDS:
        print(f"{seeds:2d} seeds: interval {over_seeds(seeds, draws):.0%}")
    for domains, seeds, spread in DOMAINS:
        held, test, verdict, gain = over_domains(domains, seeds, spread, draws)
        print(
            f"{domains:2d} domains x {seeds} seeds, spread {spread:.0f}: interval {held:.0%}; without a difference, "
            f"the test errs {test:.0%}, the verdict {verdict:.0%}; a gain of {GAIN:.0f} is seen {gain:.0%}"
        )


if __name__ == "__main__":
    main()
