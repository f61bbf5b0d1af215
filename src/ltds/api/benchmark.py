"""`ltds.benchmark`: a grid of runs that can be stopped and continued at any time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ltds.api.prepare_benchmark import Words, prepare_benchmark
from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.runner import running
from ltds.benchmarking.status import IndexedCell, cell_status
from ltds.core.errors import LtdsWarning, TrainingError
from ltds.core.progress import SILENT, Progress, Say, say_nothing
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest


def benchmark(
    grid: str | Path | Mapping[str, Any] | None = None,
    *,
    data: str | Path | Manifest | None = None,
    methods: Words | None = None,
    held_out: Words | None = None,
    seeds: int | Iterable[int] | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    plan: bool = False,
    jobs: int | None = None,
    ray: str = "",
    cpus: int = 1,
    gpus: float = 0.0,
    fetch: bool = False,
    tensorboard: bool = False,
    retry_failed: bool = False,
    trust: Words = (),
    progress: Progress = SILENT,
    say: Say = say_nothing,
) -> list[RunDirectory]:
    """Train every combination of methods, held-out domains and seeds. Returns the runs that are done.

        runs = ltds.benchmark(data="bestiary", methods=["agg", "ltds"], seeds=[0, 1, 2], out="runs/mine")
        ltds.report("runs/mine", out="report.html")

    If it is stopped, the same call continues it. A failed run is recorded, the other runs continue, and an
    LtdsWarning names it at the end.

    Args:
        grid: A TOML file with data, methods, held_out, seeds, settings, by_method and variants, or a mapping with the
            same content. The arguments below replace what it says.
        data: "bestiary" (built in), the folder of a dataset, or a Manifest. With `plan` also a folder of images.
        methods: Names that `ltds.list_methods` lists, or your own as "package.module:Class".
        held_out: Domains to hold out in turn; "all", or none at all, for every domain.
        seeds: Each combination is trained once with each seed, by default with 0, 1 and 2.
        out: The folder to write to, by default runs/NAME of the grid's file. Each run gets its own folder there.
        settings: Settings of all runs by dotted name, as in {"schedule.epochs": 60}.
        plan: For images of your own, choose network, image size, batch, learning rate and length for them, as
            `ltds.train` does; the same for every method.
        jobs: How many runs are trained at the same time; they share the CPU cores. By default one for each core,
            or all runs where they are fewer.
        ray: Train on a Ray cluster: its address, "auto", or "local" to start one.
        cpus: With `ray`, CPU cores for each run, or for each of its ranks.
        gpus: With `ray`, GPUs for each run, as in 0.5.
        fetch: With `ray`, train on the nodes' local disks, and send finished runs back.
        tensorboard: Also write event files for TensorBoard.
        retry_failed: Try failed runs again.
        trust: Modules outside ltds that the grid's file needs and that may be imported. Those that the arguments name
            are trusted already.
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
        say: Called with a line of text for each recipe that sets something, and for each run that has ended.
    """
    prepared = prepare_benchmark(
        grid,
        data=data,
        methods=methods,
        held_out=held_out,
        seeds=seeds,
        out=out,
        settings=settings,
        plan=plan,
        jobs=jobs,
        ray=ray,
        cpus=cpus,
        gpus=gpus,
        fetch=fetch,
        tensorboard=tensorboard,
        trust=trust,
        progress=progress,
        say=say,
    )
    cells = prepared.cells
    ended_before = sum(cell.run.done if retry_failed else cell.run.ended for cell in cells)
    with (
        running(cells, prepared.executor, prepared.out, retry_failed, progress) as ended,
        progress.track("Training", len(cells), ended_before) as advance,
    ):
        for cell in ended:
            status = cell_status(IndexedCell.of(cell))
            line = f"{status.cell}: {status.outcome}"
            say(line)
            advance(note=line)
    return _finished(cells)


def _finished(cells: list[GridCell]) -> list[RunDirectory]:
    """The runs that are done. Warns of those that failed; raises if every run failed."""
    done = [cell.run for cell in cells if cell.run.done]
    failed = [cell for cell in cells if not cell.run.done]
    if failed:
        status, failure = cell_status(IndexedCell.of(failed[0])), failed[0].run.failure() or {}
        trace = f" FAILED.json in '{failed[0].run.path}' has the traceback." if failure.get("traceback") else ""
        text = (
            f"Expected all {len(cells)} runs to reach their end, but {len(failed)} failed, the first of them "
            f"({status.cell}) with: {status.error.rstrip('.')}.{trace} To try failed runs again, set argument "
            "'retry_failed'."
        )
        if not done:
            raise TrainingError(text, arguments=["retry_failed"])
        warnings.warn(text, LtdsWarning, stacklevel=3)
    return done
