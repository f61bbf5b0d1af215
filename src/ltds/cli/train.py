"""`ltds train`: train one model, or resume an interrupted run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ltds.cli.screen import SCREEN
from ltds.core.errors import ConfigError


def train(
    data: Annotated[str, typer.Option(help="Dataset: 'bestiary' (built in) or a dataset folder.")] = "",
    method: Annotated[
        str, typer.Option(help="A method that 'ltds methods' lists, or your own: 'package.module:Class'.")
    ] = "",
    held_out: Annotated[
        str | None, typer.Option(help="Domain to test on and not train on (default: train on every domain).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="New folder for the run: settings, log, checkpoints, metrics.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with settings; the config.toml of a run repeats that run.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, e.g. --set optimizer.lr=0.05. May be repeated.")
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write event files for TensorBoard, next to log.jsonl.")
    ] = False,
    resume: Annotated[
        Path | None, typer.Option(help="Folder of an interrupted run, to continue it exactly where it stopped.")
    ] = None,
) -> None:
    """Train a method on a dataset with one domain held out, and test it.

    Example: ltds train --data bestiary --method dc --held-out woodblock --out runs/dc

    If it is stopped, continue it with: ltds train --resume runs/dc
    """
    if resume is not None:
        if data or method or held_out is not None or out or config or overrides or tensorboard:
            raise ConfigError(
                "Expected --resume alone, but got other options too: a run keeps the settings it started with. "
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
    """The layers of settings: file, options, --set. A later layer replaces values of an earlier one."""
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
    """Create a run directory and train in it."""
    from ltds.core.config import merge
    from ltds.core.runs import RunDirectory
    from ltds.data.datasets.opening import open_dataset
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
    manifest = open_dataset(source, SCREEN)
    root = {"data": {"root": str(manifest.root.resolve())}}
    settings = resolve(*layers, root, dataset=manifest.name)
    SCREEN.say(f"Training {settings.method_name} on {manifest.name}, held out: {settings.data.held_out or 'nothing'}")
    with _resume_hint(out):
        create_run(run, settings, manifest, SCREEN)
    _show_results(run.path)


def continue_run(path: Path) -> None:
    """Continue a run from its last checkpoint."""
    from ltds.core.runs import RunDirectory
    from ltds.engine.start import resume_run

    run = RunDirectory(path)
    if run.done:
        SCREEN.say(f"'{path}' is finished already.")
        return
    SCREEN.say(f"Continuing '{path}'")
    with _resume_hint(path):
        resume_run(run, SCREEN)
    _show_results(path)


@contextmanager
def _resume_hint(path: Path) -> Iterator[None]:
    """Say how to continue when the user interrupts."""
    try:
        yield
    except KeyboardInterrupt:
        SCREEN.say(f"Interrupted. Continue with: ltds train --resume {path}")
        raise


def _show_results(path: Path) -> None:
    from ltds.cli.report import show
    from ltds.reporting.collection import collect

    show(collect([path]))
    SCREEN.say(f"Run: {path}\nFor a report page: ltds report {path} --out report.html")
