"""Images that belong together, as those of one patient, animal or scene: splits that keep them together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ltds.core.rng import numpy_generator
from ltds.core.text import few_quoted
from ltds.data.build.stratify import name_number, split_counts
from ltds.data.splits import TEST, TRAIN, VAL


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
    """(N,) the split of each row; rows of one domain and group are in one split. "" is a group of its own.

    The shares are those of groups in each (domain, class) pair, by the rules of `split_counts`. A group may have images
    of several classes: the class with the fewest groups is drawn first, and every pair keeps a group for training. The
    draw of a domain does not depend on the other domains.
    """
    splits = np.full(len(classes), TRAIN, dtype=np.int64)
    rows: dict[str, dict[tuple[str, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, (domain, group) in enumerate(zip(domains, groups, strict=True)):
        rows[domain][group, -1 if group else row].append(row)
    for domain, members in rows.items():
        images = [Counter(classes[row] for row in its) for its in members.values()]
        chosen = _draw(images, seed, name_number(domain), val, test, most_test)
        for number, its in enumerate(members.values()):
            splits[its] = chosen[number]
    return splits


def _draw(
    images: Sequence[Counter[str]], seed: int, domain: int, val: float, test: float, most_test: int
) -> dict[int, int]:
    """The split of each group of a domain. `images`: how many images of each class a group has."""
    having: dict[str, list[int]] = defaultdict(list)  # class -> its groups
    for group, counts in enumerate(images):
        for name in counts:
            having[name].append(group)
    not_taken = Counter({name: len(groups) for name, groups in having.items()})  # groups that may still be for training
    tested: Counter[str] = Counter()  # test images of each class
    chosen: dict[int, int] = {}

    def may_take(group: int, split: int) -> bool:
        """Whether each of its classes keeps a group for training, and none gets more test images than it may."""
        limited: Mapping[str, int] = images[group] if split == TEST and most_test else {}
        too_many = any(tested[name] and tested[name] + count > most_test for name, count in limited.items())
        return not too_many and all(not_taken[name] > 1 for name in images[group])

    for name, groups in sorted(having.items(), key=lambda item: (len(item[1]), item[0])):
        val_count, test_count = split_counts(len(groups), val, test)
        order = numpy_generator(seed, "grouped splits", domain, name_number(name)).permutation(groups).tolist()
        for split, wanted in ((TEST, test_count), (VAL, val_count)):
            left = wanted - sum(chosen.get(group) == split for group in groups)
            for group in order:
                if left > 0 and group not in chosen and may_take(group, split):
                    chosen[group] = split
                    not_taken.subtract(images[group].keys())
                    tested.update(images[group] if split == TEST else ())
                    left -= 1
        for group in groups:
            chosen.setdefault(group, TRAIN)
    return chosen


def group_notes(domains: Sequence[str], groups: Sequence[str], splits: Sequence[str]) -> Iterator[str]:
    """Sentences about the groups, for readers of the dataset's numbers: which are not together."""
    rows = [row for row, group in enumerate(groups) if group]
    kinds = {(domains[row], groups[row]) for row in rows}
    alone = f", {len(groups) - len(rows)} to none" if len(rows) < len(groups) else ""
    yield f"{len(rows)} images belong to {len(kinds)} groups{alone}"
    divided = _with_several(((groups[row], domains[row]), splits[row]) for row in rows)
    if divided:
        yield (
            f"{_number(divided)} images in several splits: {few_quoted(divided)}. Validation, and the test of "
            "domains that are trained on, show what was trained on"
        )
    wandering = _with_several(((groups[row],), domains[row]) for row in rows)
    if wandering:
        yield (
            f"{_number(wandering)} images in several domains: {few_quoted(wandering)}. If such a group is one "
            "patient or scene, the test of a held-out domain shows what was trained on"
        )


def _with_several(pairs: Iterable[tuple[tuple[str, ...], str]]) -> list[str]:
    """The groups, first in their keys, whose key occurs with several values."""
    values: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for key, value in pairs:
        values[key].add(value)
    return [key[0] for key, several in values.items() if len(several) > 1]


def _number(groups: Sequence[str]) -> str:
    return "1 group has" if len(groups) == 1 else f"{len(groups)} groups have"
