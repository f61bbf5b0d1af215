"""Public functions: train and evaluate as the commands do, with the same options and defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ltds.core.config import merge, nested, read_toml
from ltds.core.durations import parse_duration
from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.plain import plain_value
from ltds.core.progress import SILENT, Progress, Say, say_nothing
from ltds.core.runs import FINAL_RUN, RunDirectory
from ltds.core.trust import modules_named
from ltds.data.datasets.raw import open_or_build
from ltds.data.manifest import Manifest
from ltds.engine.config import with_absolute_paths
from ltds.engine.follow import on_all_ranks
from ltds.engine.other_data import EvaluatedSplit
from ltds.engine.start import resume_run
from ltds.engine.use import OtherDataResult, evaluate_elsewhere
from ltds.evaluation.run_metrics import evaluate as evaluate_run
from ltds.planning.begin import begin_run, new_run_folder
from ltds.planning.series import RunSeries, check_estimate, require_new, series_locked

BATCH_SIZE = 64  # images that the network sees at once, with other data


@on_all_ranks
def train(
    data: str | Path | Manifest | None = None,
    *,
    out: str | Path | None = None,
    method: str | None = None,
    held_out: str | None = None,
    seed: int | None = None,
    epochs: int | None = None,
    device: str | None = None,
    ranks: int | None = None,
    features: str | Path | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    budget: str | float | None = None,
    estimate: str = "none",
    tensorboard: bool = False,
    resume: str | Path | None = None,
    trust: Iterable[str] = (),
    progress: Progress = SILENT,
    say: Say = say_nothing,
) -> RunDirectory:
    """Train a method on a dataset, often with one domain held out. Returns the run: the folder with all results.

        run = ltds.train("bestiary", method="ltds", held_out="woodblock", out="runs/first")

    What you do not set is chosen for your images. plan.json records each choice and its reason.

    Args:
        data: "bestiary" (built in), the folder of a dataset, a folder of images sorted as domain/class/*, a CSV file
            with the columns path, class and domain, or a Manifest.
        out: A new folder, by default runs/NAME.
        method: A name that `ltds.list_methods` lists, or your own as "package.module:Class".
        held_out: The domain to test on, which is not used in training.
        seed: Seed of all random numbers.
        epochs: Length of the training.
        device: "auto" (a GPU if there is one), "cpu", "cuda" or "mps".
        ranks: How many processes train together, each on its share of every batch. torchrun can start them, too.
        features: A file of vectors to train on instead of images, see `ltds.extract_features`.
        config: A TOML file with settings.
        settings: Settings by dotted name, as in {"optimizer.lr": 0.05}. They replace those of the file.
        budget: The time for the whole training, "10m" by default.
        estimate: Before the final model is trained on all domains, hold out each domain in turn ("full") or only
            `held_out` ("one"). The runs are then folders in `out`, and the final one is returned.
        tensorboard: Also write event files for TensorBoard.
        resume: The directory of a run to continue exactly where it stopped. No other argument may be given then, except
            `ranks`, `trust`, `progress` and `say`.
        trust: Modules outside ltds that the file or the run needs and that may be imported. Those that `method` and
            `settings` name are trusted already.
        progress: Shows how far the work is, as `ltds.Bars()` does; nothing by default.
        say: Called with each choice and its reason, as text.
    """
    options = {
        "method.name": method,
        "data.held_out": held_out,
        "run.seed": seed,
        "schedule.epochs": epochs,
        "run.device": device,
        "data.features": None if features is None else str(Path(features).resolve()),
        "run.tensorboard": tensorboard or None,
    }
    if resume is not None:
        asked = None if estimate == "none" else estimate
        _require_resume_alone(data, out, config, budget, asked, settings or None, _given(options) or None)
        return _resume(RunDirectory(Path(resume)), progress, trust, say, ranks)
    _require_name(method)
    typed = [plain_value(layer) for layer in (_given({**options, "run.ranks": ranks}), nested(settings or {}))]
    check_estimate(estimate)
    seconds = None if budget is None else parse_duration(budget)
    if out is not None:
        require_new(Path(out))
    layers = [with_absolute_paths(layer) for layer in (read_toml(Path(config)) if config else {}, *typed)]
    manifest = _open_data(data, layers, progress)
    return begin_run(
        new_run_folder(manifest.name) if out is None else Path(out),
        manifest,
        layers,
        budget=seconds,
        estimate=estimate,
        trust=[*modules_named(typed), *trust],
        progress=progress,
        say=say,
    )


def _require_name(method: object) -> None:
    """Refuse a class where its name is wanted: a run must be able to import it again."""
    if isinstance(method, type):
        name = f"{method.__module__}:{method.__qualname__}"
        got, remedy = f"the class {method.__name__}", f'Name it instead: method="{name}".'
        raise ConfigError(expected("argument 'method'", "a name", got, remedy))


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, as nested tables."""
    return nested({name: value for name, value in options.items() if value is not None})


def _require_resume_alone(*others: object) -> None:
    """Refuse the arguments of a new training, which are None where they were not given."""
    if any(other is not None for other in others):
        raise ConfigError(
            "Expected argument 'resume' alone, but got others with it: a run continues with its own settings. To "
            "change settings, start a new run in another folder."
        )


def _open_data(data: str | Path | Manifest | None, layers: list[dict[str, Any]], progress: Progress) -> Manifest:
    """The dataset that the argument or a setting names, built first where it is a folder or list of images."""
    root = merge({"data": {}}, *layers)["data"].get("root")  # refuses data="...", as in a benchmark's file
    if data is not None and "root" in layers[-1].get("data", {}):
        raise ConfigError("Expected one dataset, but got argument 'data' and data.root. Leave one of them out.")
    source = data if data is not None else root
    if not source:
        raise ConfigError("Expected a dataset, but got none. Name one.", arguments=["data=bestiary"])
    if isinstance(source, Manifest):
        _require_written(source)
    return open_or_build(source, progress)


def _require_written(manifest: Manifest) -> None:
    """Refuse a manifest that its folder does not hold: a run that is resumed reads it from there."""
    try:
        written = Manifest.read(manifest.root).identity == manifest.identity
    except DataError:
        written = False
    if not written:
        rule, got = "the dataset in its folder", "one with other images, labels or splits"
        remedy = (
            "Write it first, to a folder of its own in which its paths lead to the images: "
            "dataclasses.replace(manifest, root=folder).write()."
        )
        raise DataError(expected(f"the manifest of '{manifest.root}'", rule, got, remedy))


def evaluate(
    run: str | Path | RunDirectory,
    *,
    data: str | Path | Manifest | None = None,
    out: str | Path | None = None,
    split: EvaluatedSplit = "all",
    batch_size: int = BATCH_SIZE,
    device: str = "auto",
    trust: Iterable[str] = (),
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Compute the metrics of a run again from its stored predictions, and write metrics.json. Needs no images.

    With `data`, test the run's model on another dataset. This writes evaluation.json, predictions.csv and a page,
    report.html. The other arguments are for that.

    Args:
        run: The run, or with `data` any model directory.
        data: A dataset with the same class names, or a folder of images sorted as domain/class/*.
        out: The folder to write to, by default evaluations/NAME in the run, or MODEL-evaluations/NAME beside a model
            directory.
        split: "all" images of `data`, or "test".
        batch_size: How many images are computed at once.
        device: "auto" (a GPU if there is one), "cpu", "cuda" or "mps".
        trust: Modules outside ltds that the model needs and that may be imported.
        progress: Shows how far the work is, as `ltds.Bars()` does; nothing by default.
    """
    directory = run if isinstance(run, RunDirectory) else RunDirectory(Path(run))
    if data is not None:
        return evaluate_with_page(
            directory.path,
            data,
            out=out,
            split=split,
            batch_size=batch_size,
            device=device,
            trust=trust,
            progress=progress,
        ).metrics
    if out is not None or split != "all" or batch_size != BATCH_SIZE or device != "auto" or tuple(trust):
        raise ConfigError(
            "Expected arguments 'out', 'split', 'batch_size', 'device' and 'trust' only with 'data', but got one "
            "without it: stored predictions are read, and metrics.json of the run is written. Name a dataset, or leave "
            "the argument out.",
            arguments=["data"],
        )
    with progress.track("Evaluating", 1) as advance:
        metrics = evaluate_run(directory)
        advance()
    return metrics


def evaluate_with_page(
    model: str | Path,
    data: str | Path | Manifest,
    *,
    out: str | Path | None,
    split: EvaluatedSplit,
    batch_size: int,
    device: str,
    trust: Iterable[str],
    progress: Progress,
) -> OtherDataResult:
    """`evaluate_elsewhere`, with a page for people next to the numbers."""
    from ltds.reporting.formats.html.new_data_page import write_new_data_page

    result = evaluate_elsewhere(
        model, data, out=out, split=split, batch_size=batch_size, device=device, trust=trust, progress=progress
    )
    write_new_data_page(result.folder, result.metrics, result.judged, result.root, Path(model).resolve().name)
    return result


def _resume(run: RunDirectory, progress: Progress, trust: Iterable[str], say: Say, ranks: int | None) -> RunDirectory:
    if RunSeries.exists_in(run.path):
        series = RunSeries.read(run.path)
        if series.done:  # then its folder may be read-only
            return series.run(FINAL_RUN)
        with series_locked(run.path):
            return series.train(progress=progress, say=say, trust=trust, ranks=ranks)
    if not run.done:
        resume_run(run, progress, trust=trust, ranks=ranks)
    return run
