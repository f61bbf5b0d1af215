"""`ltds benchmark`: a grid of runs that can be stopped and continued at any time, and the status of one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltds.cli.screen import SCREEN
from ltds.core.errors import ConfigError

if TYPE_CHECKING:
    from ltds.benchmarking.cells import GridCell
    from ltds.benchmarking.runner import Executor


def benchmark(
    context: typer.Context,
    grid: Annotated[
        Path | None, typer.Argument(help="TOML file with data, methods, held_out, seeds and settings.")
    ] = None,
    data: Annotated[
        str, typer.Option(help="'bestiary' (built in), a dataset folder or, with --plan, a folder of images.")
    ] = "",
    methods: Annotated[str, typer.Option(help="Methods, separated by commas; 'ltds methods' lists them.")] = "",
    held_out: Annotated[
        str, typer.Option(help="Domains to hold out in turn, separated by commas, or 'all' (default: all).")
    ] = "",
    seeds: Annotated[str, typer.Option(help="Numbers separated by commas (default: 0,1,2).")] = "",
    out: Annotated[Path | None, typer.Option(help="Folder to write to (default: runs/NAME of the grid file).")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting for all runs, NAME=VALUE. May be repeated.")
    ] = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="For images of your own: choose network, image size, batch, learning rate and length for them, as "
            "'ltds train' does; the same for every method.",
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            show_default="number of CPU cores, or of runs if they are fewer",
            help="Runs to train at the same time; they share the CPU cores.",
        ),
    ] = None,
    ray: Annotated[str, typer.Option(help="Run on a Ray cluster: its address, 'auto', or 'local' to start one.")] = "",
    cpus: Annotated[int, typer.Option(min=1, help="With --ray: CPU cores for each run, or for each of its ranks.")] = 1,
    gpus: Annotated[float, typer.Option(min=0, help="With --ray: GPUs for each run, e.g. 0.5.")] = 0.0,
    fetch: Annotated[
        bool,
        typer.Option("--fetch", help="With --ray: train on the nodes' local disks, send finished runs back."),
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write event files for TensorBoard, next to each log.jsonl.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed runs again.")] = False,
    trust: Annotated[
        list[str] | None, typer.Option(help="Module whose code the grid file may import. May be repeated.")
    ] = None,
    status: Annotated[Path | None, typer.Option(help="Only show the status of the benchmark in this folder.")] = None,
) -> None:
    """Train every combination of methods, held-out domains and seeds, each in its own run directory.

    Example: ltds benchmark --data bestiary --methods agg,bsce,ltds --seeds 0,1,2 --out runs/mine

    Example: ltds benchmark --data photos --methods agg,bsce,ltds --plan --out runs/compare

    If it is stopped, the same command continues it. A failed run is recorded, and the other runs continue.
    """
    if status is not None:
        _require_alone(context, "status")
        _show_status(status)
        return
    from ltds.api.prepare_benchmark import prepare_benchmark
    from ltds.core.config import parse_overrides

    prepared = prepare_benchmark(
        grid,
        data=data or None,
        methods=_listed(methods),
        held_out=held_out if held_out == "all" else _listed(held_out),
        seeds=[_seed(text) for text in _listed(seeds) or []] or None,
        out=out,
        settings=parse_overrides(overrides or []),
        plan=plan,
        jobs=jobs,
        ray=ray,
        cpus=cpus,
        gpus=gpus,
        fetch=fetch,
        tensorboard=tensorboard,
        trust=trust or [],
        progress=SCREEN,
        say=SCREEN.say,
    )
    run_grid(prepared.cells, prepared.out, prepared.executor, prepared.jobs, retry_failed)


def _require_alone(context: typer.Context, name: str) -> None:
    """Refuse every other option and argument: with this one, they would have no effect."""
    others = [
        parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.name).upper()
        for parameter in context.command.params
        if (source := context.get_parameter_source(str(parameter.name))) is not None
        and source.name == "COMMANDLINE"
        and parameter.name != name
    ]
    if others:
        raise ConfigError(
            f"Expected --{name} alone, but got {' and '.join(others)} with it. --{name} only shows the benchmark in a "
            "folder: leave the rest out."
        )


def _listed(text: str) -> list[str] | None:
    return [part.strip() for part in text.split(",")] if text else None


def _seed(text: str) -> int:
    if not text.strip().isdecimal() or len(text.strip()) > 18:
        raise ConfigError(f"Expected --seeds to be numbers separated by commas, but got '{text}'. Write --seeds 0,1,2.")
    return int(text)


def run_grid(cells: list[GridCell], out: Path, executor: Executor, jobs: int, retry_failed: bool = False) -> None:
    """Train the cells that are not done yet, show their progress, then print the table of results."""
    from ltds.benchmarking.runner import running
    from ltds.cli.live import watching

    with running(cells, executor, out, retry_failed, SCREEN) as ended:
        SCREEN.say(f"{len(cells)} runs in {out}. If it is stopped, the same command continues it.")
        try:
            with watching(cells, jobs) as show_ended:
                for cell in ended:
                    show_ended(cell)
        except KeyboardInterrupt:
            SCREEN.say("Interrupted. The same command continues it.")
            raise
        _show_results(out)


def _show_results(out: Path) -> None:
    """Print the table of the finished runs, and a line for each failure."""
    from ltds.benchmarking.status import cell_status, read_index
    from ltds.cli.report import show
    from ltds.reporting.collection import collect

    statuses = [cell_status(cell) for cell in read_index(out)]
    failed = [s for s in statuses if s.state == "failed"]
    if any(s.state == "done" for s in statuses):
        show(collect([s.cell.run.path for s in statuses if s.state == "done"]))
    for status in failed:
        SCREEN.say(f"Failed: {status.cell.run.path.name}: {status.error}")
    if failed:
        SCREEN.say(f"{len(failed)} of {len(statuses)} runs failed. Try them again with --retry-failed.")
        raise typer.Exit(1)
    SCREEN.say(f"For a report page: ltds report {shlex.quote(str(out))} --out report.html")


def _show_status(out: Path) -> None:
    from ltds.benchmarking.status import cell_status, read_index
    from ltds.cli.live import status_table

    status_table([cell_status(cell) for cell in read_index(out)])
