"""`ltds benchmark`: a whole grid of runs that survives anything, and a look at one that is under way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltds.cli.screen import SCREEN
from ltds.core.errors import ConfigError

if TYPE_CHECKING:
    from ltds.benchmark.grid import Cell, Grid
    from ltds.benchmark.runner import Executor


def benchmark(
    grid: Annotated[
        Path | None, typer.Argument(help="TOML file with data, methods, held_out, seeds, settings.")
    ] = None,
    data: Annotated[str, typer.Option(help="Dataset: 'bestiary' (embedded) or a folder with a manifest.")] = "",
    methods: Annotated[str, typer.Option(help="Names from 'ltds methods', with commas between.")] = "",
    held_out: Annotated[str, typer.Option(help="Domains to hold out in turn, with commas between, or 'all'.")] = "",
    seeds: Annotated[str, typer.Option(help="Numbers with commas between.")] = "",
    out: Annotated[Path | None, typer.Option(help="Folder of the benchmark (default: runs/NAME of the grid).")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="One setting for all runs. May be repeated.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time; cores are shared among them. Default: cores.")] = (
        os.cpu_count() or 1
    ),
    ray: Annotated[str, typer.Option(help="Run on a Ray cluster: its address, 'auto', or 'local' to start one.")] = "",
    cpus: Annotated[int, typer.Option(min=1, help="With --ray: CPU cores that one run asks for.")] = 1,
    gpus: Annotated[float, typer.Option(min=0, help="With --ray: GPUs that one run asks for, e.g. 0.5.")] = 0.0,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="With --ray: nodes train on their own disk and send finished runs back.")
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write event files for TensorBoard, next to each log.jsonl.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed runs again.")] = False,
    status: Annotated[Path | None, typer.Option(help="Only look at the benchmark in this folder.")] = None,
) -> None:
    """Train methods x held-out domains x seeds, each in a run directory of its own.

    Example: ltds benchmark --data bestiary --methods agg,bsce,ltds --seeds 0,1,2 --out runs/mine

    Stopped in any way, the same command goes on where it was. A run that fails is recorded and stops no other.
    """
    if status is not None:
        _show_status(status)
        return
    from ltds.benchmark.grid import cells_of
    from ltds.cli.source import open_data
    from ltds.engine.tensorboard import require_tensorboard

    events = ["run.tensorboard=true"] if tensorboard else []
    if tensorboard:
        require_tensorboard()
    wanted = _grid(grid, data, methods, held_out, seeds, [*events, *(overrides or [])])
    place = out or Path("runs") / (grid.stem if grid else "benchmark")
    cells = cells_of(wanted, place, open_data)
    _run(cells, place, _executor(jobs, ray, cpus, gpus, fetch), jobs, retry_failed)


def _grid(file: Path | None, data: str, methods: str, held_out: str, seeds: str, overrides: list[str]) -> Grid:
    """The grid of the file, or of the options alone, or the file's with the options over it."""
    from ltds.benchmark.grid import Grid, read_grid
    from ltds.core.config import parse, parse_overrides

    given: dict[str, Any] = {}
    if data:
        given["data"] = data
    if methods:
        given["methods"] = methods.split(",")
    if held_out:
        given["held_out"] = [] if held_out == "all" else held_out.split(",")
    if seeds:
        given["seeds"] = [_seed(text) for text in seeds.split(",")]
    if overrides:
        given["settings"] = parse_overrides(overrides)
    if file is not None:
        return read_grid(file, given)
    if not data or not methods:
        raise ConfigError(
            "Expected a grid file, or --data and --methods, but got neither. "
            "Example: ltds benchmark --data bestiary --methods agg,ltds --seeds 0,1,2"
        )
    return parse(Grid, given)


def _seed(text: str) -> int:
    if not text.strip().isdecimal():
        raise ConfigError(f"Expected --seeds to be numbers with commas between, but got '{text}'. Write --seeds 0,1,2.")
    return int(text)


def _executor(jobs: int, ray: str, cpus: int, gpus: float, fetch: bool) -> Executor:
    if ray:
        from ltds.benchmark.cluster import Cluster

        return Cluster(ray, cpus, gpus, fetch)
    if fetch or gpus or cpus > 1:
        raise ConfigError(
            "Expected --cpus, --gpus and --fetch only with --ray, but got one without it. Add --ray auto."
        )
    from ltds.benchmark.local import Local

    return Local(jobs)


def _run(cells: list[Cell], out: Path, executor: Executor, jobs: int, retry_failed: bool) -> None:
    from ltds.benchmark.runner import held, run_cells
    from ltds.cli.live import watching

    with held(out):
        SCREEN.say(f"{len(cells)} runs in {out}; the same command goes on where it stopped.")
        try:
            over = run_cells(cells, executor, out, retry_failed, SCREEN)
            with watching(cells, jobs) as news:
                for cell in over:
                    news(cell)
        except KeyboardInterrupt:
            SCREEN.say("Interrupted. The same command goes on where it stopped.")
            raise
        _conclude(out)


def _conclude(out: Path) -> None:
    """The table of what is finished, and a line for each failure."""
    from ltds.benchmark.standing import read_index, standing_of
    from ltds.cli.report import show
    from ltds.reporting.collect import collect

    standings = [standing_of(place) for place in read_index(out)]
    failed = [s for s in standings if s.state == "failed"]
    if any(s.state == "done" for s in standings):
        show(collect([s.place.run.path for s in standings if s.state == "done"]))
    for standing in failed:
        SCREEN.say(f"Failed: {standing.place.run.path.name}: {standing.error}")
    if failed:
        SCREEN.say(f"{len(failed)} of {len(standings)} runs failed. Try them again with --retry-failed.")
        raise typer.Exit(1)
    SCREEN.say(f"Page: ltds report {out} --out report.html")


def _show_status(out: Path) -> None:
    from ltds.benchmark.standing import read_index, standing_of
    from ltds.cli.live import status_table

    status_table([standing_of(place) for place in read_index(out)])
