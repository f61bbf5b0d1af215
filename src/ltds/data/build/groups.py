"""Images that belong together, such as those of one patient, animal or scene: splits that keep them together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ltds.core.rng import numpy_generator
from ltds.core.text import count, few_quoted
from ltds.data.build.stratify import name_number, split_counts
from ltds.data.splits import TEST, TRAIN, VAL

Pair = tuple[str, str]  # domain, class


def draw_grouped_splits(
    classes: Sequence[str],
    domains: Sequence[str],
    groups: Sequence[str],
    *,
    val: float,
    test: float,
    seed: int,
    most_test: int = 0,
) -> NDArray[np.int64]:
    """(N,) the split of each row; rows of one group are in one split, in whatever domain. "" is a group of its own.

    Each (domain, class) pair, that with the fewest groups first, gets about the shares of its images, and at least a
    group for training; of two groups one is for test, of three one for each split, unless they are needed elsewhere or
    too large. `most_test` limits the test images of a pair, unless its smallest group is larger.
    """
    rows: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row, group in enumerate(groups):
        rows[group, -1 if group else row].append(row)
    pairs = list(zip(domains, classes, strict=True))
    draw = _Draw([Counter(pairs[row] for row in members) for members in rows.values()])
    for split, share, limit in ((TEST, test, most_test), (VAL, val, 0)):
        for pair in sorted(draw.having, key=lambda pair: (len(draw.having[pair]), pair)):
            counts = dict(zip((VAL, TEST), split_counts(len(draw.having[pair]), val, test), strict=True))
            rng = numpy_generator(seed, "grouped splits", split, *map(name_number, pair))
            draw.take(split, pair, counts[split], rng.permutation(draw.having[pair]).tolist(), share, limit)
    splits = np.full(len(pairs), TRAIN, dtype=np.int64)
    for number, members in enumerate(rows.values()):
        splits[members] = draw.chosen.get(number, TRAIN)
    return splits


@dataclass
class _Draw:
    """The groups of a dataset by number, and those that have been taken from training so far.

    images: how many of each pair a group has. having: the groups of a pair. total: its images. left: its groups that
    are still for training. taken: its images in (split, pair).
    """

    images: Sequence[Counter[Pair]]
    chosen: dict[int, int] = field(default_factory=dict)
    having: dict[Pair, list[int]] = field(init=False)
    total: Counter[Pair] = field(init=False)
    left: Counter[Pair] = field(init=False)
    taken: Counter[tuple[int, Pair]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.having, self.total = defaultdict(list), Counter()
        for group, counts in enumerate(self.images):
            self.total.update(counts)
            for pair in counts:
                self.having[pair].append(group)
        self.left = Counter({pair: len(groups) for pair, groups in self.having.items()})

    def take(self, split: int, pair: Pair, wanted: int, order: Sequence[int], share: float, limit: int) -> None:
        """Take groups of the pair for a split, at most as many as are `wanted`, in this order.

        Only groups that leave every pair near its share of images. If the pair has none then, its smallest group that
        leaves as much of the pair for training, and half of every other pair.
        """
        missing = wanted - sum(self.chosen.get(group) == split for group in order)
        for group in order:
            if missing > 0 and self._may_go(group) and self._fits(group, split, share, limit):
                self._move(group, split)
                missing -= 1
        if wanted and not self.taken[split, pair]:
            small = [group for group in order if self._may_go(group) and self._leaves_enough(group, pair)]
            if small:
                self._move(min(small, key=lambda group: self.images[group][pair]), split)

    def _may_go(self, group: int) -> bool:
        """Whether it is still for training, and not the last such group of a pair."""
        return group not in self.chosen and all(self.left[pair] > 1 for pair in self.images[group])

    def _fits(self, group: int, split: int, share: float, limit: int) -> bool:
        """Whether each of its pairs has at most half of its images more than the share."""
        for pair, images in self.images[group].items():
            budget = min(share * self.total[pair], limit or self.total[pair])
            if self.taken[split, pair] + images / 2 > budget:
                return False
        return True

    def _leaves_enough(self, group: int, pair: Pair) -> bool:
        images = self.images[group]
        kept = {
            each: self.total[each] - self.taken[TEST, each] - self.taken[VAL, each] - images[each] for each in images
        }
        return kept[pair] >= images[pair] and all(2 * kept[each] >= self.total[each] for each in images if each != pair)

    def _move(self, group: int, split: int) -> None:
        self.chosen[group] = split
        self.left.subtract(self.images[group].keys())
        self.taken.update({(split, pair): count for pair, count in self.images[group].items()})


def group_notes(
    pairs: Sequence[Pair], groups: Sequence[str], splits: Sequence[str], *, drawn: bool, tested: bool
) -> Iterator[str]:
    """Sentences about the groups, for readers of the dataset's numbers: which are not together, and what is missing.

    `drawn`: the splits were drawn by groups; `tested`: with a share for test.
    """
    rows = [row for row, group in enumerate(groups) if group]
    if divided := _with_several((groups[row], splits[row]) for row in rows):
        yield (
            f"{_number(divided)} images in several splits: {few_quoted(divided)}. So validation, and the test of "
            "domains that are trained on, are too easy"
        )
    if drawn:
        yield "images of the same group are in the same split"
    if drawn and len(rows) < len(groups):
        yield f"{len(groups) - len(rows)} of {len(groups)} images belong to no group, and are drawn one by one"
    if wandering := _with_several((groups[row], pairs[row][0]) for row in rows):
        yield (
            f"{_number(wandering)} images in several domains: {few_quoted(wandering)}. If such a group is one patient "
            "or scene, the test of a held-out domain contains what was trained on"
        )
    if drawn and tested:
        untested = set(pairs) - {pair for pair, split in zip(pairs, splits, strict=True) if split == "test"}
        several = {pair for pair, count in Counter(pairs).items() if count > 1}
        if lost := sorted(untested & several):
            yield (
                f"{len(lost)} of {len(several)} (domain, class) pairs with several images have none for test, because "
                f"they have too few groups: {few_quoted([' / '.join(pair) for pair in lost])}"
            )


def _with_several(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """The groups that occur with several values."""
    values: dict[str, set[str]] = defaultdict(set)
    for group, value in pairs:
        values[group].add(value)
    return [group for group, several in values.items() if len(several) > 1]


def _number(groups: Sequence[str]) -> str:
    return count(len(groups), "group has", "groups have")
