"""How many test images a number rests on, and whether that is too few to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ltds.evaluation.arrays import IntArray
from ltds.evaluation.class_groups import SHOTS, known_mask, shot_groups
from ltds.reporting.run import Run

FEWEST = 30  # images
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
        return self.images < FEWEST or self.half_width > WIDEST

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
        rows = _held_out(run) if metric in UNSEEN else slice(None)
        return _of_both_kinds(int(images[rows][:, known].sum()), int(images[rows][:, ~known].sum()), metric)
    return _of_parts(_parts(run, metric, images * known), percent)


def over_domains(samples: Sequence[Sample], metric: str) -> Sample | None:
    """The sample of a mean over held-out domains: of other images each, or of the same images predicted again."""
    if not samples:
        return None
    widths = [sample.half_width for sample in samples]
    if metric in UNSEEN:
        return Sample(sum(s.images for s in samples), _mean_width(widths), samples[0].kind)
    return Sample(max(s.images for s in samples), sum(widths) / len(widths), samples[0].kind)


def half_width(percent: float, images: int) -> float:
    """Half of Wilson's 95 % interval of a share, in points. It is wide for few images even where all are right."""
    share = min(1.0, max(0.0, percent / 100))
    inside = share * (1 - share) / images + Z**2 / (4 * images**2)
    return 100 * Z / (1 + Z**2 / images) * math.sqrt(inside)


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
        width = _mean_width([half_width(50, known), half_width(50, opened)])
    return Sample(min(known, opened), width, "open" if opened < known else "known")


def _parts(run: Run, metric: str, images: IntArray) -> list[int]:
    """Test images of each part of which the metric is the mean; a single part if it pools its images. images (G,C)."""
    seen = run.task.seen_in_domain
    sources = [d for d, name in enumerate(run.task.domains) if name != run.task.held_out]
    if metric in ("acc_u", "macro_u"):
        held_out = images[_held_out(run)]
        parts = held_out.sum(axis=0) if metric == "macro_u" else held_out.sum()
    elif metric == "acc":
        parts = images.sum(axis=1)
    elif metric == "macro_accuracy":
        parts = images.sum(axis=0)
    elif metric in SHOTS:
        parts = images.sum(axis=0)[np.array(shot_groups(run.task)) == metric]
    elif metric in ("seen_pairs", "unseen_pairs"):
        parts = images[seen if metric == "seen_pairs" else ~seen].sum()
    elif metric == "unseen_pairs_sources":
        parts = images[sources][~seen[sources]].sum()
    else:
        parts = images.sum()
    return [int(n) for n in np.atleast_1d(parts) if n]


def _of_parts(parts: Sequence[int], percent: float) -> Sample | None:
    return Sample(sum(parts), _mean_width([half_width(percent, n) for n in parts])) if parts else None


def _mean_width(widths: Sequence[float]) -> float:
    """Half-width of the mean of independent numbers."""
    return math.sqrt(sum(width**2 for width in widths)) / len(widths)
