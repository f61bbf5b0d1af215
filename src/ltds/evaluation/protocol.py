"""The protocol: every number of metrics.json, from what a model said of validation and test images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ltds.core.errors import DataError, expected
from ltds.core.task import Task
from ltds.evaluation import metrics, openset
from ltds.evaluation.metrics import Ints, Mask
from ltds.evaluation.openset import Verdicts
from ltds.evaluation.table import PredictionTable

VERSION = 1
MODEL_RULE = "best mean over source domains of plain validation accuracy, checked after each epoch"
ORACLE_RULE = "best of 10 thresholds spaced evenly between the smallest and largest max-softmax of the evaluated images"
RELEASED_RULE = (
    "best of 10 thresholds spaced evenly between the smallest entry of the probability matrix and its largest"
)
FIXED_RULE = "5th percentile of max-softmax over correctly classified source-validation images"
SHOTS_RULE = "training images over all sources: many > 100, medium 20..100, few < 20"
SHOTS = ("many", "medium", "few")


def evaluate(test: PredictionTable, val: PredictionTable | None, task: Task) -> dict[str, Any]:
    """All of metrics.json, ready for JSON: fractions in [0,1], None where undefined (METHODS 0.4).

    A prediction is the argmax of the softmax over all C columns. Accuracies and ece are over images of known classes;
    many, medium, few are means over the group's classes (with images) of per-class accuracy, images pooled over the
    domains in question; seen_pairs and unseen_pairs pool the images whose (domain, class) pair had, or had not,
    training images. `acc` is the mean over domains, all else in "summary" pools every domain, or (*_u) is of the
    held-out one. per_class and pairs give the plain argmax accuracy of open classes too.
    """
    _check("test", test, task)
    shape = (len(task.domains), len(task.classes))
    probabilities = test.probabilities
    verdicts = Verdicts.of(probabilities, test.labels, task.open_classes)
    released = openset.best_h(verdicts, openset.released_grid(probabilities))
    del probabilities  # (N,C) in float64 may be large, and is not needed below
    hits, images = metrics.pair_counts(verdicts.correct, test.labels, test.domains, shape)
    validation = None if val is None else validate(val, task)
    threshold = None if validation is None else validation.pop("threshold")

    def numbers(domains: list[int], of: Verdicts) -> dict[str, Any]:
        seen = task.seen_in_domain[domains]
        return _accuracies(hits[domains], images[domains], seen, task) | _open_numbers(of, threshold)

    per_domain = {name: numbers([d], verdicts.where(test.domains == d)) for d, name in enumerate(task.domains)}
    overall = numbers(list(range(shape[0])), verdicts)
    summary = _summary(overall, per_domain, task)
    summary["h_released"] = released[0] if released else None
    sources = [task.domains.index(s) for s in task.sources]
    unseen = ~task.seen_in_domain[sources] & ~_open(task)
    summary["unseen_pairs_sources"] = metrics.accuracy(hits[sources][unseen], images[sources][unseen])
    return {
        "version": VERSION,
        "task": _describe(task),
        "choices": _choices(overall, released, per_domain, threshold, val),
        "summary": summary,
        "validation": validation,
        "per_domain": per_domain,
        "per_class": _per_class(hits.sum(axis=0), images.sum(axis=0), task),
        "pairs": {
            "accuracy": [metrics.accuracies(h, n) for h, n in zip(hits, images, strict=True)],
            "images": images.tolist(),
            "seen": task.seen_in_domain.tolist(),
        },
    }


def validate(val: PredictionTable, task: Task) -> dict[str, Any]:
    """What source-validation images of known classes tell: accuracy (mean over source domains), accuracy of each
    domain, ece, threshold for H.

    Images of the held-out domain and of open classes, should there be any, are left out.
    """
    _check("val", val, task)
    sources = [task.domains.index(s) for s in task.sources]
    verdicts = Verdicts.of(val.probabilities, val.labels, task.open_classes)
    used = verdicts.known & np.isin(val.domains, sources)
    shape = (len(task.domains), len(task.classes))
    hits, images = metrics.pair_counts(verdicts.correct[used], val.labels[used], val.domains[used], shape)
    verdicts = verdicts.where(used)
    shares = metrics.accuracies(hits.sum(axis=1), images.sum(axis=1))
    return {
        "accuracy": metrics.mean(shares),
        "per_domain": {task.domains[d]: shares[d] for d in sources},
        "ece": metrics.expected_calibration_error(verdicts.score, verdicts.correct),
        "threshold": openset.fixed_threshold(verdicts),
    }


def shot_groups(task: Task) -> list[str]:
    """(C,) "many" (> 100 training images over all sources), "medium" (20..100), "few" (< 20) or "open" (none)."""
    counts = task.class_counts
    groups = np.select([counts > 100, counts >= 20, counts > 0], list(SHOTS), "open")
    return [str(group) for group in groups]


def _accuracies(hits: Ints, images: Ints, seen: Mask, task: Task) -> dict[str, float | None]:
    """The accuracies of some domains' known classes. hits, images, seen (domains,C)."""
    hits, images = hits * ~_open(task), images * ~_open(task)
    shots = np.array(shot_groups(task))
    return {
        "accuracy": metrics.accuracy(hits, images),
        "macro_accuracy": metrics.macro_accuracy(hits, images),
        **{s: metrics.macro_accuracy(hits[:, shots == s], images[:, shots == s]) for s in SHOTS},
        "seen_pairs": metrics.accuracy(hits[seen], images[seen]),
        "unseen_pairs": metrics.accuracy(hits[~seen], images[~seen]),
    }


