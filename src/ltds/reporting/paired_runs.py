"""Pairs of runs with the same held-out domain and seed: the difference of two methods over them, and its test."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from ltds.evaluation.significance import PairedDifference, holm, paired_difference, wilcoxon
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import Metric
from ltds.reporting.result_table import by_seed

ALPHA = 0.05


@dataclass(frozen=True)
class MethodDifference:
    """One method minus another, in percentage points. `p` is corrected (Holm); `seeds`: how many the pairs have."""

    paired: PairedDifference
    p: float | None
    seeds: int

    @property
    def verdict(self) -> str:
        """What the pairs show. A difference needs both the test over pairs and the interval over domains and seeds."""
        low, high = self.paired.low, self.paired.high
        if self.seeds < 2 or low is None or high is None or self.p is None:
            return "one seed"
        if self.p <= ALPHA and (low > 0 or high < 0):
            return "better" if low > 0 else "worse"
        return "no difference shown"


def values_of(dataset: Dataset, label: str, metric: Metric) -> dict[tuple[str, int], float]:
    """(held-out domain, seed) -> the metric in percent; runs on all domains count only if there are no others."""
    domains = dataset.held_out_only or dataset.held_out
    values = by_seed(dataset.rows[label], metric)
    return {(d, seed): 100 * by_domain[d] for d in domains for seed, by_domain in values.items() if d in by_domain}


def method_difference(
    ours: dict[tuple[str, int], float], theirs: dict[tuple[str, int], float]
) -> MethodDifference | None:
    """Ours minus theirs over the pairs that both have, p uncorrected; None if they share none."""
    shared = [pair for pair in ours if pair in theirs]
    by_domain: dict[str, list[float]] = {}
    for pair in shared:
        by_domain.setdefault(pair[0], []).append(ours[pair] - theirs[pair])
    paired = paired_difference(by_domain)
    return MethodDifference(paired, paired.p, len({seed for _, seed in shared})) if paired else None


def all_pairs(dataset: Dataset, metric: Metric) -> dict[frozenset[str], float | None]:
    """Two labels -> Wilcoxon's p, corrected (Holm) over all pairs of methods.

    For comparisons of methods that were picked after looking at the results.
    """
    values = {label: values_of(dataset, label, metric) for label in dataset.rows}
    methods = list(combinations(dataset.rows, 2))
    p_values = [
        wilcoxon([values[a][pair] - values[b][pair] for pair in values[a] if pair in values[b]]) for a, b in methods
    ]
    return {frozenset(two): p for two, p in zip(methods, holm(p_values), strict=True)}
