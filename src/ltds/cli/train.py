"""`ltds train`: train one model, or resume an interrupted run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN


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
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all random numbers (default: 0).")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Length of the training.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
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
    from ltds.api import train as train_run
    from ltds.core.config import parse_overrides
    from ltds.core.runs import RunDirectory

    was_done = resume is not None and RunDirectory(resume).done
    with _say_how_to_resume(resume or out):
        run = train_run(
            data or None,
            out=out,
            method=method or None,
            held_out=held_out,
            seed=seed,
            epochs=epochs,
            device=device,
            config=config,
            settings=parse_overrides(overrides or []),
            tensorboard=tensorboard,
            resume=resume,
            progress=SCREEN,
        )
    if was_done:
        SCREEN.say(f"'{resume}' is finished already.")
    else:
        _show_results(run.path)


@contextmanager
def _say_how_to_resume(path: Path | None) -> Iterator[None]:
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
