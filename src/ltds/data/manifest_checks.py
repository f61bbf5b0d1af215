"""What can be wrong with a manifest, in plain words."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from ltds.data.splits import SPLITS

if TYPE_CHECKING:
    from ltds.data.manifest import Manifest

SHOWN = 10  # problems of a list


def find_problems(manifest: Manifest) -> list[str]:
    """A sentence for everything that is wrong with a manifest's columns."""
    problems = [
        f"{what} must be unique, but '{name}' comes twice"
        for what, names in (("class names", manifest.classes), ("domain names", manifest.domains))
        for name in sorted(n for n, times in Counter(names).items() if times > 1)
    ]
    lengths = {len(manifest.paths), len(manifest.labels), len(manifest.domain_ids), len(manifest.split_ids)}
    if len(lengths) > 1:
        return [*problems, f"the four columns must be equally long, but have {sorted(lengths)} rows"]
    if not len(manifest):
        return [*problems, "it has no rows"]
    bounds = (
        ("label", manifest.labels, len(manifest.classes)),
        ("domain", manifest.domain_ids, len(manifest.domains)),
        ("split", manifest.split_ids, len(SPLITS)),
    )
    for what, column, size in bounds:
        bad = np.flatnonzero((column < 0) | (column >= size))
        problems += [
            f"row {i} ({manifest.paths[i]}): expected a {what} in 0..{size - 1}, but got {column[i]}" for i in bad
        ]
    if manifest.test_repeats and manifest.whole_held_out:
        problems.append("test_repeats and whole_held_out would test twice on one image; set one of them to false")
    if problems:
        return problems
    problems = _duplicates(manifest) + _empty_classes(manifest)
    return problems if manifest.evaluated_only else problems + _never_trained(manifest)


def _duplicates(manifest: Manifest) -> list[str]:
    """Rows that name the same file, even in another spelling: it could be in the training and in the test split."""
    files = [posixpath.normpath(path) for path in manifest.paths]
    if len(set(files)) == len(files):
        return []
    seen: dict[tuple[str, bool], int] = {}
    problems = []
    tested = manifest.split_ids == SPLITS.index("test")
    for i, file in enumerate(files):
        first = seen.setdefault((file, bool(tested[i]) and manifest.test_repeats), i)
        if first != i:
            problems.append(f"rows {first} and {i} are the same file '{manifest.paths[i]}'; delete one")
            continue
        other = seen.get((file, not tested[i]), i) if manifest.test_repeats else i
        if manifest.labels[i] != manifest.labels[other] or manifest.domain_ids[i] != manifest.domain_ids[other]:
            problems.append(f"rows {other} and {i} give the file '{file}' two classes or domains; correct one")
    return problems


def _empty_classes(manifest: Manifest) -> list[str]:
    present = np.bincount(manifest.labels, minlength=len(manifest.classes))
    return [
        f"class '{manifest.classes[c]}' has no image in any split; add images or take it out of manifest.json"
        for c in np.flatnonzero(present == 0)
    ]


def _never_trained(manifest: Manifest) -> list[str]:
    trained = manifest.counts("train").sum(axis=0) > 0
    validated = manifest.counts("val").sum(axis=0) > 0
    return [
        f"class '{manifest.classes[c]}' has validation images but no training image in any domain; "
        "move some to 'train', or its validation images to 'test'"
        for c in np.flatnonzero(validated & ~trained)
    ]


def bullet_list(title: str, problems: list[str]) -> str:
    """The title and the first problems, one on each line."""
    lines = [f"{title}:", *(f"- {problem}" for problem in problems[:SHOWN])]
    if len(problems) > SHOWN:
        lines.append(f"- ... and {len(problems) - SHOWN} more")
    return "\n".join(lines)
