"""Metric: the numbers of a report, what each means, and whether higher is better."""

from __future__ import annotations

from dataclasses import dataclass

from ltds.evaluation.class_groups import SHOT_MEANING


@dataclass(frozen=True)
class Metric:
    """One entry of the summary in metrics.json, or macro_u, which a report adds.

    `plain` explains it to someone who reads such a number for the first time. `choice`: the entry of `choices` on
    which it depends.
    """

    key: str
    name: str
    meaning: str
    plain: str
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
        "of 100 images from a domain that it never saw in training, how many it names right",
        choice="model",
    ),
    Metric(
        "macro_u",
        "Macro-U",
        "Mean over classes of the accuracy on the held-out domain: every class has the same weight.",
        "the same as Acc-U, but a rare class counts as much as a frequent one",
        choice="model",
    ),
    Metric(
        "acc",
        "Acc",
        "Mean over all domains of the accuracy in each; without open classes.",
        "of 100 test images from all domains, with the same weight for each domain, how many it names right",
        choice="model",
    ),
    Metric(
        "macro_accuracy",
        "Macro",
        "Mean over classes of the accuracy in each: every class has the same weight.",
        "of 100 test images, how many it names right if a rare class counts as much as a frequent one",
    ),
    Metric(
        "h_oracle",
        "H oracle",
        "Harmonic mean of the accuracy on known classes and the share of open images rejected, at the best of ten "
        "evenly spaced thresholds (the paper's grid), chosen on the test labels: a deployed model cannot do that.",
        "how well it both names what it knows and says 'unknown' to what it does not, at a threshold that was chosen "
        "on the test images; high only if both are high",
        choice="h_oracle",
    ),
    Metric(
        "h_fixed",
        "H fixed on validation",
        "H of the model as it is used: unknown if its softened confidence in a known class is below a threshold fixed "
        "on source validation images, without test labels.",
        "the same balance as H oracle, for the model as you would use it",
        choice="h_fixed",
    ),
    Metric(
        "h_best",
        "Limit of H fixed",
        "H at the best of all thresholds on the softened confidence in a known class, chosen on the test labels: what "
        "H fixed on validation could reach at most. H oracle uses another confidence, so it may be higher.",
        "the highest value that H fixed could have, at any threshold",
        choice="h_best",
    ),
    Metric(
        "h_softmax5",
        "H at the 5th percentile",
        "H at the 5th percentile of the softmax confidence of correct validation images, a common rule.",
        "H with a common rule for the threshold",
        choice="h_softmax5",
    ),
    Metric(
        "h_u_oracle",
        "H-U oracle",
        "H oracle on the images of the held-out domain only.",
        "H oracle on the domain that it never saw",
        choice="h_oracle",
    ),
    Metric(
        "h_u_fixed",
        "H-U fixed on validation",
        "H fixed on validation, on the held-out domain.",
        "H of the model as you would use it, on the domain that it never saw",
        choice="h_fixed",
    ),
    Metric(
        "auroc",
        "AUROC",
        "How well confidence ranks known above open images; without a threshold; 50 is chance level.",
        "how often it is more confident on an image of a class it knows than on one of a class it does not; 50 is a "
        "coin toss",
    ),
    Metric(
        "oscr",
        "OSCR",
        "Area under the curve of correct classification against false acceptance of open images; without a threshold.",
        "how many known images it names right while it rejects unknown ones, over all thresholds",
    ),
    Metric(
        "many",
        "Many",
        "Accuracy on classes with many training images.",
        f"how many of 100 images it names right, for classes with {SHOT_MEANING['many']} training images",
        choice="shots",
    ),
    Metric(
        "medium",
        "Medium",
        "Accuracy on classes between many and few.",
        f"the same for classes with {SHOT_MEANING['medium']} training images",
        choice="shots",
    ),
    Metric(
        "few",
        "Few",
        "Accuracy on classes with few training images.",
        f"the same for classes with {SHOT_MEANING['few']} training images",
        choice="shots",
    ),
    Metric(
        "seen_pairs",
        "Seen pairs",
        "Accuracy on images whose class had training images in the same domain.",
        "how many of 100 images it names right, if their class has training images in the same domain",
    ),
    Metric(
        "unseen_pairs",
        "Unseen pairs",
        "Accuracy on images whose class had training images, but not in the same domain; all in the held-out one.",
        "the same, if their class has training images in other domains only",
    ),
    Metric(
        "unseen_pairs_sources",
        "Unseen pairs in sources",
        "The same within the source domains: low if a model mistakes the style of a domain for the class.",
        "the same, within the domains that it was trained on",
    ),
    Metric(
        "ece",
        "ECE",
        "Expected calibration error: how far confidence is from accuracy; lower is better.",
        "by how many points its stated confidence is off on average; lower is better",
        higher_is_better=False,
    ),
)

METRICS = {metric.key: metric for metric in _ALL}
MAIN = tuple(METRICS[key] for key in ("acc_u", "acc", "h_oracle"))
UNEVEN_MAIN = tuple(METRICS[key] for key in ("acc_u", "macro_u", "acc", "macro_accuracy", "h_oracle"))
