"""What to do next, in plain words. Every sentence follows from numbers of the report, and says which."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ltds.core.text import count, few
from ltds.evaluation.class_groups import SHOT_MEANING, known_mask
from ltds.reporting.answer import ACC_U, Answer, isolated
from ltds.reporting.class_accuracy import class_accuracy
from ltds.reporting.dataset import Dataset
from ltds.reporting.domain_accuracy import source_accuracy
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.glossary import METRICS
from ltds.reporting.method_advice import Advice, method_advice
from ltds.reporting.result_table import Column, TableCell, cell_of, detail_group
from ltds.reporting.unseen_scores import known_answers, mean_confidence, open_answers

LARGE = 10.0  # points between two accuracies that are worth images
NAMED = 4  # classes in a sentence
MOST = 5  # pieces of advice: more would not be read


def recommendations(context: FigureContext, found: Answer) -> list[Advice]:
    """The advice that these runs support, most important first; about the leader, if there is one."""
    if found.leader is None:
        return [Advice(_first_need(context.dataset), found.certainty)]
    context = context.comparable
    every = (
        _more_test_images,
        _method,
        _domains,
        _rare_classes,
        _rare_unknown,
        _pairs,
        _unknown,
        _refusals,
        _confidence,
    )
    return [advice for make in every for advice in make(context, found.leader, found)][:MOST]


def _first_need(dataset: Dataset) -> str:
    """What a report without a leader lacks."""
    if not dataset.held_out_only:
        return "Hold out a domain."
    if dataset.has_average:
        return "Test on images of every held-out domain."
    return "Complete the runs: train every method with every held-out domain, with the same seeds."


def _cell(context: FigureContext, label: str, metric: str) -> TableCell:
    return cell_of(context.dataset, label, Column(detail_group(context.dataset), METRICS[metric]))


def _more_test_images(context: FigureContext, leader: str, found: Answer) -> Iterator[Advice]:
    cell = _cell(context, leader, ACC_U.key)
    if cell.too_few and cell.sample:
        yield Advice(
            "Test on more images before you decide anything.",
            f"The headline rests on {cell.sample.images:,} images: chance alone moves it by about "
            f"{cell.sample.half_width:.0f} points.",
        )


def _method(context: FigureContext, leader: str, found: Answer) -> Iterator[Advice]:
    yield method_advice(context.dataset, leader, found)


def _domains(context: FigureContext, leader: str, found: Answer) -> Iterator[Advice]:
    seen, unseen = source_accuracy(context.dataset, leader), _cell(context, leader, ACC_U.key)
    if seen is not None and unseen.mean is not None and not unseen.too_few and seen - unseen.mean > LARGE:
        yield Advice(
            "Collect images from more domains, above all from where the model will be used.",
            f"On a new domain it is right for {unseen.mean:.0f} of 100 images instead of {seen:.0f}.",
        )


def _few_and_rich(context: FigureContext, leader: str, metric: str = "") -> tuple[float, float] | None:
    """The metric for classes with few and with many training images, or with a medium number; None on few images."""
    few, many, medium = (_cell(context, leader, f"{metric}{shot}") for shot in ("few", "many", "medium"))
    rich = medium if many.mean is None or many.too_few else many
    if few.mean is None or rich.mean is None or few.too_few or rich.too_few:
        return None
    return few.mean, rich.mean


def _rare_classes(context: FigureContext, leader: str, found: Answer) -> Iterator[Advice]:
    shares = _few_and_rich(context, leader)
    if shares is None or shares[1] - shares[0] <= LARGE:
        return
    few, rich = shares
    yield Advice(
        "Collect more images of the rare classes.",
        f"With {SHOT_MEANING['few']} training images it is right for {few:.0f} of 100 images, otherwise for up to "
        f"{rich:.0f}. {_weakest(context, leader)}",
    )


def _rare_unknown(context: FigureContext, leader: str, found: Answer) -> Iterator[Advice]:
    shares = _few_and_rich(context, leader, "known_called_unknown_")
    if shares and shares[0] - shares[1] > LARGE:
        yield Advice(
            "Look at the images that it calls 'unknown': many are of rare classes.",
            f"It says so, wrongly, to {shares[0]:.0f} of 100 images of classes with {SHOT_MEANING['few']} training "
            f"images, otherwise to as few as {shares[1]:.0f}.",
        )


def _weakest(context: FigureContext, leader: str) -> str:
    """The trained classes with the lowest accuracy, with their training images."""
    dataset = context.dataset
    images, accuracy, trained = class_accuracy(dataset)
    values = accuracy[list(dataset.rows).index(leader)]
    order = [int(i) for i in np.argsort(values) if np.isfinite(values[i])][:NAMED]
    texts = [
        f"{isolated(dataset.classes[trained[i]])} ({100 * values[i]:.0f} of 100 right, "
        f"{count(round(images[i]), 'training image')})"
        for i in order
    ]
    return f"Weakest: {', '.join(texts)}."


def _pairs(context: FigureContext, leader: str, found: Answer) -> Iterator[Advice]:
    seen, unseen = (_cell(context, leader, key) for key in ("seen_pairs", "unseen_pairs_sources"))
    if seen.mean is None or unseen.mean is None or seen.too_few or unseen.too_few or seen.mean - unseen.mean <= LARGE:
        return
    task = context.dataset.rows[leader][0].task
    if task.trained_in_test:
        return  # of the seen pairs, training images are right in any case
    alone = [task.classes[c] for c in np.flatnonzero((task.seen.sum(axis=0) == 1) & known_mask(task))]
    names = few([isolated(name) for name in alone], NAMED)
    one = f" Training images from one domain only: {names}." if alone else ""
    yield Advice(
        "Collect the classes that are missing in some domains.",
        f"If a class has training images in the same domain, it is right for {seen.mean:.0f} of 100 images; if only "
        f"in other domains, for {unseen.mean:.0f}.{one}",
    )


def _unknown(context: FigureContext, leader: str, found: Answer) -> Iterator[Advice]:
    opened = open_answers(context.dataset, leader)
    if opened and not opened.sample.too_few and opened.called_unknown < 50:
        yield Advice(
            "Do not rely on it to notice unknown classes.",
            f"It says 'unknown' to {opened.called_unknown:.0f} of 100 images of classes that it does not know "
            f"({opened.where}).",
        )


def _refusals(context: FigureContext, leader: str, found: Answer) -> Iterator[Advice]:
    right, known = _cell(context, leader, ACC_U.key), known_answers(context.dataset, leader)
    if right.mean is None or right.too_few or known is None or right.mean - known.named_right <= LARGE:
        return
    opened = open_answers(context.dataset, leader)
    if opened is None or opened.called_unknown >= 50:
        yield Advice(
            "Look for a lower threshold for 'unknown', on labelled images from where the model will be used.",
            f"On a domain that it has never seen, the true class comes first for {right.mean:.0f} of 100 images, but "
            f"only {known.named_right:.0f} are named right, because it says 'unknown' to the others. With a lower "
            "threshold it also names more images wrongly, and overlooks more unknown classes.",
        )


def _confidence(context: FigureContext, leader: str, found: Answer) -> Iterator[Advice]:
    sure = mean_confidence(context.dataset, leader)
    if sure and abs(sure.claimed - sure.right) > LARGE and not _cell(context, leader, ACC_U.key).too_few:
        yield Advice(
            "Do not read its confidence as a probability.",
            f"Its mean confidence is {sure.claimed:.0f} %, but it is right for {sure.right:.0f} % of the test images "
            f"({sure.where}).",
        )
