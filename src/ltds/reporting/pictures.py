"""Pictures: the figures of a dataset with the words that go with them, in reading order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ltds.evaluation.ranks import cliques
from ltds.reporting import series
from ltds.reporting.answer import ACC_U, Answer
from ltds.reporting.comparison import ranking
from ltds.reporting.comparison_table import p_text
from ltds.reporting.dataset import Dataset
from ltds.reporting.drawing import Drawing
from ltds.reporting.evidence import evidence
from ltds.reporting.figures.critical_difference import critical_difference
from ltds.reporting.figures.distribution import distribution
from ltds.reporting.figures.frequency import frequency
from ltds.reporting.figures.pairs import pairs
from ltds.reporting.figures.training import training

PANELS = 4  # matrices of more methods than this do not fit on a screen
MATRICES, TRAINING = "Accuracy of each class in each domain", "Training of each method"


def pictures(dataset: Dataset, found: Answer, reference: str | None = None) -> Iterator[Drawing]:
    """Its images, head to tail, mean ranks, the matrices, what is behind the numbers, the training of each method."""
    counts = dataset.class_images()
    yield Drawing(
        distribution(counts, dataset.classes, list(dataset.counts)),
        "Training images",
        "From head to tail: how unequal the classes are, and which class is missing (a cross) in which domain.",
        f"{int((counts == 0).sum())} of {counts.size} class-domain pairs have no training image; the largest class has "
        f"{int(counts.sum(axis=0).max())} images, the smallest {int(counts.sum(axis=0).min())}.",
    )
    images, accuracy, trained = series.class_frequency(dataset)
    if trained:
        yield Drawing(
            frequency(images, accuracy, list(dataset.rows), [dataset.classes[c] for c in trained]),
            "Accuracy from head to tail",
            "Where a line falls to the right, that method pays for its accuracy with the rare classes.",
            "Accuracy of each class for each method; the same numbers stand in the table of classes below.",
        )
    yield from _ranks(dataset)
    yield from _matrices(dataset, found)
    yield from evidence(dataset, found, reference)
    for label, runs in dataset.rows.items():
        terms, validation = series.loss_terms(runs), series.validation_curves(runs)
        if terms or validation:
            yield Drawing(
                training(terms, validation),
                f"Training of {label}",
                "A loss that still falls, or accuracy that still rises at the right end, asks for longer training.",
                f"Loss terms ({', '.join(terms)}) averaged over {len(runs)} runs, and validation accuracy of each.",
                TRAINING,
                method=label,
            )


def _ranks(dataset: Dataset) -> Iterator[Drawing]:
    """Mean ranks in Acc-U, where there are enough methods and blocks to rank."""
    ranked = ranking(dataset, ACC_U)
    if ranked is None or len(ranked.mean_ranks) < 3 or ranked.blocks < 2:
        return
    means = list(ranked.mean_ranks.values())
    joined = cliques(means, ranked.gap)
    yield Drawing(
        critical_difference(means, list(ranked.mean_ranks), ranked.gap, joined),
        "Mean ranks in Acc-U",
        f"Over {ranked.blocks} pairs of held-out domain and seed that every method has; Friedman's p = "
        f"{p_text(ranked.friedman_p)}. Methods under one bar are not told apart by Nemenyi's test. It takes the "
        "pairs as independent, so the true critical difference is no smaller than the one drawn.",
        "; ".join(f"{name}: {rank:.2f}" for name, rank in sorted(ranked.mean_ranks.items(), key=lambda item: item[1]))
        + f"; critical difference {ranked.gap:.2f}.",
    )


def _matrices(dataset: Dataset, found: Answer) -> Iterator[Drawing]:
    """A picture for each held-out domain, with the leader's matrix first."""
    labels = sorted(dataset.rows, key=lambda label: label != found.leader)
    order = series.head_to_tail(dataset.class_images().sum(axis=0))
    for held_out in dataset.held_out:
        here = {label: [run for run in dataset.rows[label] if run.held_out == held_out] for label in labels}
        panels = {label: series.pair_accuracy(runs) for label, runs in here.items()}
        shown = {label: values for label, values in panels.items() if values is not None}
        if shown:
            task = next(run.task for runs in here.values() for run in runs)
            names = [f"{d} (held out)" if d == task.held_out else d for d in task.domains]
            more = f" The first {PANELS} of {len(shown)} methods are shown." if len(shown) > PANELS else ""
            yield Drawing(
                pairs(dict(list(shown.items())[:PANELS]), task.seen_in_domain, order, task.classes, names),
                f"Accuracy of each class in each domain, held out: {held_out}",
                f"Dots mark pairs that training never saw: pale dotted cells are what domain shift costs.{more}",
                _describe(shown, task.seen_in_domain),
                MATRICES,
                held_out=held_out,
            )


def _describe(panels: dict[str, NDArray[np.float64]], seen: NDArray[np.bool_]) -> str:
    """The matrices in words: mean accuracy over seen and over unseen pairs."""
    said = []
    for label, values in panels.items():
        parts = (values[mask & np.isfinite(values)] for mask in (seen, ~seen))
        means = [f"{100 * part.mean():.1f} %" if part.size else "no value" for part in parts]
        said.append(f"{label}: {means[0]} over seen pairs, {means[1]} over unseen ones")
    return "; ".join(said) + "."
