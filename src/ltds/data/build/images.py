"""The images of a plan, checked before anything is written: their names, their existence and their content."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path

from ltds.core.errors import DataError, expected
from ltds.core.processor import cores
from ltds.core.progress import Progress
from ltds.core.text import few_quoted, is_utf8, printable
from ltds.data.build.plan import Plan
from ltds.data.build.source import require_files
from ltds.data.decode import decoded, narrow_grey, narrow_note
from ltds.data.prefetch import prefetch

_PROBE = 32  # pixels: a JPEG is read to its end at any size, and fastest at a small one

MakePlan = Callable[[Collection[str]], Plan]
"""A function that makes a plan without the given images if it draws splits at random; lists keep theirs."""


def check_images(make_plan: MakePlan, source: Path, damaged: str, progress: Progress) -> tuple[Plan, dict[str, str]]:
    """The plan, and the problem of each damaged image, by its path; each image is decoded once.

    If damaged images are to be left out, the plan is made again without them, so that splits are drawn from good images
    only: otherwise a class could lose its only training image. Images that the new plan adds are checked as well.
    """
    checked: set[str] = set()
    left_out: dict[str, str] = {}
    narrow: dict[str, int] = {}
    while True:
        plan = make_plan(left_out)
        _require_utf8_names(plan, source)
        new = partial(_unchecked, plan, checked)
        require_files(source, new(), f"the images of {plan.name}", plan.where, links=damaged != "unchecked")
        problems = _problems(new, source, narrow, progress) if damaged != "unchecked" else {}
        if not problems:
            if kept := {name for name in plan.images() if name in narrow}:
                plan.notes.append(narrow_note([narrow[name] for name in kept]))
            return plan, left_out
        if damaged == "refuse":
            _refuse(problems, source)
        left_out |= problems
        checked.update(plan.images())
        del plan, new  # saves memory: never two plans at a time


def _unchecked(plan: Plan, checked: Collection[str]) -> Iterator[str]:
    """The plan's images that were not checked yet; one by one, because ImageNet's names take much memory."""
    return (name for name in plan.images() if name not in checked)


def damage(file: Path) -> str | None:
    """Why an image cannot be decoded; None if it can."""
    found = _examined(file)
    return found if isinstance(found, str) else None


def _examined(file: Path) -> str | int | None:
    """Why an image cannot be decoded, or the value of `narrow_grey`."""
    try:
        return narrow_grey(decoded(file, _PROBE))
    except DataError as error:
        return error.reason


def _problems(
    names: Callable[[], Iterator[str]], source: Path, narrow: dict[str, int], progress: Progress
) -> dict[str, str]:
    """Why each of these images cannot be decoded, for those that cannot. Adds those of `narrow_grey` to `narrow`."""
    threads = cores()
    results = prefetch(lambda name: _examined(source / name), names(), threads=threads, window=4 * threads)
    problems: dict[str, str] = {}
    with closing(results), progress.track("Checking images", sum(1 for _ in names())) as advance:
        for name, found in zip(names(), results, strict=True):
            if isinstance(found, str):
                problems[name] = found
            elif found is not None:
                narrow[name] = found
            advance()
    return problems


def _refuse(problems: dict[str, str], source: Path) -> None:
    first = "; ".join(f"'{name}' ({reason})" for name, reason in list(problems.items())[:5])
    got = f"{len(problems)} that cannot be decoded: {first}"
    remedy = "Copy them again from their source, or leave them out: use 'leave-out' for the setting 'damaged'."
    raise DataError(expected(f"the images in '{source}'", "readable", got, remedy))


def _require_utf8_names(plan: Plan, source: Path) -> None:
    """Refuse names that are not UTF-8, because a manifest is."""
    names = chain([plan.name], plan.classes, plan.domains, plan.images())
    wrong = [printable(name) for name in names if not is_utf8(name)]
    if wrong:
        got = f"{len(wrong)} with other bytes: {few_quoted(wrong)}"
        remedy = "Rename them, for example with the program convmv."
        raise DataError(expected(f"the names of files and folders in '{source}'", "UTF-8", got, remedy))
