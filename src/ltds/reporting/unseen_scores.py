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
from ltds.evaluation.openset import OpenSetScores, answers_at
from ltds.evaluation.table import PredictionTable
from ltds.reporting.answer import isolated
from ltds.reporting.dataset import Dataset
from ltds.reporting.figures.context import stored_predictions
from ltds.reporting.run import Run
from ltds.reporting.sample_size import Sample, half_width, mean_width

T = TypeVar("T")


@dataclass(frozen=True)
class KnownAnswers:
    """Of a model as it is used, in percent of images of known classes: called unknown, and named right.

    `where`: the domains that this is about, and how many runs if they are not all. `threshold_images`: the fewest on
    which a run chose its threshold, None where none of them recorded it.
    """

    called_unknown: float
    named_right: float
    where: str
    threshold_images: int | None


@dataclass(frozen=True)
class OpenAnswers:
    """Of a model as it is used: percent of open images called unknown, these images, and `where` as above."""

    called_unknown: float
    sample: Sample
    where: str


@dataclass(frozen=True)
class MeanConfidence:
    """For images of known classes: the mean confidence, and the percentage of correct predictions; `where` as above."""

    claimed: float
    right: float
    where: str


@dataclass(frozen=True)
class _Known:
    """What one run answers to images of known classes, in percent of them."""

    called_unknown: float
    named_right: float
    threshold_images: int | None


@dataclass(frozen=True)
class _Open:
    """What one run calls unknown, in percent of its open images; how many images, and the names of their classes."""

    called_unknown: float
    images: int
    classes: frozenset[str]


@dataclass(frozen=True)
class _Sure:
    """How sure one run is of images of known classes, and how often it is right, in percent."""

    claimed: float
    right: float


def known_answers(dataset: Dataset, label: str) -> KnownAnswers | None:
    """What the runs of this method answer to images of known classes, at their own thresholds; None if not known."""
    known = _by_domain((one.held_out, one.known) for one in _scores(dataset, label))
    if not known:
        return None
    recorded = [run.threshold_images for runs in known.values() for run in runs if run.threshold_images is not None]
    return KnownAnswers(
        _mean(known, lambda run: run.called_unknown),
        _mean(known, lambda run: run.named_right),
        _where(dataset, label, known),
        min(recorded, default=None),
    )


def open_answers(dataset: Dataset, label: str) -> OpenAnswers | None:
    """How the runs of this method notice open images, at their own thresholds; None without any, or if not known."""
    opened = _by_domain((one.held_out, one.opened) for one in _scores(dataset, label))
    if not opened:
        return None
    called = {name: statistics.fmean(run.called_unknown for run in runs) for name, runs in opened.items()}
    images = {name: max(run.images for run in runs) for name, runs in opened.items()}  # the same for every seed
    classes = frozenset().union(*(run.classes for runs in opened.values() for run in runs))
    width = mean_width([half_width(called[name], images[name]) for name in opened])
    sample = Sample(sum(images.values()), width, "open", len(classes))
    return OpenAnswers(statistics.fmean(called.values()), sample, _where(dataset, label, opened))


def mean_confidence(dataset: Dataset, label: str) -> MeanConfidence | None:
    """How sure the runs of this method are, and how often they are right; None without stored predictions."""
    sure = _by_domain((one.held_out, one.sure) for one in _scores(dataset, label))
    if not sure:
        return None
    means = _mean(sure, lambda run: run.claimed), _mean(sure, lambda run: run.right)
    return MeanConfidence(*means, _where(dataset, label, sure))


@dataclass(frozen=True)
class _RunScores:
    held_out: str
    known: _Known | None
    opened: _Open | None
    sure: _Sure | None


@lru_cache(maxsize=64)
def _scores(dataset: Dataset, label: str) -> tuple[_RunScores, ...]:
    """The scores of each run that Acc-U is averaged over, if its predictions are stored."""
    tables = ((run, stored_predictions(run)) for run in dataset.averaged(label))
    judged = ((run, _judged(table, run.task)) for run, table in tables if table)
    return tuple(_RunScores(run.held_out, *_answers(run, table), _sure(run, table)) for run, table in judged)


def _judged(table: PredictionTable, task: Task) -> PredictionTable:
    chosen = judged_rows(table, task)
    return PredictionTable(table.logits[chosen], table.labels[chosen], table.domains[chosen], table.rows[chosen])


def _answers(run: Run, table: PredictionTable) -> tuple[_Known | None, _Open | None]:
    rule = run.deployed_rule
    if rule is None:
        return None, None
    scores = rule.scores(table, run.task)
    at, opened = answers_at(scores, rule.threshold), table.labels[~scores.known]
    known, noticed = None, None
    if at.known_called_unknown is not None and at.named_right is not None:
        known = _Known(100 * at.known_called_unknown, 100 * at.named_right, rule.images)
    if at.open_called_unknown is not None:
        noticed = _Open(100 * at.open_called_unknown, len(opened), frozenset(run.task.classes[c] for c in opened))
    return known, noticed


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
    if averaged[0].task.held_out is None:
        place = "all domains"
    else:
        all_of_several = 1 < len(used) == len(domains)
        place = "domains that it has never seen" if all_of_several else ", ".join(map(isolated, used))
    return f"on {place}" + (f", in {count} of {len(averaged)} runs" if count < len(averaged) else "")
