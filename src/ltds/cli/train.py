"""`ltds train`: one run, from settings to metrics, or the rest of an interrupted one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ltds.cli.screen import SCREEN
from ltds.core.errors import ConfigError


def train(
    data: Annotated[str, typer.Option(help="Dataset: 'bestiary' (embedded) or a folder with a manifest.")] = "",
    method: Annotated[str, typer.Option(help="A name from 'ltds methods', or 'package.module:Class'.")] = "",
    held_out: Annotated[
        str | None, typer.Option(help="Domain to keep for testing; leave out to train on every domain.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory to make.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML settings; a run's own config.toml repeats that run.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, e.g. --set optimizer.lr=0.05. May be repeated.")
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write event files for TensorBoard, next to log.jsonl.")
    ] = False,
    resume: Annotated[Path | None, typer.Option(help="Run directory to continue, exactly where it stopped.")] = None,
) -> None:
    """Train a method on a dataset with one domain held out.

    Example: ltds train --data bestiary --method dc --held-out woodblock --out runs/dc

    Stopped in any way, it goes on with: ltds train --resume runs/dc
    """
    if resume is not None:
        if data or method or held_out is not None or out or config or overrides or tensorboard:
            raise ConfigError(
                "Expected --resume alone, but got other options beside it: a run goes on with its own settings. "
                "To change settings, start a new run with --out."
            )
        continue_run(resume)
        return
    if out is None:
        raise ConfigError("Expected a folder for the run, but got none. Add --out, e.g. --out runs/first.")
    start_run(out, data, _tables(config, overrides or [], method, held_out, tensorboard))


def _tables(
    config: Path | None, overrides: list[str], method: str, held_out: str | None, tensorboard: bool
) -> list[dict[str, Any]]:
    """The layers of settings, later ones over earlier ones: file, options, --set."""
    from ltds.core.config import parse_overrides, read_toml

    options: dict[str, Any] = {}
    if method:
        options["method"] = {"name": method}
    if held_out is not None:
        options["data"] = {"held_out": held_out}
    if tensorboard:
        options["run"] = {"tensorboard": True}
    return [read_toml(config) if config else {}, options, parse_overrides(overrides)]


def start_run(out: Path, data: str, layers: list[dict[str, Any]]) -> None:
    """Make a new run directory and train in it."""
    from ltds.cli.source import open_data
    from ltds.core.config import merge
    from ltds.core.runs import RunDirectory
    from ltds.engine.config import resolve
    from ltds.engine.start import create_run, refuse_existing

    run = RunDirectory(out)
    refuse_existing(run)
    given = merge(*layers).get("data", {})
    if data and "root" in layers[-1].get("data", {}):
        raise ConfigError("Expected one dataset, but got --data and --set data.root. Leave one of them out.")
    source = data or given.get("root", "")
    if not source:
        raise ConfigError("Expected a dataset, but got none. Add --data, e.g. --data bestiary.")
    manifest = open_data(source)
    root = {"data": {"root": str(manifest.root.resolve())}}
    settings = resolve(*layers, root, dataset=manifest.name)
    SCREEN.say(f"Training {settings.method_name} on {manifest.name}, held out: {settings.data.held_out or 'nothing'}")
    with _hint(out):
        create_run(run, settings, manifest, SCREEN)
    _report_end(run.path)


def continue_run(path: Path) -> None:
    """Take a run up where its last checkpoint left it."""
    from ltds.core.runs import RunDirectory
    from ltds.engine.start import resume_run

    run = RunDirectory(path)
    if run.done:
        SCREEN.say(f"'{path}' is finished already.")
        return
    SCREEN.say(f"Continuing '{path}'")
    with _hint(path):
        resume_run(run, SCREEN)
    _report_end(path)


@contextmanager
def _hint(path: Path) -> Iterator[None]:
    """Say how to go on when the user interrupts."""
    try:
        yield
    except KeyboardInterrupt:
        SCREEN.say(f"Interrupted. Go on with: ltds train --resume {path}")
        raise


def _report_end(path: Path) -> None:
    from ltds.cli.report import show
    from ltds.reporting.collect import collect

    show(collect([path]))
    SCREEN.say(f"Run: {path}\nPage: ltds report {path} --out report.html")
