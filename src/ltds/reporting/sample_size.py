"""How many test images a number rests on, and whether that is too few to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ltds.evaluation.arrays import IntArray
from ltds.evaluation.class_groups import SHOTS, known_mask, shot_groups
from ltds.evaluation.metrics import FEW_IMAGES
from ltds.reporting.run import Run

WIDEST = 10.0  # percentage points to either side
Z = 1.959964  # two-sided 95 % of a normal distribution
UNSEEN = ("acc_u", "macro_u", "h_u_oracle", "h_u_fixed")  # each held-out domain has other images
RANKED = ("auroc", "oscr")


@dataclass(frozen=True)
class Sample:
    """Test images behind a number, and by how many points chance alone moves it (half of a 95 % interval).

    A number over known and open images rests on the smaller kind; then `kind` says which one that is.
    """

    images: int
    half_width: float
    kind: str = ""

    @property
    def too_few(self) -> bool:
        """The rule by which numbers are greyed and marked."""
        return self.images < FEW_IMAGES or self.half_width > WIDEST

    @property
    def text(self) -> str:
        return f"{self.images:,}{f' {self.kind}' if self.kind else ''}"

    @property
    def reason(self) -> str:
        """Why the number is marked, in one sentence."""
        images = f"{self.text} image{'' if self.images == 1 else 's'}"
        return f"Too few images to trust it: {images}; chance alone moves it by about {self.half_width:.0f} points."


def sample_of(run: Run, metric: str, percent: float) -> Sample | None:
    """The images behind this value of a metric in a run; None if the run did not record its test images."""
    images = run.test_images
    if images is None:
        return None
    known = known_mask(run.task)
    if metric.startswith("h_") or metric in RANKED:
        of_kinds = (_different([run], metric, "known"), _different([run], metric, "open"))
        return _of_both_kinds(*of_kinds, metric)
    return _of_parts(_parts(run, metric, images * known), percent)


def over_domains(parts: Sequence[tuple[Run, Sample]], metric: str) -> Sample | None:
    """The sample of a mean over held-out domains, from a run on each and its sample.

    Its images are the different ones of all runs. A test image is often predicted in several of them: it counts once.
    """
    if not parts:
        return None
    widths = [sample.half_width for _, sample in parts]
    width = mean_width(widths) if metric in UNSEEN else sum(widths) / len(widths)
    known, opened = (_different([run for run, _ in parts], metric, kind) for kind in ("known", "open"))
    if parts[0][1].kind:
        return Sample(min(known, opened), width, "open" if opened < known else "known")
    return Sample(known, width)


def _different(runs: Iterable[Run], metric: str, kind: Literal["known", "open"]) -> int:
    """How many different images of known or open classes a metric rests on in some of these runs.

    The test images of a pair of domain and class in one run contain those in another, or are the same.
    """
    largest: IntArray | None = None
    for run in runs:
        if run.test_images is not None:
            known = known_mask(run.task)
            counts = _counted(run, metric, run.test_images * (known if kind == "known" else ~known))
            largest = counts if largest is None else np.maximum(largest, counts)
    return 0 if largest is None else int(largest.sum())


def half_width(percent: float, images: float) -> float:
    """Half of Wilson's 95 % interval of a share, in points. It is wide for few images even where all are right."""
    share = min(1.0, max(0.0, percent / 100))
    inside = share * (1 - share) / images + Z**2 / (4 * images**2)
    return 100 * Z / (1 + Z**2 / images) * math.sqrt(inside)


def mean_width(widths: Sequence[float]) -> float:
    """Half-width of the mean of independent numbers."""
    return math.sqrt(sum(width**2 for width in widths)) / len(widths)


def is_uneven(runs: Iterable[Run]) -> bool:
    """Whether some known class has more than twice the test images of another, in all or in the held-out domain."""
    for run in runs:
        if run.test_images is not None:
            known = run.test_images[:, known_mask(run.task)]
            for of_class in (known.sum(axis=0), known[_held_out(run)].sum(axis=0)):
                tested = of_class[of_class > 0]
                if tested.size and tested.max() > 2 * tested.min():
                    return True
    return False


def _held_out(run: Run) -> list[int]:
    return [d for d, name in enumerate(run.task.domains) if name == run.task.held_out]


def _of_both_kinds(known: int, opened: int, metric: str) -> Sample | None:
    if not known or not opened:
        return None
    if metric in RANKED:  # the standard error of a rank statistic without any signal, its widest
        width = 100 * Z * math.sqrt((known + opened + 1) / (12 * known * opened))
    else:  # H moves half as much as each of its two shares, where these are equal
        width = mean_width([half_width(50, known), half_width(50, opened)])
    return Sample(min(known, opened), width, "open" if opened < known else "known")


def _counted(run: Run, metric: str, images: IntArray) -> IntArray:
    """images (G,C) of each pair of domain and class, without those that the metric leaves out."""
    seen, counts = run.task.seen_in_domain, np.array(images)
    if metric in UNSEEN:
        counts[[d for d in range(len(counts)) if d not in _held_out(run)]] = 0
    elif metric in SHOTS:
        counts[:, np.array(shot_groups(run.task)) != metric] = 0
    elif metric == "seen_pairs":
        counts[~seen] = 0
    elif metric in ("unseen_pairs", "unseen_pairs_sources"):
        counts[seen] = 0
        if metric == "unseen_pairs_sources":
            counts[_held_out(run)] = 0
    return counts


def _parts(run: Run, metric: str, images: IntArray) -> list[int]:
    """Test images of each part of which the metric is the mean; a single part if it pools its images. images (G,C)."""
    counts = _counted(run, metric, images)
    if metric in ("macro_u", "macro_accuracy", *SHOTS):
        parts = counts.sum(axis=0)
    else:
        parts = counts.sum(axis=1) if metric == "acc" else counts.sum()
    return [int(n) for n in np.atleast_1d(parts) if n]


def _of_parts(parts: Sequence[int], percent: float) -> Sample | None:
    """A mean over parts, which varies as much as one share over `equivalent` images.

    Intervals of the single parts must not be combined: Wilson's for one image is half as wide as chance moves it.
    """
    if not parts:
        return None
    equivalent = len(parts) ** 2 / sum(1 / n for n in parts)
    return Sample(sum(parts), half_width(percent, equivalent))