def _open_numbers(verdicts: Verdicts, threshold: float | None) -> dict[str, Any]:
    """What scores tell of these images; each oracle stands beside the threshold that it chose on these very images."""
    oracle = openset.best_h(verdicts, openset.score_grid(verdicts.score))
    fixed = None if threshold is None else openset.best_h(verdicts, np.array([threshold]))
    known = verdicts.known
    return {
        "ece": metrics.expected_calibration_error(verdicts.score[known], verdicts.correct[known]),
        "h_oracle": oracle[0] if oracle else None,
        "h_oracle_threshold": oracle[1] if oracle else None,
        "h_fixed": fixed[0] if fixed else None,
        "auroc": openset.auroc(verdicts),
        "oscr": openset.oscr(verdicts),
        "known_images": int(np.count_nonzero(known)),
        "open_images": int(np.count_nonzero(~known)),
    }


def _summary(overall: dict[str, Any], per_domain: dict[str, dict[str, Any]], task: Task) -> dict[str, Any]:
    held_out = {} if task.held_out is None else per_domain[task.held_out]
    unseen = {f"{name}_u": held_out.get(name) for name in ("auroc", "oscr")}
    pooled = ("auroc", "oscr", *SHOTS, "seen_pairs", "unseen_pairs", "macro_accuracy", "accuracy", "ece")
    return {
        "acc_u": held_out.get("accuracy"),
        "acc": metrics.mean(numbers["accuracy"] for numbers in per_domain.values()),
        "h_oracle": overall["h_oracle"],
        "h_fixed": overall["h_fixed"],
        "h_u_oracle": held_out.get("h_oracle"),
        "h_u_fixed": held_out.get("h_fixed"),
        **{name: overall[name] for name in pooled},
        **unseen,
    }


def _choices(
    overall: dict[str, Any],
    released: tuple[float, float] | None,
    per_domain: dict[str, dict[str, Any]],
    threshold: float | None,
    val: PredictionTable | None,
) -> dict[str, dict[str, Any]]:
    """How each number that depends on a choice was chosen, on which split, and why it is missing where it is."""
    images = {"known": overall["known_images"], "open": overall["open_images"]}
    no_images = " and ".join(f"no test image of {kind} classes" for kind, count in images.items() if not count)
    no_threshold = "no validation predictions" if val is None else "no correctly classified source-validation image"
    oracle = {"split": "test", "oracle": True, "why": no_images or None}
    fixed_why = no_images or (no_threshold if threshold is None else None)
    averaged = [name for name, numbers in per_domain.items() if numbers["known_images"]]
    return {
        "model": {"rule": MODEL_RULE, "split": "val"},
        "h_oracle": {"rule": ORACLE_RULE, "threshold": overall["h_oracle_threshold"], **oracle},
        "h_released": {"rule": RELEASED_RULE, "threshold": released[1] if released else None, **oracle},
        "h_fixed": {"rule": FIXED_RULE, "threshold": threshold, "split": "val", "oracle": False, "why": fixed_why},
        "acc": {"rule": "mean over the domains that have test images of known classes", "domains": averaged},
        "shots": {"rule": SHOTS_RULE, "split": "train"},
    }


def _describe(task: Task) -> dict[str, Any]:
    return {
        "name": task.name,
        "held_out": task.held_out,
        "domains": list(task.domains),
        "sources": list(task.sources),
        "classes": len(task.classes),
        "open_classes": [task.classes[c] for c in task.open_classes],
    }


def _per_class(hits: Ints, images: Ints, task: Task) -> list[dict[str, Any]]:
    columns = (task.classes, task.class_counts.tolist(), shot_groups(task), metrics.accuracies(hits, images), images)
    return [
        {"class": name, "train_images": trained, "shot": shot, "accuracy": share, "images": int(count)}
        for name, trained, shot, share, count in zip(*columns, strict=True)
    ]


def _open(task: Task) -> Mask:
    """(C,) which classes no source trains on."""
    mask: Mask = task.class_counts == 0
    return mask


def _check(split: str, table: PredictionTable, task: Task) -> None:
    """Refuse a table that belongs to another task."""
    remedy = (
        f"The predictions are of another dataset than task '{task.name}': delete the run's file DONE, then "
        "'ltds train --resume RUN' predicts again."
    )
    sizes = (("label", table.labels, len(task.classes)), ("domain", table.domains, len(task.domains)))
    for what, column, size in sizes:
        if len(column) and not 0 <= column.min() <= column.max() < size:
            got = f"{column.min()}..{column.max()}"
            raise DataError(expected(f"every {what} of the {split} predictions", f"in 0..{size - 1}", got, remedy))
    width = table.logits.shape[1]
    if width != len(task.classes):
        got = f"{width} columns"
        raise DataError(expected(f"the {split} logits", f"of {len(task.classes)} classes", got, remedy))
