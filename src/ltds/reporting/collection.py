"""Collection: every run that can be reported, and a sentence for each run that cannot."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ltds.core.errors import DataError, LtdsError
from ltds.core.runs import RunDirectory
from ltds.reporting.dataset import Dataset
from ltds.reporting.grouping import group_runs
from ltds.reporting.journal_file import lines_for
from ltds.reporting.run import Run, read_run

SHOWN = 3  # problems in an error
DEPTH = 4  # levels of folders, as in out/dataset/method/held-out/seed


@dataclass(frozen=True)
class Collection:
    """The input of a report. `datasets` contain the same runs, grouped so that the runs of one may be compared."""

    runs: tuple[Run, ...]
    problems: tuple[str, ...]
    datasets: tuple[Dataset, ...]


def collect(paths: Iterable[Path | str]) -> Collection:
    """The runs in these run directories or in folders that contain some; raises a DataError if there are none."""
    given = [Path(path) for path in paths]
    problems: list[str] = []
    runs = []
    directories = list(_directories(given, problems))
    for directory in directories:
        try:
            runs.append(replace(read_run(directory), journal_lines=lines_for(len(directories))))
        except LtdsError as error:
            problems.append(str(error))
    if not runs:
        raise DataError(_no_runs(given, problems))
    problems += [run.problem for run in runs if run.problem]
    datasets, notes = group_runs(runs)
    return Collection(tuple(runs), (*problems, *notes, *_versions(runs), *_trained_test_images(datasets)), datasets)


def _directories(paths: Iterable[Path], problems: list[str]) -> Iterator[RunDirectory]:
    """Each run directory once, in the order given, then by name."""
    seen: set[Path] = set()
    for path in paths:
        if not path.is_dir():
            problem = "is a file, not a folder: give the run directory" if path.exists() else "does not exist"
            problems.append(f"'{path}' {problem}.")
            continue
        runs = list(_search(path, DEPTH, problems))
        if not runs:
            problems.append(f"'{path}' contains no run directory ({DEPTH} levels searched).")
        for run in runs:
            resolved = run.path.resolve()
            if resolved not in seen:
                seen.add(resolved)
                yield run


def _search(path: Path, depth: int, problems: list[str]) -> Iterator[RunDirectory]:
    run = RunDirectory(path)
    if any(file.is_file() for file in (run.config_file, run.task_file, run.metrics_file, run.failed_file)):
        yield run
        return
    if depth:
        try:
            with os.scandir(path) as entries:
                folders = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
        except OSError as error:
            problems.append(f"'{path}' cannot be read: {error.strerror}.")
            return
        for name in folders:
            yield from _search(path / name, depth - 1, problems)


def _versions(runs: list[Run]) -> list[str]:
    """A sentence if the runs were made by different versions of the code."""
    commits = {run.commit for run in runs if run.commit}
    if len(commits) < 2:
        return []
    return [f"The runs come from {len(commits)} commits of the code: {', '.join(sorted(c[:12] for c in commits))}."]


def _trained_test_images(datasets: Iterable[Dataset]) -> Iterator[str]:
    """A sentence for each dataset whose test images include training images."""
    for dataset in datasets:
        most = max(run.task.trained_in_test for rows in dataset.rows.values() for run in rows)
        if most:
            yield (
                f"Acc on {dataset.name}, and every number over all domains, includes training images: {most} test "
                "images of the source domains were used in training, as its protocol prescribes. Acc-U and H-U are not "
                "affected."
            )


def _no_runs(paths: list[Path], problems: list[str]) -> str:
    given = ", ".join(f"'{path}'" for path in paths) or "no path"
    shown, more = problems[:SHOWN], len(problems) - SHOWN
    reasons = " ".join(shown) or "nothing was given."
    if more > 0:
        reasons += f" And {more} more."
    return (
        f"Expected {given} to be or to contain finished, evaluated run directories, but got none: {reasons} "
        "Make one with 'ltds train', evaluate it with 'ltds evaluate RUN', then type 'ltds report RUN'."
    )
