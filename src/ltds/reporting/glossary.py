"""Metric: the numbers of a report, what each means, and which way is up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One entry of metrics.json's summary. `choice` names the entry of `choices` that says what was chosen where."""

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
        "Accuracy on the held-out domain, which training never saw; open classes left out.",
        True,
        "model",
    ),
    Metric("acc", "Acc", "Mean over all domains of the accuracy in each; open classes left out.", True, "model"),
    Metric(
        "h_oracle",
        "H oracle",
        "Harmonic mean of accuracy on known classes and of rejecting open ones, at the threshold that is best on the "
        "test labels themselves: an upper limit, not what a deployed model reaches.",
        True,
        "h_oracle",
    ),
    Metric(
        "h_fixed", "H fixed on validation", "The same H, at a threshold fixed without test labels.", True, "h_fixed"
    ),
    Metric("h_u_oracle", "H-U oracle", "H oracle on the images of the held-out domain alone.", True, "h_oracle"),
    Metric("h_u_fixed", "H-U fixed on validation", "H fixed on validation, on the held-out domain.", True, "h_fixed"),
    Metric("auroc", "AUROC", "How well confidence ranks known above open images; needs no threshold; 50 is chance."),
    Metric("oscr", "OSCR", "Area under correct classification against false acceptance of open images; no threshold."),
    Metric("many", "Many", "Accuracy on classes with many training images.", True, "shots"),
    Metric("medium", "Medium", "Accuracy on classes in between.", True, "shots"),
    Metric("few", "Few", "Accuracy on classes with few training images.", True, "shots"),
    Metric("seen_pairs", "Seen pairs", "Accuracy on images whose class was trained on in their own domain."),
    Metric(
        "unseen_pairs",
        "Unseen pairs",
        "Accuracy on images whose class was trained on, but not in their domain, as in all of the held-out one.",
    ),
    Metric(
        "unseen_pairs_sources",
        "Unseen pairs in sources",
        "The same within the source domains: what a model loses by taking a domain's style for the class.",
    ),
    Metric("ece", "ECE", "Expected calibration error: how far confidence is from accuracy; lower is better.", False),
    Metric("macro_accuracy", "Macro", "Mean over classes of the accuracy in each, so that every class counts alike."),
)

METRICS = {metric.key: metric for metric in _ALL}
MAIN = tuple(METRICS[key] for key in ("acc_u", "acc", "h_oracle"))
DETAIL = tuple(metric for metric in _ALL if metric not in MAIN)
