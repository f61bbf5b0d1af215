"""`ltds train`: train one model, or resume an interrupted run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN
from ltds.core.errors import TrainingInterrupted


def train(
    data: Annotated[
        str,
        typer.Argument(
            help="Folder of images sorted as domain/class/*, CSV file with the columns path, class and domain, dataset "
            "folder, or 'bestiary' (built in)."
        ),
    ] = "",
    method: Annotated[
        str,
        typer.Option(
            help="A method that 'ltds methods' lists, or your own: 'package.module:Class' (default: one that suits the "
            "images)."
        ),
    ] = "",
    held_out: Annotated[
        str | None, typer.Option(help="Domain to test on and not train on (default: train on every domain).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="New folder for the run (default: runs/NAME, after the dataset).")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Time for the whole training, e.g. 90s, 10m or 2h (default: 10m).")
    ] = None,
    estimate: Annotated[
        str,
        typer.Option(
            help="Before the final model is trained on every domain, hold out each domain in turn ('full'), or the one "
            "of --held-out ('one'), to estimate how it does on a new domain."
        ),
    ] = "none",
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all random numbers (default: 0).")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Length of the training.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    ranks: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that train together, each on its share of every batch (default: 1)."),
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="File of precomputed features to train on, as 'ltds data features' writes.")
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
    trust: Annotated[
        list[str] | None,
        typer.Option(help="Module whose code --config or --resume may import, e.g. --trust mine.methods. Repeatable."),
    ] = None,
) -> None:
    """Train a model on your images, and test it on images that it has not seen.

    Example: ltds train photos --budget 10m --out runs/photos

    Example: ltds train bestiary --method dc --held-out woodblock --out runs/dc

    What you do not set is chosen for your images; each choice is explained before training starts.

    If training is stopped, continue it with: ltds train --resume runs/photos
    """
    from ltds.api.train import train as train_run
    from ltds.core.config import parse_overrides
    from ltds.core.runs import RunDirectory
    from ltds.engine.team import follows

    was_done = resume is not None and RunDirectory(resume).done
    with _say_how_to_go_on(resume or out):
        run = train_run(
            data or None,
            out=out,
            method=method or None,
            held_out=held_out,
            seed=seed,
            epochs=epochs,
            device=device,
            ranks=ranks,
            features=features,
            config=config,
            settings=parse_overrides(overrides or []),
            budget=budget,
            estimate=estimate,
            tensorboard=tensorboard,
            resume=resume,
            trust=trust or [],
            progress=SCREEN,
            say=SCREEN.say,
        )
    if follows():
        return
    if was_done:
        SCREEN.say(f"'{resume}' is finished already.")
    else:
        _show_results(run.path)


@contextmanager
def _say_how_to_go_on(path: Path | None) -> Iterator[None]:
    """Say how to continue when the user interrupts. `path`: the folder of the run; None: a new one, chosen later."""
    from ltds.engine.team import follows

    try:
        yield
    except KeyboardInterrupt as interrupt:
        folder = interrupt.folder if isinstance(interrupt, TrainingInterrupted) else path
        if not follows():
            SCREEN.say(_how_to_go_on(folder))
        raise


def _how_to_go_on(folder: Path | None) -> str:
    if folder is not None and _can_resume(folder):
        return f"Interrupted. Continue with: ltds train --resume {shlex.quote(str(folder))}"
    return "Interrupted before training began: nothing was trained yet. The same command starts it."


def _can_resume(folder: Path) -> bool:
    from ltds.core.runs import RunDirectory
    from ltds.planning.series import RunSeries

    run = RunDirectory(folder)
    return RunSeries.exists_in(folder) or (run.exists and not run.done)


def _show_results(path: Path) -> None:
    from ltds.cli.report import show
    from ltds.core.runs import RunDirectory
    from ltds.engine.model_record import takes_vectors
    from ltds.planning.series import RunSeries
    from ltds.reporting.collection import collect

    series = path.parent if RunSeries.exists_in(path.parent) else path
    show(collect([series]))
    run, runs = shlex.quote(str(path)), shlex.quote(str(series))
    SCREEN.say(f"Run: {path}\nFor a report page: ltds report {runs} --out report.html")
    if takes_vectors(RunDirectory(path)):
        SCREEN.say(f"To use the model in Python: ltds.load_model({str(path)!r}).predict(VECTORS)")
    else:
        SCREEN.say(f"To use the model: ltds predict {run} IMAGE ...")
