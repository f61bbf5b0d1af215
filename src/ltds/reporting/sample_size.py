"""How many test images a number rests on, and whether that is too few to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ltds.core.text import count
from ltds.evaluation.arrays import IntArray
from ltds.evaluation.class_groups import SHOTS, known_mask, shot_groups
from ltds.evaluation.metrics import ECE_BINS, FEW_IMAGES
from ltds.reporting.run import Run

WIDEST = 10.0  # percentage points to either side
Z = 1.959964  # two-sided 95 % of a normal distribution
PAIRS = 26  # of shares with the same H
RANKED = ("auroc", "oscr", "auroc_u", "oscr_u")
OF_OPEN = ("open_called_unknown", "open_called_unknown_u")


@dataclass(frozen=True)
class Sample:
    """Test images behind a number, and by how many points chance alone moves it (half of a 95 % interval).

    A number over known and open images rests on the smaller kind; then `kind` says which one that is. If these are the
    open ones, `open_classes` says of how many classes they are.
    """

    images: int
    half_width: float
    kind: str = ""
    open_classes: int = 0

    @property
    def too_few(self) -> bool:
        """The rule by which numbers are greyed and marked."""
        return self.images < FEW_IMAGES or self.half_width > WIDEST

    @property
    def text(self) -> str:
        return " ".join(filter(None, (f"{self.images:,}", self.kind, self._classes)))

    @property
    def _classes(self) -> str:
        return f"of {count(self.open_classes, 'class')}" if self.open_classes else ""

    @property
    def basis(self) -> str:
        """As `text`, in a sentence: "84 open images of 2 classes"."""
        noun = "image" if self.images == 1 else "images"
        return " ".join(filter(None, (f"{self.images:,}", self.kind, noun, self._classes)))

    @property
    def reason(self) -> str:
        """Why the number is marked, in one sentence."""
        return f"Too few images to trust it: {self.basis}; chance alone moves it by about {self.half_width:.0f} points."


def sample_of(run: Run, metric: str, percent: float) -> Sample | None:
    """The images behind this value of a metric in a run; None if the run did not record its test images."""
    images = run.test_images
    if images is None:
        return None
    if metric.startswith("h_") or metric in RANKED or metric in OF_OPEN:
        known, opened = (int(_different([run], metric, kind).sum()) for kind in ("known", "open"))
        if not opened or not (known or metric in OF_OPEN):
            return None
        return _of_kinds([run], metric, _open_set_width(run, metric, percent, known, opened))
    parts = _parts(run, metric, images * known_mask(run.task))
    if metric == "ece" and parts:
        return Sample(sum(parts), calibration_bias(sum(parts)))
    return sample_of_parts(parts, percent)


def over_domains(parts: Sequence[tuple[Run, Sample]], metric: str) -> Sample | None:
    """The sample of a mean over held-out domains, from a run on each and its sample.

    Its images are the different ones of all runs. A test image is often predicted in several of them: it counts once.
    """
    if not parts:
        return None
    widths = [sample.half_width for _, sample in parts]
    width = mean_width(widths) if _is_unseen(metric) else sum(widths) / len(widths)
    runs = [run for run, _ in parts]
    if parts[0][1].kind:
        return _of_kinds(runs, metric, width)
    return Sample(int(_different(runs, metric, "known").sum()), width)


def _of_kinds(runs: Sequence[Run], metric: str, width: float) -> Sample:
    """The sample of a metric that rests on open images, or on known and open ones."""
    known, opened = (_different(runs, metric, kind) for kind in ("known", "open"))
    if opened.sum() < known.sum() or metric in OF_OPEN:
        return Sample(int(opened.sum()), width, "open", int(np.count_nonzero(opened.sum(axis=0))))
    return Sample(int(known.sum()), width, "known")


def _different(runs: Iterable[Run], metric: str, kind: Literal["known", "open"]) -> IntArray:
    """(G,C) how many different images of known or open classes a metric rests on in some of these runs.

    The test images of a pair of domain and class in one run contain those in another, or are the same.
    """
    largest: IntArray | None = None
    for run in runs:
        if run.test_images is not None:
            known = known_mask(run.task)
            counts = _counted(run, metric, run.test_images * (known if kind == "known" else ~known))
            largest = counts if largest is None else np.maximum(largest, counts)
    return np.zeros((0, 0), dtype=np.int64) if largest is None else largest


def half_width(percent: float, images: float) -> float:
    """Half of Wilson's 95 % interval of a share, in points. It is wide for few images even where all are right."""
    share = min(1.0, max(0.0, percent / 100))
    inside = share * (1 - share) / images + Z**2 / (4 * images**2)
    return 100 * Z / (1 + Z**2 / images) * math.sqrt(inside)


def mean_width(widths: Sequence[float]) -> float:
    """Half-width of the mean of independent numbers."""
    return math.sqrt(sum(width**2 for width in widths)) / len(widths)


