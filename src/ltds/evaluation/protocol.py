"""The evaluation protocol: every number of metrics.json, from the predictions for validation and test images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ltds.core.task import Task
from ltds.evaluation import metrics, openset
from ltds.evaluation.arrays import BoolArray, IntArray
from ltds.evaluation.choices import describe_choices
from ltds.evaluation.class_groups import SHOTS, answer_shares, class_rows, group_accuracies, known_mask
from ltds.evaluation.openset import OpenSetScores
from ltds.evaluation.table import PredictionTable

VERSION = 5
H_RULES = ("oracle", "fixed", "best", "softmax5")
ANSWERS = ("known_called_unknown", "named_right", "open_called_unknown")


def compute_metrics(test: PredictionTable, val: PredictionTable | None, task: Task) -> dict[str, Any]:
    """The content of metrics.json: fractions in [0,1], None where undefined.

    A prediction is the argmax of the softmax over all C columns. Accuracies and ece are over images of known classes.
    many, medium and few are means over the classes of the group that have images; the images of a class are pooled
    over domains. seen_pairs and unseen_pairs pool the images whose (domain, class) pair had, or did not have, training
    images. In "summary", `acc` is the mean over domains, names that end in _u are of the held-out domain, and all
    others pool every domain. per_class and pairs also give the argmax accuracy of open classes.

    known_called_unknown, named_right (given their own class, and not called unknown) and open_called_unknown are shares
    of images, and auroc_deployed the AUROC, of the model as it is used: with the score and the threshold of h_fixed.
    Those that end in many, medium and few are means over classes. mean_confidence is over images of known classes.
    """
    test.check_task("test", task)
    shape = (len(task.domains), len(task.classes))
    probabilities = test.probabilities
    scores = OpenSetScores.of(probabilities, test.labels, task.open_classes)
    released = openset.best_h(scores, openset.released_grid(probabilities))
    del probabilities  # (N,C) in float64 can be large and is not needed below
    hits, images = metrics.pair_counts(scores.correct, test.labels, test.domains, shape)
    validation = None if val is None else validation_metrics(val, task)
    thresholds = {} if validation is None else validation.pop("thresholds")
    chosen_on = {} if validation is None else validation.pop("threshold_images")
    temperature = None if validation is None else validation.pop("temperature")
    if temperature is None:  # nothing to fix it on: no threshold either, but the best possible H is of some interest
        temperature = openset.softening_temperature(openset.without_open(test.logits, task.open_classes))
    deployed = OpenSetScores.of_known_classes(test.logits, test.labels, task.open_classes, temperature)
    threshold = thresholds.get("h_fixed")
    called_unknown = deployed.confidence < (np.nan if threshold is None else threshold)
    unknown, _ = metrics.pair_counts(called_unknown, test.labels, test.domains, shape)
    named, _ = metrics.pair_counts(deployed.correct & ~called_unknown, test.labels, test.domains, shape)
    judged = images * (threshold is not None)  # by the rule for "unknown": without one, its shares are undefined

    def numbers(domains: list[int], mask: BoolArray) -> dict[str, Any]:
        seen = task.seen_in_domain[domains]
        accuracies = group_accuracies(hits[domains], images[domains], seen, task)
        answers = answer_shares(unknown[domains], named[domains], judged[domains], task)
        tested = {"tested_open_classes": int((images[domains].any(axis=0) & ~known_mask(task)).sum())}
        return accuracies | answers | _open_numbers(scores.where(mask), deployed.where(mask), thresholds) | tested

    per_domain = {name: numbers([d], test.domains == d) for d, name in enumerate(task.domains)}
    overall = numbers(list(range(shape[0])), np.ones(len(test.labels), dtype=np.bool_))
    summary = _summary(overall, per_domain, task)
    summary["h_released"] = released[0] if released else None
    sources = [task.domains.index(s) for s in task.sources]
    unseen = ~task.seen_in_domain[sources] & known_mask(task)
    summary["unseen_pairs_sources"] = metrics.accuracy(hits[sources][unseen], images[sources][unseen])
    return {
        "version": VERSION,
        "task": _describe(task),
        "choices": describe_choices(
            overall,
            released,
            per_domain,
            thresholds,
            chosen_on,
            temperature,
            val is not None,
            int(known_mask(task).sum()),
        ),
        "summary": summary,
        "validation": validation,
        "per_domain": per_domain,
        "per_class": class_rows(hits.sum(axis=0), images.sum(axis=0), unknown.sum(axis=0), judged.sum(axis=0), task),
        "pairs": {
            "accuracy": [metrics.accuracies(h, n) for h, n in zip(hits, images, strict=True)],
            "images": images.tolist(),
            "seen": task.seen_in_domain.tolist(),
        },
    }


def validation_metrics(val: PredictionTable, task: Task) -> dict[str, Any]:
    """Numbers from source-validation images of known classes; others are left out.

    accuracy (mean over source domains), accuracy of each domain, ece, and the thresholds and the temperature fixed on
    these images; threshold_images: on how many, those that are classified correctly.
    """
    val.check_task("val", task)
    scores, used = _source_scores(val, task)
    known_logits = openset.without_open(val.logits[used], task.open_classes)
    temperature = openset.softening_temperature(known_logits) if len(known_logits) else None
    right = known_logits.argmax(axis=1) == val.labels[used]
    return {
        **_source_accuracies(scores, val.domains[used], task),
        "ece": metrics.expected_calibration_error(scores.confidence, scores.correct),
        "thresholds": {
            "h_fixed": temperature and openset.struck_out_threshold(known_logits, val.labels[used], temperature),
            "h_softmax5": openset.percentile_threshold(scores, openset.SOFTMAX_PERCENTILE),
        },
        "threshold_images": {
            "h_fixed": int(np.count_nonzero(right)),
            "h_softmax5": int(np.count_nonzero(scores.correct)),
        },
        "temperature": temperature,
    }


def validation_accuracy(val: PredictionTable, task: Task) -> dict[str, Any]:
    """accuracy and per_domain of `validation_metrics`, to the last bit: all that an epoch needs to choose weights."""
    val.check_task("val", task)
    scores, used = _source_scores(val, task)
    return _source_accuracies(scores, val.domains[used], task)


def _source_scores(val: PredictionTable, task: Task) -> tuple[OpenSetScores, BoolArray]:
    """The scores of the validation images that count, and (N,) which these are: of known classes and source domains."""
    scores = OpenSetScores.of(val.probabilities, val.labels, task.open_classes)
    used = scores.known & np.isin(val.domains, [task.domains.index(s) for s in task.sources])
    return scores.where(used), used


def _source_accuracies(scores: OpenSetScores, domains: IntArray, task: Task) -> dict[str, Any]:
    """The accuracy on each source domain, and their mean, from the scores and domains of the images that count."""
    images = np.bincount(domains, minlength=len(task.domains))
    hits = np.bincount(domains[scores.correct], minlength=len(task.domains))
    shares = metrics.accuracies(hits, images)
    return {
        "accuracy": metrics.mean(shares),
        "per_domain": {source: shares[task.domains.index(source)] for source in task.sources},
    }


def _open_numbers(
    scores: OpenSetScores, deployed: OpenSetScores, thresholds: dict[str, float | None]
) -> dict[str, Any]:
    """Calibration and open-set numbers of some images; oracle and best thresholds are chosen on the same images."""
    oracle = openset.best_h(scores, openset.confidence_grid(scores.confidence))
    best = openset.optimal_h(deployed)
    known = scores.known
    return {
        "ece": metrics.expected_calibration_error(scores.confidence[known], scores.correct[known]),
        "mean_confidence": float(scores.confidence[known].mean()) if known.any() else None,
        "h_oracle": oracle[0] if oracle else None,
        "h_oracle_threshold": oracle[1] if oracle else None,
        "h_best": best[0] if best else None,
        "h_best_threshold": best[1] if best and np.isfinite(best[1]) else None,
        "h_fixed": _h_at(deployed, thresholds.get("h_fixed")),
        "h_softmax5": _h_at(scores, thresholds.get("h_softmax5")),
        "auroc": openset.auroc(scores),
        "auroc_deployed": openset.auroc(deployed),
        "oscr": openset.oscr(scores),
        "known_images": int(np.count_nonzero(known)),
        "open_images": int(np.count_nonzero(~known)),
    }


def _h_at(scores: OpenSetScores, threshold: float | None) -> float | None:
    at = None if threshold is None else openset.best_h(scores, np.array([threshold]))
    return at[0] if at else None


def _summary(overall: dict[str, Any], per_domain: dict[str, dict[str, Any]], task: Task) -> dict[str, Any]:
    held_out = {} if task.held_out is None else per_domain[task.held_out]
    unseen = {f"{name}_u": held_out.get(name) for name in ("auroc", "oscr", *ANSWERS)}
    of_shots = [f"{name}_{shot}" for name in ("known_called_unknown", "named_right") for shot in SHOTS]
    pairs = ("seen_pairs", "unseen_pairs")
    pooled = ("auroc", "oscr", *SHOTS, *pairs, "macro_accuracy", "accuracy", "ece", *ANSWERS, *of_shots)
    return {
        "acc_u": held_out.get("accuracy"),
        "acc": metrics.mean(numbers["accuracy"] for numbers in per_domain.values()),
        **{f"h_{rule}": overall[f"h_{rule}"] for rule in H_RULES},
        **{f"h_u_{rule}": held_out.get(f"h_{rule}") for rule in H_RULES},
        **{name: overall[name] for name in pooled},
        **unseen,
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
