"""Long-tailed counts and the domains of each class (Gu et al., supplement A.1): pure functions on integers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import DataError, expected


def longtail_counts(classes: int, n_max: int, n_min: int) -> NDArray[np.int64]:
    """(C,) training images per class, from head to tail.

    Gu et al., supplement A.1: n_c = floor(n_max * (n_min / n_max) ^ (sqrt(c-1) / sqrt(C-1))), c = 1..C. The paper
    prints the exponent with a minus sign, with which counts would grow from 1565 to 122,461; without it the total is
    the paper's "about 8k". 1e-9 keeps rounding from turning the last count, n_min, into n_min - 1.
    """
    if classes < 2:
        raise DataError(expected("the number of classes", "at least 2", classes, "Add classes."))
    if not 1 <= n_min <= n_max:
        raise DataError(
            expected(
                "n_min and n_max",
                "1 <= n_min <= n_max",
                f"n_min={n_min}, n_max={n_max}",
                "Swap or raise them.",
            )
        )
    share = [math.sqrt(c) / math.sqrt(classes - 1) for c in range(classes)]
    return np.array([math.floor(n_max * (n_min / n_max) ** s + 1e-9) for s in share], dtype=np.int64)


def domains_of_classes(
    classes: int,
    domains: int,
    rng: np.random.Generator,
    *,
    head: float = 0.2,
    fewest: int = 2,
    exclusive: int = 1,
) -> NDArray[np.bool_]:
    """(domains, C) which domains may hold training images of each class, classes from head to tail.

    Supplement A.1 says that classes outside the head have fewer domains, but not how many. Here the first `head` share
    of the classes keeps every domain; then the number falls linearly from one less than all to `fewest`. Each domain
    also has `exclusive` classes of which no other domain has images, from the middle to the tail: they are open classes
    when the domain is held out.
    """
    total_exclusive = domains * exclusive
    if classes < 2 * total_exclusive:
        rule = f"at least {2 * total_exclusive}, as each of {domains} domains has {exclusive} exclusive ones, all rare"
        raise DataError(
            expected("the number of classes", rule, classes, "Add classes, or lower the setting 'exclusive'.")
        )
    allowed = np.zeros((domains, classes), dtype=np.bool_)
    first = max(1, round(head * classes))
    for c in range(classes):
        size = domains if c < first else _candidates(c, first, classes, domains, fewest)
        allowed[rng.permutation(domains)[:size], c] = True
    chosen = np.linspace(classes // 2, classes - 1, total_exclusive + 1).astype(np.int64)[:-1]
    if classes == 2 * total_exclusive:  # the whole rarer half
        chosen = np.arange(total_exclusive, classes, dtype=np.int64)
    owners = np.concatenate([rng.permutation(domains) for _ in range(exclusive)] or [np.empty(0, np.int64)])
    for domain, c in zip(owners, chosen, strict=True):
        allowed[:, c] = False
        allowed[domain, c] = True
    return allowed


def _candidates(c: int, first: int, classes: int, domains: int, fewest: int) -> int:
    position = (c - first) / max(1, classes - 1 - first)
    return max(fewest, round((domains - 1) + position * (fewest - (domains - 1))))


def split_over_domains(count: int, allowed: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """(domains,) how many of a class's `count` images go to each allowed domain, drawn for every image.

    Each allowed domain gets at least one image, unless there are fewer images than allowed domains.
    """
    candidates = np.flatnonzero(allowed)
    counts = np.zeros(len(allowed), dtype=np.int64)
    first = rng.permutation(candidates)[:count]
    counts[first] += 1
    np.add.at(counts, rng.choice(candidates, size=count - len(first)), 1)
    return counts


def deal(count: int, domains: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(count,) a domain for each image, in random order, every domain equally often or once more than another.

    Supplement A.1 draws the style of validation and test images "with equal probability" and says that every domain
    then has all classes. Independent draws would leave some pairs empty (with 20 images, 1 pair in 87).
    """
    return rng.permutation(np.resize(rng.permutation(domains), count)).astype(np.int64)


def largest_tail(available: NDArray[np.int64], ratio: float) -> NDArray[np.int64]:
    """(C,) the largest long-tailed counts with this ratio of first to last that `available` (C,) images allow."""
    for n_max in range(int(available[0]), 0, -1):
        counts = longtail_counts(len(available), n_max, max(1, round(n_max / ratio)))
        if (counts <= available).all():
            return counts
    got = ", ".join(str(int(n)) for n in available)
    raise DataError(expected("every class", "present with at least one image", f"counts {got}", "Add images."))