def h_width(percent: float, known: int, opened: int, shares: tuple[float, float] | None = None) -> float:
    """Half-width of H = 2ab / (a + b), in points, from those of its two shares a, of known, and b, of open images.

    H moves 2b² / (a+b)² times as much as a, and 2a² / (a+b)² times as much as b: most with the smaller share. Where the
    shares are not known, it is the widest of all pairs that have this H.
    """
    pairs = [shares] if shares else _pairs_with(min(1.0, max(0.0, percent / 100)))
    return max(_h_width(a, b, half_width(100 * a, known), half_width(100 * b, opened)) for a, b in pairs)


def _h_width(a: float, b: float, width_a: float, width_b: float) -> float:
    if a == b == 0:
        return 2 * min(width_a, width_b)  # H is at most twice the smaller share
    return 2 * math.hypot(b**2 * width_a, a**2 * width_b) / (a + b) ** 2


def _pairs_with(h: float) -> list[tuple[float, float]]:
    """Pairs of shares (a, b) from all that have this H."""
    if h == 0:
        return [(1.0, 0.0), (0.0, 1.0)]
    return [(a, min(1.0, a * h / (2 * a - h))) for a in np.linspace(h / (2 - h), 1, PAIRS).tolist()]


def ranking_width(percent: float, images: int) -> float:
    """Half-width of AUROC or OSCR, in points, whatever the scores are. images: of the smaller kind.

    Both are means over pairs of a known and an open image, of values from 0 to 1. Such a mean is also one over ways to
    pair off the smaller kind (Hoeffding 1963), so it varies at most as much as a share A over these images, with
    variance A (1 - A) / images. Wilson's interval is wider where A is near 0 or 1.
    """
    share = min(1.0, max(0.0, percent / 100))
    return max(half_width(percent, images), 100 * Z * math.sqrt(share * (1 - share) / images))


def calibration_bias(images: int) -> float:
    """The most, in points, that chance adds on average to the ECE of a perfectly calibrated model.

    In a bin of n images the share of right ones is off by at most 1 / (2 √n) on average. Weighted by images, this sums
    up to at most √(bins / images) / 2.
    """
    return 50 * math.sqrt(ECE_BINS / images)


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


def _is_unseen(metric: str) -> bool:
    """Whether it is of the held-out domain alone: each of these has other images."""
    return metric.endswith("_u") or metric.startswith("h_u_")


def _open_set_width(run: Run, metric: str, percent: float, known: int, opened: int) -> float:
    if metric in OF_OPEN:
        return half_width(percent, opened)
    if metric in RANKED:
        return ranking_width(percent, min(known, opened))
    ends = {"h_fixed": "", "h_u_fixed": "_u"}
    a, b = (
        run.metrics.summary.get(f"{name}{ends[metric]}") if metric in ends else None
        for name in ("named_right", "open_called_unknown")
    )
    return h_width(percent, known, opened, None if a is None or b is None else (a, b))


def _counted(run: Run, metric: str, images: IntArray) -> IntArray:
    """images (G,C) of each pair of domain and class, without those that the metric leaves out."""
    seen, counts = run.task.seen_in_domain, np.array(images)
    if _is_unseen(metric):
        counts[[d for d in range(len(counts)) if d not in _held_out(run)]] = 0
    elif shot := _shot(metric):
        counts[:, np.array(shot_groups(run.task)) != shot] = 0
    elif metric == "seen_pairs":
        counts[~seen] = 0
    elif metric in ("unseen_pairs", "unseen_pairs_sources"):
        counts[seen] = 0
        if metric == "unseen_pairs_sources":
            counts[_held_out(run)] = 0
    return counts


def _shot(metric: str) -> str:
    """The group of classes that a metric is about, as in "named_right_few"; empty for other metrics."""
    last = metric.rpartition("_")[2]
    return last if last in SHOTS else ""


def _parts(run: Run, metric: str, images: IntArray) -> list[int]:
    """Test images of each part of which the metric is the mean; a single part if it pools its images. images (G,C)."""
    counts = _counted(run, metric, images)
    if metric in ("macro_u", "macro_accuracy") or _shot(metric):
        parts = counts.sum(axis=0)
    else:
        parts = counts.sum(axis=1) if metric == "acc" else counts.sum()
    return [int(n) for n in np.atleast_1d(parts) if n]


def sample_of_parts(parts: Sequence[int], percent: float) -> Sample | None:
    """A mean over parts, which varies as much as one share over `equivalent` images.

    Intervals of the single parts must not be combined: Wilson's for one image is half as wide as chance moves it.
    """
    if not parts:
        return None
    equivalent = len(parts) ** 2 / sum(1 / n for n in parts)
    return Sample(sum(parts), half_width(percent, equivalent))
