"""The images of a plan, looked at before anything is written: named so that it can be written, there, and whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path

from ltds.core.errors import DataError, expected
from ltds.core.progress import Progress
from ltds.data.build.plan import Plan
from ltds.data.build.source import require_files, some
from ltds.data.decode import decode
from ltds.data.prefetch import prefetch

_PROBE = 32  # pixels: a JPEG's data are read to their end at any size, and fastest at a small one

Draft = Callable[[Collection[str]], Plan]
"""A plan made without these images, where it draws. Where lists give the splits it names them all the same."""


def settle(draft: Draft, source: Path, damaged: str, progress: Progress) -> tuple[Plan, dict[str, str]]:
    """The plan, and what is wrong with each damaged image, by its path; each image is decoded once.

    A plan with damaged images to leave out is made anew without them, so that the draw has only good images: a class
    is not to lose its one training image while it has others. What the new plan takes in is looked at in its turn.
    """
    looked: set[str] = set()
    left_out: dict[str, str] = {}
    while True:
        plan = draft(left_out)
        _require_writable(plan, source)
        new = partial(_others, plan, looked)
        require_files(source, new(), f"the images of {plan.name}", plan.where)
        found = _damaged(new, source, progress) if damaged != "unchecked" else {}
        if not found:
            return plan, left_out
        if damaged == "refuse":
            _refuse(found, source)
        left_out |= found
        looked.update(plan.images())
        del plan, new  # not two of them at a time


def _others(plan: Plan, looked: Collection[str]) -> Iterator[str]:
    """The plan's images that were not looked at; one by one, as ImageNet's names should not lie in memory twice."""
    return (name for name in plan.images() if name not in looked)


def _damaged(names: Callable[[], Iterator[str]], source: Path, progress: Progress) -> dict[str, str]:
    """What is wrong with each of these images that cannot be decoded."""

    def problem(name: str) -> str | None:
        try:
            decode(source / name, _PROBE)
        except DataError as error:
            return str(error).split(", but got ", 1)[-1].split(". ")[0]
        return None

    threads = os.cpu_count() or 1
    found = prefetch(problem, names(), threads=threads, window=4 * threads)
    bad: dict[str, str] = {}
    with closing(found), progress.track("Checking images", sum(1 for _ in names())) as advance:
        for name, said in zip(names(), found, strict=True):
            if said is not None:
                bad[name] = said
            advance()
    return bad


def _refuse(bad: dict[str, str], source: Path) -> None:
    got = f"{len(bad)} that cannot be decoded: " + "; ".join(f"'{n}' ({said})" for n, said in list(bad.items())[:5])
    remedy = "Copy them again from their source, or leave them out with --set damaged=leave-out."
    raise DataError(expected(f"the images in '{source}'", "whole", got, remedy))


def _require_writable(plan: Plan, source: Path) -> None:
    """Refuse names that are no UTF-8, which a manifest is written in: Python holds their bytes as lone surrogates."""
    names = chain([plan.name], plan.classes, plan.domains, plan.images())
    wrong = [_shown(name) for name in names if not _is_text(name)]
    if wrong:
        got = f"{len(wrong)} with other bytes: {some(wrong)}"
        remedy = f"Rename them, e.g. with 'convmv -f latin1 -t utf8 -r --notest {source}'."
        raise DataError(expected(f"the names of files and folders in '{source}'", "UTF-8", got, remedy))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str) -> str:
    """A name that is no UTF-8, with its odd bytes as \\xe9, so that it can be printed."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
