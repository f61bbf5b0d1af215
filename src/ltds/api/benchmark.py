"""`ltds.benchmark`: a grid of runs that can be stopped and continued at any time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ltds.api.arguments import listed, require_name, require_written
from ltds.benchmarking.cells import GridCell, cells_of
from ltds.benchmarking.grid import Grid, read_grid
from ltds.benchmarking.runner import Executor, exclusive, run_cells
from ltds.benchmarking.status import IndexedCell, cell_status
from ltds.core.config import merge, nested
from ltds.core.errors import ConfigError, LtdsWarning, TrainingError, expected
from ltds.core.plain import plain_value
from ltds.core.processor import cores
from ltds.core.progress import SILENT, Progress, Say, say_nothing
from ltds.core.runs import RunDirectory
from ltds.core.trust import modules_named
from ltds.data.datasets.opening import open_dataset
from ltds.data.datasets.raw import open_or_build
from ltds.data.manifest import Manifest
from ltds.engine.team import launched
from ltds.engine.tensorboard import require_tensorboard

Words = str | Iterable[str]


@dataclass(frozen=True)
class PreparedBenchmark:
    """The runs of a benchmark, all checked, where they go, and what trains them."""

    cells: list[GridCell]
    out: Path
    executor: Executor
    jobs: int


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

    If it is stopped, the same call continues it. If a run fails, this is recorded, the other runs continue, and an
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
        jobs: How many runs are trained at the same time; they share the CPU cores. By default one for each core.
        ray: Train on a Ray cluster: its address, "auto", or "local" to start one.
        cpus: With `ray`, CPU cores for each run, or for each of its ranks.
        gpus: With `ray`, GPUs for each run, as in 0.5.
        fetch: With `ray`, train on the nodes' local disks, and send finished runs back.
        tensorboard: Also write event files for TensorBoard.
        retry_failed: Try failed runs again.
        trust: Modules outside ltds that the grid's file needs and that may be imported. Those that the arguments name
            are trusted already.
        progress: Shows how far the work is, as `ltds.Bars()` does; nothing by default.
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
    ended_before = sum(cell.run.done or (cell.run.failure() is not None and not retry_failed) for cell in cells)
    with (
        exclusive(prepared.out),
        # Closed here, which ends the worker processes: a traceback that somebody keeps would keep it open.
        closing(run_cells(cells, prepared.executor, prepared.out, retry_failed, progress)) as ended,
        progress.track("Training", len(cells), ended_before) as advance,
    ):
        for cell in ended:
            status = cell_status(IndexedCell.of(cell))
            line = f"{status.cell}: {status.outcome}"
            say(line)
            advance(note=line)
    return _finished(cells)


def _finished(cells: list[GridCell]) -> list[RunDirectory]:
    """The runs that are done. Warns of those that failed; raises where no other is done."""
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


def prepare_benchmark(
    grid: str | Path | Mapping[str, Any] | None,
    *,
    data: str | Path | Manifest | None,
    methods: Words | None,
    held_out: Words | None,
    seeds: int | Iterable[int] | None,
    out: str | Path | None,
    settings: Mapping[str, Any] | None,
    plan: bool,
    jobs: int | None,
    ray: str,
    cpus: int,
    gpus: float,
    fetch: bool,
    tensorboard: bool,
    trust: Words,
    progress: Progress,
    say: Say,
) -> PreparedBenchmark:
    """What `benchmark` is going to train, with these arguments. All mistakes in them are found here."""
    if launched() is not None:
        rule, got = "called by one process, which starts the others", "called by each process that torchrun started"
        remedy = "Start the program without torchrun. For runs of several processes, set run.ranks."
        raise ConfigError(expected("a benchmark", rule, got, remedy), settings=["run.ranks=2"])
    if tensorboard:
        require_tensorboard()
    _require_settings(settings)
    events = {"run": {"tensorboard": True}} if tensorboard else {}
    words = {"data": data, "methods": methods, "held_out": held_out, "seeds": seeds}
    said = merge(events, nested(settings or {}))
    given = _plain(
        {name: value for name, value in words.items() if value is not None} | ({"settings": said} if said else {})
    )
    source = _source(grid)
    missing = [name for name in ("data", "methods") if name not in given]
    if source is None and missing:
        got = "neither" if len(missing) == 2 else f"no '{missing[0]}'"
        raise ConfigError(
            f"Expected a grid, or arguments 'data' and 'methods', but got {got}. Name a TOML file, or give both.",
            arguments=["data=bestiary", "methods=agg,ltds"],
        )
    written_here = {} if source is None or isinstance(source, Path) else _plain(source)
    wanted = read_grid(source if isinstance(source, Path) else written_here, given)
    folder = Path(out) if out is not None else Path("runs") / (source.stem if isinstance(source, Path) else "benchmark")
    jobs = cores() if jobs is None else _count("jobs", jobs)
    executor = _executor(jobs, ray, _count("cpus", cpus), gpus, fetch)
    cells = _cells(wanted, folder, [*modules_named([written_here, given]), *listed(trust)], plan, progress, say)
    return PreparedBenchmark(cells, folder, executor, jobs)


def _require_settings(settings: object) -> None:
    if settings is not None and not (isinstance(settings, Mapping) and all(isinstance(name, str) for name in settings)):
        rule, remedy = "a mapping of names to values", 'Write it as {"schedule.epochs": 60}.'
        raise ConfigError(expected("argument 'settings'", rule, repr(settings), remedy))


def _source(grid: object) -> Path | Mapping[str, Any] | None:
    if isinstance(grid, str | Path):
        return Path(grid)
    if grid is None or isinstance(grid, Mapping):
        return grid
    rule, remedy = "the name of a TOML file, or a mapping with its content", "Leave it out to use the other arguments."
    raise ConfigError(expected("argument 'grid'", rule, repr(grid), remedy))


def _count(name: str, value: object) -> int:
    value = plain_value(value)
    if type(value) is not int or value < 1:
        raise ConfigError(expected(f"argument '{name}'", "a whole number of 1 or more", repr(value), "Leave it out."))
    return value


def _plain(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a grid without a Manifest and NumPy's types; methods must be names."""
    data, methods = tables.get("data"), tables.get("methods")
    if isinstance(data, Manifest):
        require_written(data)
        tables = {**tables, "data": data.root}
    if isinstance(methods, Iterable) and not isinstance(methods, str):
        methods = list(methods)  # a generator gives its values once
        tables = {**tables, "methods": methods}
        for method in methods:
            require_name(method, "methods")
    return {name: plain_value(value) for name, value in tables.items()}


def _cells(wanted: Grid, folder: Path, trusted: list[str], plan: bool, progress: Progress, say: Say) -> list[GridCell]:
    if not plan:
        return cells_of(wanted, folder, partial(open_dataset, progress=progress), trusted, say)
    from ltds.planning.comparison import plan_comparison
    from ltds.planning.implied import with_implied_names

    wanted = wanted.model_copy(update={"settings": with_implied_names(wanted.settings)})
    chosen = partial(plan_comparison, progress=progress, say=say)
    return cells_of(wanted, folder, partial(open_or_build, progress=progress), trusted, say, chosen)


def _executor(jobs: int, ray: str, cpus: int, gpus: float, fetch: bool) -> Executor:
    if ray:
        from ltds.benchmarking.cluster import RayExecutor

        return RayExecutor(ray, cpus, gpus, fetch)
    if fetch or gpus or cpus > 1:
        raise ConfigError(
            "Expected arguments 'cpus', 'gpus' and 'fetch' only with 'ray', but got one without it. Name a cluster.",
            arguments=["ray=auto"],
        )
    from ltds.benchmarking.local import LocalExecutor

    return LocalExecutor(jobs)
