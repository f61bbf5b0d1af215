"""The result in plain words, for a reader who knows neither the method nor the metrics."""

from __future__ import annotations

from dataclasses import dataclass

from ltds.core.text import count
from ltds.evaluation.metrics import FEW_IMAGES, FEW_OPEN_CLASSES
from ltds.reporting.answer import ACC_U, isolated
from ltds.reporting.dataset import Dataset
from ltds.reporting.domain_accuracy import source_accuracy
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.glossary import METRICS
from ltds.reporting.result_table import Column, TableCell, average_of, cell_of, detail_group
from ltds.reporting.unseen_scores import known_answers, open_answers


@dataclass(frozen=True)
class Headline:
    """`main` is the sentence that matters; `more` are those that follow from the same model."""

    main: str
    more: tuple[str, ...]


def headline(context: FigureContext) -> Headline:
    """What the best method reaches on domains that it has never seen, or else on those that it was trained on."""
    context = context.comparable
    dataset, leader = context.dataset, context.leader
    if dataset.held_out_only and not dataset.has_average:
        return Headline(
            "No method has every held-out domain with one seed, so there is no average over domains yet.",
            ("The tables show the results that exist.",),
        )
    if leader is None or not dataset.held_out_only:
        return _without_held_out(dataset)
    group = detail_group(dataset)
    column = Column(group, ACC_U)
    cell = cell_of(dataset, leader, column)
    if cell.mean is None:
        return _without_held_out(dataset)
    averaged = group == average_of(dataset)
    where = "On domains that it has never seen" if averaged else f"On {group}, a domain that it has never seen"
    main = f"{where}, {_subject(dataset, leader, column)} is right for {cell.mean:.0f} of 100 images{_basis(cell)}."
    more = _known_answers(dataset, leader)
    if averaged:
        more.append(_per_domain(dataset, leader))
    seen = source_accuracy(dataset, leader)
    if seen is not None:
        more.append(
            f"On the domains that it was trained on, it is right for {seen:.0f} of 100{_drop(seen - cell.mean)}."
        )
    return Headline(main, (*more, *_open_answers(dataset, leader)))


def _known_answers(dataset: Dataset, label: str) -> list[str]:
    """What 'unknown' costs: how often it says so of classes that it knows, if that is known."""
    known = known_answers(dataset, label)
    if known is None:
        return []
    images, guess = known.threshold_images, ""
    if images is not None and images < FEW_IMAGES:
        basis = "one validation image" if images == 1 else f"{images} validation images"
        guess = f" Its threshold for this is a guess: it was chosen on {basis}."
    return [
        "This is before it may say 'unknown'. As it is used, it says so, wrongly, to "
        f"{known.called_unknown:.0f} of 100 images of classes that it knows, and names {known.named_right:.0f} right "
        f"({known.where}).{guess}"
    ]


def _open_answers(dataset: Dataset, label: str) -> list[str]:
    """How often it notices open images, if that is known."""
    opened = open_answers(dataset, label)
    if opened is None:
        return []
    images, classes = opened.sample.images, opened.sample.open_classes
    few = " These are too few images to rely on it." if opened.sample.too_few else ""
    if classes < FEW_OPEN_CLASSES:
        few += " Other new classes may fare differently."
    return [
        f"Shown {images:,} image{'' if images == 1 else 's'} of {count(classes, 'class')} that it "
        f"does not know, it says 'unknown' to {opened.called_unknown:.0f} of 100 ({opened.where}).{few}"
    ]


def _without_held_out(dataset: Dataset) -> Headline:
    column = Column(detail_group(dataset), METRICS["acc"])
    cells = {label: cell_of(dataset, label, column) for label in dataset.rows}
    means = {label: cell.mean for label, cell in cells.items() if cell.mean is not None}
    if not means:
        return Headline("No method has a result on test images yet.", ())
    best = max(means, key=lambda label: means[label])
    why_not = "there are no test images of it" if dataset.held_out_only else "hold one out to measure this"
    return Headline(
        f"On test images of all domains, {_subject(dataset, best, column)} is right for {means[best]:.0f} of 100"
        f"{_basis(cells[best])}.",
        (
            *_known_answers(dataset, best),
            f"How well it works on a domain that it has never seen is not known: {why_not}.",
            *_open_answers(dataset, best),
        ),
    )


def _subject(dataset: Dataset, label: str, column: Column) -> str:
    """The method, and how many it is the best of: those that have this number."""
    rows, name = len(dataset.rows), isolated(label)
    having = sum(cell_of(dataset, row, column).mean is not None for row in dataset.rows)
    if rows == 1:
        return f"the model ({name})"
    if having == 1:
        return f"the only method with this number ({name})"
    return f"the best of {having} methods{'' if having == rows else ' with this number'} ({name})"


def _basis(cell: TableCell) -> str:
    """How many images and seeds the number rests on."""
    seeds = "one seed" if cell.seeds == 1 else f"mean of {cell.seeds} seeds"
    if cell.sample is None:
        return f" ({seeds})"
    few = ": too few to rely on it" if cell.too_few else ""
    return f" ({cell.sample.images:,} test images{few}; {seeds})"


def _per_domain(dataset: Dataset, label: str) -> str:
    cells = {name: cell_of(dataset, label, Column(name, ACC_U)).mean for name in dataset.held_out_only}
    known = {name: mean for name, mean in cells.items() if mean is not None}
    ordered = sorted(known, key=lambda name: -known[name])
    best, worst = ordered[0], ordered[-1]
    return (
        f"It depends on the domain: from {known[best]:.0f} of 100 on {isolated(best)} down to {known[worst]:.0f} on "
        f"{isolated(worst)}."
    )


def _drop(points: float) -> str:
    if points >= 1:
        return f", {points:.0f} point{'' if round(points) == 1 else 's'} more than on a new domain"
    return "; these images show no loss on a new domain"
