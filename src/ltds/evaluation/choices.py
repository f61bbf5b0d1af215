"""How each number of metrics.json that depends on a choice was chosen, and on which split."""

from __future__ import annotations

from typing import Any

from ltds.evaluation.class_groups import FEW, MANY

MODEL_RULE = "best mean over source domains of plain validation accuracy, checked after each epoch"
WINDOW_RULE = (
    "mean of the weights over the window of steps that SWAD chose by the validation loss (averaging.name=swad)"
)
ORACLE_RULE = "best of 10 thresholds spaced evenly between the smallest and largest max-softmax of the evaluated images"
RELEASED_RULE = (
    "best of 10 thresholds spaced evenly between the smallest entry of the probability matrix and its largest"
)
FIXED_RULE = (
    "the score is the softened confidence in a known class; on source-validation images, the share of correctly "
    "classified images below the threshold is half the share of images above it when their own class is struck out; "
    "it is at least the 8th percentile of the scores of correctly classified images"
)
TWO_CLASSES_RULE = (
    "the score is the softened confidence in a known class; with fewer than three known classes the threshold is the "
    "8th percentile of the scores of correctly classified source-validation images"
)
SOFTMAX5_RULE = "5th percentile of max-softmax over correctly classified source-validation images"
BEST_RULE = "best of all thresholds on the softened confidence in a known class"
SHOTS_RULE = f"training images over all sources: many > {MANY}, medium {FEW}..{MANY}, few < {FEW}"


def describe_choices(
    overall: dict[str, Any],
    released: tuple[float, float] | None,
    per_domain: dict[str, dict[str, Any]],
    thresholds: dict[str, float | None],
    chosen_on: dict[str, int],
    temperature: float,
    validated: bool,
    known_classes: int,
) -> dict[str, dict[str, Any]]:
    """The "choices" of metrics.json: rule, split and threshold of each choice, and why a number is missing.

    `chosen_on`: how many images a threshold was chosen on, those that are classified correctly; its "images".
    """
    images = {"known": overall["known_images"], "open": overall["open_images"]}
    no_images = " and ".join(f"no test image of {kind} classes" for kind, count in images.items() if not count)
    no_threshold = "no correctly classified source-validation image" if validated else "no validation predictions"
    oracle = {"split": "test", "oracle": True, "why": no_images or None}

    def fixed(name: str, rule: str, score: str) -> dict[str, Any]:
        threshold = thresholds.get(name)
        why = no_images or (no_threshold if threshold is None else None)
        choice = {"rule": rule, "score": score, "threshold": threshold, "split": "val", "images": chosen_on.get(name)}
        return {**choice, "oracle": False, "why": why}

    fixed_rule = FIXED_RULE if known_classes > 2 else TWO_CLASSES_RULE
    averaged = [name for name, numbers in per_domain.items() if numbers["known_images"]]
    return {
        "model": {"rule": MODEL_RULE, "split": "val"},
        "h_oracle": {"rule": ORACLE_RULE, "threshold": overall["h_oracle_threshold"], **oracle},
        "h_released": {"rule": RELEASED_RULE, "threshold": released[1] if released else None, **oracle},
        "h_best": {"rule": BEST_RULE, "threshold": overall["h_best_threshold"], **oracle},
        "h_fixed": {**fixed("h_fixed", fixed_rule, "softened_confidence"), "temperature": temperature},
        "h_softmax5": fixed("h_softmax5", SOFTMAX5_RULE, "max_softmax"),
        "acc": {"rule": "mean over the domains that have test images of known classes", "domains": averaged},
        "shots": {"rule": SHOTS_RULE, "split": "train"},
    }
