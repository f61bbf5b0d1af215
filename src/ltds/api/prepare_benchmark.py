"""What a call of `ltds.benchmark`, or the command, is going to train: all mistakes in its arguments are found here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ltds.api.arguments import require_name, require_written
from ltds.benchmarking.cells import GridCell, cells_of
from ltds.benchmarking.grid import Grid, read_grid
from ltds.benchmarking.local import LocalExecutor
from ltds.benchmarking.runner import Executor
from ltds.core.config import merge, nested
from ltds.core.errors import ConfigError, expected
from ltds.core.plain import plain_value
from ltds.core.processor import cores
from ltds.core.progress import Progress, Say
from ltds.core.trust import modules_named, modules_trusted
from ltds.data.datasets.opening import BUILT_IN, open_dataset
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
    """What these arguments ask for."""
    if launched() is not None:
        raise ConfigError(
            "Expected a benchmark to be called by one process, which starts the others, but torchrun started several "
            "processes. Start the program without torchrun. For runs of several processes, set run.ranks.",
            settings=["run.ranks=2"],
        )
    _require_settings(settings)
    said = nested(settings or {})
    if tensorboard:
        require_tensorboard()
        said = merge({"run": {"tensorboard": True}}, said)
    words = {"data": data, "methods": methods, "held_out": held_out, "seeds": seeds, "settings": said or None}
    wanted, modules = _wanted(grid, _plain({name: value for name, value in words.items() if value is not None}))
    folder = Path(out) if out is not None else Path("runs") / _name_of(grid)
    jobs = None if jobs is None else _count("jobs", jobs)
    cluster = _cluster(ray, _count("cpus", cpus), gpus, fetch)
    cells = _cells(wanted, folder, [*modules, *modules_trusted(trust)], plan, progress, say)
    jobs = jobs or max(1, min(cores(), len(cells)))  # of all runs, not of those left: numbers depend on the threads
    return PreparedBenchmark(cells, folder, cluster or LocalExecutor(jobs), jobs)


def _wanted(grid: str | Path | Mapping[str, Any] | None, given: Mapping[str, Any]) -> tuple[Grid, tuple[str, ...]]:
    """The grid that is asked for, and the modules that the caller named: not those that only a file names."""
    if grid is None and (missing := [name for name in ("data", "methods") if name not in given]):
        got = "neither" if len(missing) == 2 else f"no '{missing[0]}'"
        raise ConfigError(
            f"Expected a grid, or arguments 'data' and 'methods', but got {got}. Name a TOML file, or give both.",
            arguments=["data=bestiary", "methods=agg,ltds"],
        )
    if isinstance(grid, str | Path):
        _refuse_dataset(Path(grid))
        return read_grid(Path(grid), given), modules_named(given)
    if grid is None or isinstance(grid, Mapping):
        written_here = _plain(grid or {})
        return read_grid(written_here, given), modules_named([written_here, given])
    rule, remedy = "the name of a TOML file, or a mapping with its content", "Leave it out to use the other arguments."
    raise ConfigError(expected("argument 'grid'", rule, repr(grid), remedy))


def _refuse_dataset(grid: Path) -> None:
    """Raise where images or a dataset were given instead of a grid: other functions take those first."""
    if grid.is_dir() or (str(grid) == BUILT_IN and not grid.exists()):
        rule, remedy = "the name of a TOML file", "Name the images in argument 'data' instead."
        got = f"the folder '{grid}'" if grid.is_dir() else f"the built-in dataset '{grid}'"
        raise ConfigError(expected("argument 'grid'", rule, got, remedy), arguments=[f"data={grid}"])


def _name_of(grid: object) -> str:
    return Path(grid).stem if isinstance(grid, str | Path) else "benchmark"


def _require_settings(settings: object) -> None:
    if settings is not None and not (isinstance(settings, Mapping) and all(isinstance(name, str) for name in settings)):
        rule, remedy = "a mapping of names to values", 'Write it as {"schedule.epochs": 60}.'
        raise ConfigError(expected("argument 'settings'", rule, repr(settings), remedy))


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


def _cluster(ray: str, cpus: int, gpus: float, fetch: bool) -> Executor | None:
    if ray:
        from ltds.benchmarking.cluster import RayExecutor

        return RayExecutor(ray, cpus, gpus, fetch)
    if fetch or gpus or cpus > 1:
        raise ConfigError(
            "Expected arguments 'cpus', 'gpus' and 'fetch' only with 'ray', but got one without it. Name a cluster.",
            arguments=["ray=auto"],
        )
    return None
