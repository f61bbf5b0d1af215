"""What decides how to train on a dataset: how many images of what size, how long the tail, how many domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltds.core.rng import numpy_generator
from ltds.data.decode import open_image
from ltds.data.manifest import Manifest

SAMPLE = 200  # images whose size is read
LONG_TAIL = 5.0  # from this ratio between the largest and the smallest class on


@dataclass(frozen=True)
class DatasetFacts:
    """Counts are of training images of the source domains. `shorter_side`: of the median image; 0 if unknown.

    missing_pairs: a trained class and a source domain that has no training image of it.
    """

    images: int
    classes: int
    sources: int
    smallest_domain: int
    smallest_domain_name: str
    largest_class: int
    smallest_class: int
    missing_pairs: int
    shorter_side: int

    @property
    def ratio(self) -> float:
        """Training images of the largest class over those of the smallest that has any."""
        return self.largest_class / max(1, self.smallest_class)

    @property
    def long_tailed(self) -> bool:
        return self.ratio >= LONG_TAIL


def dataset_facts(manifest: Manifest, held_out: str | None) -> DatasetFacts:
    """The facts of the task that holds this domain out; raises if the task is impossible."""
    task = manifest.task(held_out)
    return _facts(manifest, task.sources, task.counts)


def test_only_domains(manifest: Manifest) -> tuple[str, ...]:
    """Domains without training images, such as an external site: they can only be held out."""
    trained = manifest.counts("train").sum(axis=1) > 0
    return tuple(domain for domain, some in zip(manifest.domains, trained, strict=True) if not some)


def facts_of_trained_domains(manifest: Manifest) -> DatasetFacts:
    """The facts of the domains that have training images."""
    others = test_only_domains(manifest)
    if not others:
        return dataset_facts(manifest, None)
    counts = manifest.counts("train")
    sources = tuple(domain for domain in manifest.domains if domain not in others)
    return _facts(manifest, sources, counts[counts.sum(axis=1) > 0])


def fewest_trained_classes(manifest: Manifest) -> int:
    """Classes with training images, whichever domain is held out."""
    counts = manifest.counts("train")
    left = [counts.sum(axis=0) - held_out for held_out in counts] if len(counts) > 1 else [counts.sum(axis=0)]
    return max(1, min(int(np.count_nonzero(classes)) for classes in left))


def _facts(manifest: Manifest, sources: Sequence[str], counts: NDArray[np.int64]) -> DatasetFacts:
    """`counts` (sources, C): training images."""
    per_domain, per_class = counts.sum(axis=1), counts.sum(axis=0)
    missing = int((counts[:, per_class > 0] == 0).sum())
    per_class = per_class[per_class > 0]
    smallest = int(np.argmin(per_domain))
    return DatasetFacts(
        images=int(counts.sum()),
        classes=len(per_class),
        sources=len(sources),
        smallest_domain=int(per_domain[smallest]),
        smallest_domain_name=sources[smallest],
        largest_class=int(per_class.max()),
        smallest_class=int(per_class.min()),
        missing_pairs=missing,
        shorter_side=_median_side(manifest),
    )


def hardest_task(manifest: Manifest, domains: Sequence[str]) -> str | None:
    """Which of the domains that are held out in turn leaves the fewest training images; "" holds out none."""
    return max(domains, key=lambda domain: len(manifest.rows("train", domain)) if domain else 0) or None


def _median_side(manifest: Manifest) -> int:
    """The shorter side of the median image, from the headers of some files."""
    rows = numpy_generator(0, "facts/sizes").permutation(len(manifest))[:SAMPLE]
    sides = [side for row in rows if (side := _side(manifest.root / manifest.paths[row]))]
    return int(np.median(sides)) if sides else 0


def _side(file: Path) -> int:
    try:
        with open_image(file) as image:
            return min(image.size)
    except Exception:  # damaged files are named when the cache is built
        return 0
