"""Drawings beyond the tables: cost, open set, calibration, distances, and a look into the models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ltds.reporting import observations as seen
from ltds.reporting.answer import ACC_U, Answer
from ltds.reporting.cells import Column, cell_of, detail_group
from ltds.reporting.comparison import reference_of
from ltds.reporting.cost import cost_of
from ltds.reporting.dataset import Dataset
from ltds.reporting.drawing import Drawing
from ltds.reporting.figures.cost import cost, front
from ltds.reporting.figures.frechet import frechet
from ltds.reporting.figures.open_set import open_set
from ltds.reporting.figures.reliability import reliability
from ltds.reporting.representation import INSIDE, feature_maps, semantic_space, where
from ltds.reporting.run import Run

DECISIONS = "Open classes and calibration"
FEW = 3  # methods that are looked into: a t-SNE takes seconds, and a screen holds no more side by side


def evidence(dataset: Dataset, found: Answer, reference: str | None = None) -> Iterator[Drawing]:
    """The drawings that the runs have data for, in reading order."""
    few = looked_into(dataset, found, reference)
    yield from costs(dataset)
    yield from decisions(few)
    yield from distances(dataset)
    yield from feature_maps(few)
    yield from semantic_space(dataset)


def looked_into(dataset: Dataset, found: Answer, reference: str | None) -> dict[str, Run]:
    """The leader, the reference and the next rows, up to `FEW`, with a run each: same held-out domain, same seed."""
    labels = [label for label in (found.leader, reference_of(dataset, reference), *dataset.rows) if label]
    chosen = list(dict.fromkeys(labels))[:FEW]
    places = [{(run.held_out, run.seed): run for run in dataset.rows[label]} for label in chosen]
    seeds = sorted({seed for there in places for _, seed in there})
    every = [(held_out, seed) for held_out in dataset.held_out for seed in seeds]
    best = max(every, key=lambda place: (sum(place in there for there in places), place in places[0]))
    return {label: there[best] for label, there in zip(chosen, places, strict=True) if best in there}


def costs(dataset: Dataset) -> Iterator[Drawing]:
    """Seconds and parameters against Acc-U, where two methods or more have both."""
    group, methods = detail_group(dataset), list(dataset.rows)
    quality = _floats(cell_of(dataset, label, Column(group, ACC_U)).mean for label in methods)
    paid = [cost_of(runs) for runs in dataset.rows.values()]
    kinds = {"Seconds of a step": _floats(c.seconds for c in paid), "Parameters": _floats(c.parameters for c in paid)}
    shown = {name: values for name, values in kinds.items() if np.isfinite(values + quality).sum() > 1}
    if not shown:
        return
    best = {name: ", ".join(methods[m] for m in front(values, quality)) for name, values in shown.items()}
    yield Drawing(
        cost(shown, quality, ACC_U.name, methods),
        "Cost against quality",
        f"Up and to the left is better; the line joins the methods that no cheaper one equals (Acc-U: {group}).",
        "; ".join(f"{name}: on the line are {who}" for name, who in best.items()) + ".",
    )


def decisions(few: Mapping[str, Run]) -> Iterator[Drawing]:
    """Open set and calibration of a few methods, from their stored predictions."""
    said = {label: verdicts for label, run in few.items() if (verdicts := seen.verdicts_of(run))}
    cases = {label: case for label, verdicts in said.items() if (case := seen.open_set_of(few[label], verdicts))}
    bins = {label: part for label, verdicts in said.items() if (part := seen.reliability_of(verdicts))}
    if cases:
        yield Drawing(
            open_set(cases),
            "Known and open images",
            "The less the histograms overlap, the better open classes are noticed; a: known images kept and right, b: "
            f"open images noticed, H: their harmonic mean at each threshold. {where(few)}",
            "; ".join(f"{label}: H at best {100 * case.h.max():.1f} %" for label, case in cases.items()) + ".",
            DECISIONS,
        )
    if bins:
        yield Drawing(
            reliability(bins),
            "Reliability",
            "Where a bar ends below the dashed line, the method is surer than it is right, by the length of the orange "
            f"line. {where(few)}",
            "; ".join(f"{label}: ECE {100 * case.ece:.1f} %" for label, case in bins.items()) + ".",
            DECISIONS,
        )


def distances(dataset: Dataset) -> Iterator[Drawing]:
    """The distance between source domains over training, for every method that recorded it."""
    drifts = {label: drift for label, runs in dataset.rows.items() if (drift := seen.drift_of(runs))}
    if drifts:
        yield Drawing(
            frechet(drifts),
            "Distance between source domains over training",
            "A line that rises is a method that tells the domains apart ever better; bands reach from the nearest pair "
            "of domains to the farthest. Squared Fréchet distance of validation features.",
            "; ".join(f"{label}: from {d.mean[0]:.3g} to {d.mean[-1]:.3g}" for label, d in drifts.items()) + ".",
            INSIDE,
        )


def _floats(values: Iterable[float | None]) -> NDArray[np.float64]:
    """The values, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
