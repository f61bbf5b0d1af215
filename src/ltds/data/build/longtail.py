"""Long-tailed counts and the domains of each class (supplement A.1): pure functions on integers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import DataError, expected


def longtail_counts(classes: int, n_max: int, n_min: int) -> NDArray[np.int64]:
    """(C,) training images per class, from head to tail.

    Supp. A.1: n_c = floor(n_max * (n_min / n_max) ^ (sqrt(c-1) / sqrt(C-1))), c = 1..C.
    Reading: the paper prints the exponent with a minus sign, which makes counts grow from 1565 to 122,461; without
    it the total is its "about 8k". 1e-9 keeps rounding from turning the last count, n_min, into n_min - 1.
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

    Supp. A.1 says that the candidates are reduced for non-head classes, not how. Ours: the first `head` share of the
    classes keeps every domain; after it their number falls linearly from one less than all to `fewest`. Each domain
    then owns `exclusive` classes that live only there, spread from the middle to the tail, so that holding the domain
    out makes those classes open.
    """
    owned = domains * exclusive
    if classes < 2 * owned:
        rule = f"at least {2 * owned}, as each of {domains} domains owns {exclusive} of the rarer half"
        raise DataError(expected("the number of classes", rule, classes, "Add classes or lower 'exclusive'."))
    allowed = np.zeros((domains, classes), dtype=np.bool_)
    first = max(1, round(head * classes))
    for c in range(classes):
        size = domains if c < first else _candidates(c, first, classes, domains, fewest)
        allowed[rng.permutation(domains)[:size], c] = True
    spots = np.linspace(classes // 2, classes - 1, owned + 1).astype(np.int64)[:-1]
    if classes == 2 * owned:  # the whole rarer half is owned
        spots = np.arange(owned, classes, dtype=np.int64)
    owners = np.concatenate([rng.permutation(domains) for _ in range(exclusive)] or [np.empty(0, np.int64)])
    for domain, c in zip(owners, spots, strict=True):
        allowed[:, c] = False
        allowed[domain, c] = True
    return allowed


def _candidates(c: int, first: int, classes: int, domains: int, fewest: int) -> int:
    position = (c - first) / max(1, classes - 1 - first)
    return max(fewest, round((domains - 1) + position * (fewest - (domains - 1))))


def split_over_domains(count: int, allowed: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """(domains,) how many of a class's `count` images go to each allowed domain: a style drawn for every image.

    Where there are fewer images than candidates some stay empty; otherwise each candidate gets at least one, so that
    `allowed` is what the data show.
    """
    candidates = np.flatnonzero(allowed)
    shares = np.zeros(len(allowed), dtype=np.int64)
    sure = rng.permutation(candidates)[:count]
    shares[sure] += 1
    np.add.at(shares, rng.choice(candidates, size=count - len(sure)), 1)
    return shares


def deal(count: int, domains: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(count,) a domain for each image, drawn so that every domain comes equally often, or once more.

    Reading: supp. A.1 draws the style of validation and test images "with equal probability" and says that then every
    domain has its classes. Independent draws leave some pairs empty (of 20 images, 1 pair in 87); dealing does not.
    """
    return rng.permutation(np.resize(rng.permutation(domains), count)).astype(np.int64)


def largest_tail(available: NDArray[np.int64], ratio: float) -> NDArray[np.int64]:
    """(C,) the longest long-tailed counts with this ratio of first to last that `available` (C,) images allow."""
    for n_max in range(int(available[0]), 0, -1):
        counts = longtail_counts(len(available), n_max, max(1, round(n_max / ratio)))
        if (counts <= available).all():
            return counts
    got = ", ".join(str(int(n)) for n in available)
    raise DataError(expected("every class", "represented by an image", f"counts {got}", "Add images."))
