"""Metric: the numbers of a report, what each means, and whether higher is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One entry of the summary in metrics.json. `choice`: the entry of `choices` on which it depends."""

    key: str
    name: str
    meaning: str
    higher_is_better: bool = True
    choice: str = ""

    @property
    def heading(self) -> str:
        return f"{self.name} %"


_ALL = (
    Metric(
        "acc_u",
        "Acc-U",
        "Accuracy on the held-out domain, which was not used in training; without open classes.",
        True,
        "model",
    ),
    Metric("acc", "Acc", "Mean over all domains of the accuracy in each; without open classes.", True, "model"),
    Metric(
        "h_oracle",
        "H oracle",
        "Harmonic mean of the accuracy on known classes and the share of open images rejected, at the best of ten "
        "evenly spaced thresholds (the paper's grid), chosen on the test labels: a deployed model cannot do that.",
        True,
        "h_oracle",
    ),
    Metric(
        "h_fixed",
        "H fixed on validation",
        "H of the model as it is used: unknown if the largest logit of a known class is below a threshold fixed on "
        "source validation images, without test labels.",
        True,
        "h_fixed",
    ),
    Metric(
        "h_best",
        "H best possible",
        "H at the best of all thresholds on the largest logit of a known class, chosen on the test labels: the limit "
        "of H fixed on validation.",
        True,
        "h_best",
    ),
    Metric(
        "h_softmax5",
        "H at the 5th percentile",
        "H at the 5th percentile of the softmax confidence of correct validation images, a common rule.",
        True,
        "h_softmax5",
    ),
    Metric("h_u_oracle", "H-U oracle", "H oracle on the images of the held-out domain only.", True, "h_oracle"),
    Metric("h_u_fixed", "H-U fixed on validation", "H fixed on validation, on the held-out domain.", True, "h_fixed"),
    Metric(
        "auroc", "AUROC", "How well confidence ranks known above open images; without a threshold; 50 is chance level."
    ),
    Metric(
        "oscr",
        "OSCR",
        "Area under the curve of correct classification against false acceptance of open images; without a threshold.",
    ),
    Metric("many", "Many", "Accuracy on classes with many training images.", True, "shots"),
    Metric("medium", "Medium", "Accuracy on classes between many and few.", True, "shots"),
    Metric("few", "Few", "Accuracy on classes with few training images.", True, "shots"),
    Metric("seen_pairs", "Seen pairs", "Accuracy on images whose class had training images in the same domain."),
    Metric(
        "unseen_pairs",
        "Unseen pairs",
        "Accuracy on images whose class had training images, but not in the same domain; all in the held-out one.",
    ),
    Metric(
        "unseen_pairs_sources",
        "Unseen pairs in sources",
        "The same within the source domains: low if a model mistakes the style of a domain for the class.",
    ),
    Metric("ece", "ECE", "Expected calibration error: how far confidence is from accuracy; lower is better.", False),
    Metric("macro_accuracy", "Macro", "Mean over classes of the accuracy in each: every class has the same weight."),
)

METRICS = {metric.key: metric for metric in _ALL}
MAIN = tuple(METRICS[key] for key in ("acc_u", "acc", "h_oracle"))
DETAIL = tuple(metric for metric in _ALL if metric not in MAIN)
