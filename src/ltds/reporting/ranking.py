"""Mean ranks of the methods of a dataset, with Friedman's test and Nemenyi's critical difference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ltds.evaluation.significance import block_ranks, critical_difference, friedman
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import Metric
from ltds.reporting.paired_runs import values_of


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over `blocks` pairs of held-out domain and seed that every method has; 1 is best."""

    mean_ranks: dict[str, float]
    blocks: int
    friedman_p: float
    gap: float


def ranking(dataset: Dataset, metric: Metric) -> Ranking | None:
    """The ranking of two or more methods over the pairs that all of them have; None if there is no such pair."""
    labels = list(dataset.rows)
    values = {label: values_of(dataset, label, metric) for label in labels}
    pairs = list(dict.fromkeys(pair for of_method in values.values() for pair in of_method))
    table = np.array([[values[label].get(pair, np.nan) for label in labels] for pair in pairs])
    ranks = block_ranks(table.reshape(-1, len(labels)), metric.higher_is_better)
    if len(labels) < 2 or not len(ranks):
        return None
    means = dict(zip(labels, ranks.mean(axis=0).tolist(), strict=True))
    return Ranking(means, len(ranks), friedman(ranks)[1], critical_difference(len(labels), len(ranks)))
