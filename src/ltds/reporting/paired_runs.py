"""Pairs of runs with the same held-out domain and seed: the difference of two methods over them, and its test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, count

from ltds.evaluation.significance import PairedDifference, holm, paired_difference, wilcoxon
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import Metric
from ltds.reporting.result_table import by_seed

ALPHA = 0.05
FEWEST_SEEDS = 2  # with one, nothing tells a difference between methods from one between seeds
EQUAL = 2.0  # points: less than this is about what another seed changes, and no reason for a larger network
Values = dict[tuple[str, int], float]  # (held-out domain, seed) -> the metric in percent


@dataclass(frozen=True)
class MethodDifference:
    """One method minus another, in percentage points. `seeds`: how many the pairs have.

    `p` is corrected (Holm); None with too few seeds, because a comparison without a verdict is not a test.
    """

    paired: PairedDifference
    p: float | None
    seeds: int

    @property
    def one_seed(self) -> bool:
        """Whether the pairs have too few seeds for a test."""
        return self.seeds < FEWEST_SEEDS

    @property
    def verdict(self) -> str:
        """What the pairs show. A difference needs both the test over pairs and the interval over domains."""
        low, high = self.paired.low, self.paired.high
        if self.one_seed or low is None or high is None or self.p is None:
            return "one seed"
        if self.p <= ALPHA and (low > 0 or high < 0):
            return "better" if low > 0 else "worse"
        return "no difference shown"

    @property
    def equal(self) -> bool:
        """Whether the pairs show that the methods are about as good: a wide interval around 0 shows nothing."""
        low, high = self.paired.low, self.paired.high
        if self.verdict != "no difference shown" or low is None or high is None:
            return False
        return low >= -EQUAL and high <= EQUAL


def values_of(dataset: Dataset, label: str, metric: Metric) -> Values:
    """The metric in percent; runs on all domains count only if there are no others."""
    domains = dataset.held_out_only or dataset.held_out
    values = by_seed(dataset.rows[label], metric)
    return {(d, seed): 100 * by_domain[d] for d in domains for seed, by_domain in values.items() if d in by_domain}


def method_difference(ours: Values, theirs: Values) -> MethodDifference | None:
    """Ours minus theirs over the pairs that both have, p uncorrected; None if they share none."""
    shared = _shared(ours, theirs)
    by_domain: dict[str, list[float]] = {}
    for pair in shared:
        by_domain.setdefault(pair[0], []).append(ours[pair] - theirs[pair])
    paired, seeds = paired_difference(by_domain), _seeds(shared)
    return MethodDifference(paired, paired.p if seeds >= FEWEST_SEEDS else None, seeds) if paired else None


def all_pairs(dataset: Dataset, metric: Metric) -> dict[frozenset[str], float | None]:
    """Two labels -> Wilcoxon's p, corrected (Holm) over all pairs of methods that share enough seeds; None for others.

    For comparisons of methods that were picked after looking at the results.
    """
    p_values = _p_values(dataset, metric)
    return dict(zip(p_values, holm(list(p_values.values())), strict=True))


def pairs_needed(dataset: Dataset, metric: Metric, label: str, others: Iterable[str]) -> dict[str, int]:
    """How many pairs of runs each of the others needs at least, so that `all_pairs` can tell it from `label`.

    With n pairs, p is at least 2 (1/2)^n before it is corrected. How much it is corrected depends on the p-values of
    the other methods, which stay as they are.
    """
    p_values = _p_values(dataset, metric)

    def enough(two: frozenset[str], pairs: int) -> bool:
        smallest = {**p_values, two: 2.0 ** (1 - pairs)}
        corrected = dict(zip(smallest, holm(list(smallest.values())), strict=True))[two]
        return corrected is not None and corrected <= ALPHA

    return {other: next(n for n in count(1) if enough(frozenset((label, other)), n)) for other in others}


def _p_values(dataset: Dataset, metric: Metric) -> dict[frozenset[str], float | None]:
    """Two labels -> Wilcoxon's p, not corrected; None where they share too few seeds."""
    values = {label: values_of(dataset, label, metric) for label in dataset.rows}
    return {frozenset((a, b)): _p_value(values[a], values[b]) for a, b in combinations(dataset.rows, 2)}


def _p_value(ours: Values, theirs: Values) -> float | None:
    """As in `method_difference`, without its interval."""
    shared = _shared(ours, theirs)
    return wilcoxon([ours[pair] - theirs[pair] for pair in shared]) if _seeds(shared) >= FEWEST_SEEDS else None


def _shared(ours: Values, theirs: Values) -> list[tuple[str, int]]:
    return [pair for pair in ours if pair in theirs]


def _seeds(pairs: list[tuple[str, int]]) -> int:
    return len({seed for _, seed in pairs})
