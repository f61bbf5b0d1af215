"""Metric: the numbers of a report, what each means, and whether higher is better."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ltds.evaluation.class_groups import SHOT_MEANING, SHOTS


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


def _answers(end: str, suffix: str, images: str) -> tuple[Metric, ...]:
    """What the model answers to these `images` as it is used. `end` of the keys, `suffix` of the names."""
    return (
        Metric(
            f"named_right{end}",
            f"Named right{suffix}",
            f"Share of the known {images} that are given their own class and not called unknown, by the rule of H "
            "fixed.",
            f"of 100 known {images}, how many it names right as it is used, when it may say 'unknown'",
            choice="h_fixed",
        ),
        Metric(
            f"known_called_unknown{end}",
            f"Wrongly unknown{suffix}",
            f"Share of the known {images} that are called unknown by the rule of H fixed; lower is better.",
            f"of 100 known {images}, how many it calls unknown; lower is better",
            higher_is_better=False,
            choice="h_fixed",
        ),
        Metric(
            f"open_called_unknown{end}",
            f"Rightly unknown{suffix}",
            f"Share of the open {images} that are called unknown by the rule of H fixed.",
            f"of 100 {images} whose class it does not know, how many it calls unknown",
            choice="h_fixed",
        ),
    )


def _answers_by_shot(shot: str) -> tuple[Metric, ...]:
    images = f"known images of classes with {SHOT_MEANING[shot]} training images"
    named, wrongly, _ = _answers(f"_{shot}", f", {shot}", "images")
    mean = "mean over these classes"
    return (
        replace(named, meaning=f"Named right, for {images}; {mean}.", plain=f"the same as Named right, for {images}"),
        replace(
            wrongly,
            meaning=f"Wrongly unknown, for {images}; {mean}; lower is better.",
            plain=f"the same as Wrongly unknown, for {images}; lower is better",
        ),
    )


_ALL = (
    Metric(
        "acc_u",
        "Acc-U",
        "Accuracy on the held-out domain, which was not used in training; without open classes, and before the model "
        "may say 'unknown'.",
        "of 100 images from a domain that it never saw in training, for how many the true class comes first, before it "
        "may say 'unknown'",
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
        "Mean over all domains of the accuracy in each; without open classes, and before the model may say 'unknown'.",
        "of 100 test images from all domains, with the same weight for each domain, for how many the true class comes "
        "first, before it may say 'unknown'",
        choice="model",
    ),
    Metric(
        "macro_accuracy",
        "Macro",
        "Mean over classes of the accuracy in each: every class has the same weight.",
        "of 100 test images, for how many the true class comes first if a rare class counts as much as a frequent one",
    ),
    *(
        metric
        for end, name, where in (("_u", "-U", "of the held-out domain"), ("", "", "of all domains"))
        for metric in _answers(end, name, f"test images {where}")
    ),
    *(metric for shot in SHOTS for metric in _answers_by_shot(shot)),
    Metric(
        "h_oracle",
        "H oracle",
        "Harmonic mean of the accuracy on known classes and the share of open images rejected, at the best of ten "
        "evenly spaced thresholds (the grid of DAML's code), chosen on the test labels: a deployed model cannot do "
        "that.",
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
        "auroc_u",
        "AUROC-U",
        "AUROC on the held-out domain: known and open images are equally new in style.",
        "the same as AUROC, on the domain that it never saw",
    ),
    Metric(
        "oscr_u",
        "OSCR-U",
        "OSCR on the held-out domain.",
        "the same as OSCR, on the domain that it never saw",
    ),
    Metric(
        "auroc",
        "AUROC",
        "How well confidence ranks known above open images of all domains together, so that a domain in which it is "
        "less confident counts, too; without a threshold; 50 is chance level.",
        "how often it is more confident on an image of a class it knows than on one of a class it does not; 50 is a "
        "coin toss",
    ),
    Metric(
        "oscr",
        "OSCR",
        "Area under the curve of correct classification against false acceptance of open images, of all domains "
        "together; without a threshold.",
        "how many known images it names right while it rejects unknown ones, over all thresholds",
    ),
    Metric(
        "many",
        "Many",
        "Accuracy on classes with many training images.",
        "for how many of 100 images the true class comes first, for classes with "
        f"{SHOT_MEANING['many']} training images",
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
        "for how many of 100 images the true class comes first, if it has training images in the same domain",
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
        "Expected calibration error: how far confidence is from accuracy; lower is better. Few images raise it: that "
        "of a perfectly calibrated model is about 8 % with 200 images and 4 % with 1,000.",
        "by how many points its stated confidence is off on average; lower is better, and few images raise it",
        higher_is_better=False,
    ),
)

METRICS = {metric.key: metric for metric in _ALL}
MAIN = tuple(METRICS[key] for key in ("acc_u", "acc", "h_oracle"))
UNEVEN_MAIN = tuple(METRICS[key] for key in ("acc_u", "macro_u", "acc", "macro_accuracy", "h_oracle"))
