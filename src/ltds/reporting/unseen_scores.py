"""What stored predictions say about a method on domains that it has never seen: 'unknown' answers and confidence.

As Acc-U, every number is over the images of the held-out domain and averaged over the same runs: images of the sources
are easier, and may be training images.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from ltds.core.task import Task
from ltds.evaluation.mistakes import judged_rows
from ltds.evaluation.openset import OpenSetScores
from ltds.evaluation.table import PredictionTable
from ltds.reporting.answer import isolated
from ltds.reporting.dataset import Dataset
from ltds.reporting.figures.context import stored_predictions
from ltds.reporting.run import Run
from ltds.reporting.sample_size import Sample, half_width, mean_width

T = TypeVar("T")


@dataclass(frozen=True)
class UnknownShares:
    """Of a model as it is used: percent of open images called unknown, and of known ones, wrongly.

    `sample`: the open images; `where`: the domains that this is about, and how many runs if they are not all.
    """

    open_called: float
    known_called: float
    sample: Sample
    where: str


@dataclass(frozen=True)
class MeanConfidence:
    """For images of known classes: the mean confidence, and the percentage of correct predictions; `where` as above."""

    claimed: float
    right: float
    where: str


@dataclass(frozen=True)
class _Called:
    """What one run calls unknown, in percent of open and of known images."""

    opened: float
    known: float
    open_images: int


@dataclass(frozen=True)
class _Sure:
    """How sure one run is of images of known classes, and how often it is right, in percent."""

    claimed: float
    right: float


def unknown_shares(dataset: Dataset, label: str) -> UnknownShares | None:
    """How the runs of this method use 'unknown', at their own thresholds; None if that is not known."""
    called = _by_domain((name, found) for name, found, _ in _scores(dataset, label))
    if not called:
        return None
    opened = {name: statistics.fmean(run.opened for run in runs) for name, runs in called.items()}
    images = {name: max(run.open_images for run in runs) for name, runs in called.items()}  # the same for every seed
    return UnknownShares(
        statistics.fmean(opened.values()),
        _mean(called, lambda run: run.known),
        Sample(sum(images.values()), mean_width([half_width(opened[name], images[name]) for name in called])),
        _where(dataset, label, called),
    )


def mean_confidence(dataset: Dataset, label: str) -> MeanConfidence | None:
    """How sure the runs of this method are, and how often they are right; None without stored predictions."""
    sure = _by_domain((name, found) for name, _, found in _scores(dataset, label))
    if not sure:
        return None
    means = _mean(sure, lambda run: run.claimed), _mean(sure, lambda run: run.right)
    return MeanConfidence(*means, _where(dataset, label, sure))


@lru_cache(maxsize=64)
def _scores(dataset: Dataset, label: str) -> tuple[tuple[str, _Called | None, _Sure | None], ...]:
    """The held-out domain and the scores of each run that Acc-U is averaged over, if its predictions are stored."""
    tables = ((run, stored_predictions(run)) for run in dataset.averaged(label))
    judged = ((run, _judged(table, run.task)) for run, table in tables if table)
    return tuple((run.held_out, _called(run, table), _sure(run, table)) for run, table in judged)


def _judged(table: PredictionTable, task: Task) -> PredictionTable:
    chosen = judged_rows(table, task)
    return PredictionTable(table.logits[chosen], table.labels[chosen], table.domains[chosen], table.rows[chosen])


def _called(run: Run, table: PredictionTable) -> _Called | None:
    choice = run.metrics.choices.get("h_fixed", {})
    threshold, temperature = choice.get("threshold"), choice.get("temperature")
    if not (isinstance(threshold, float) and isinstance(temperature, float)):
        return None
    scores = OpenSetScores.of_known_classes(table.logits, table.labels, run.task.open_classes, temperature)
    known, unknown = scores.known, scores.confidence < threshold
    if known.all() or not known.any():
        return None
    return _Called(100 * float(unknown[~known].mean()), 100 * float(unknown[known].mean()), int((~known).sum()))


def _sure(run: Run, table: PredictionTable) -> _Sure | None:
    scores = OpenSetScores.of(table.probabilities, table.labels, run.task.open_classes)
    if not scores.known.any():
        return None
    return _Sure(*(100 * float(of[scores.known].mean()) for of in (scores.confidence, scores.correct)))


def _by_domain(found: Iterable[tuple[str, T | None]]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for name, one in found:
        if one is not None:
            groups.setdefault(name, []).append(one)
    return groups


def _mean(groups: Mapping[str, list[T]], value: Callable[[T], float]) -> float:
    """Mean over domains of the means over their runs, as an average in a table."""
    return statistics.fmean(statistics.fmean(map(value, runs)) for runs in groups.values())


def _where(dataset: Dataset, label: str, used: Mapping[str, list[T]]) -> str:
    """Where these runs were tested, as in "on photo, in 2 of 6 runs": Acc-U is over all of them."""
    averaged = dataset.averaged(label)
    domains, count = {run.held_out for run in averaged}, sum(map(len, used.values()))
    all_of_several = 1 < len(used) == len(domains)
    place = "domains that it has never seen" if all_of_several else ", ".join(map(isolated, used))
    return f"on {place}" + (f", in {count} of {len(averaged)} runs" if count < len(averaged) else "")
