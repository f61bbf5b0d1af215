"""`ltds.train`: one run, or one for each held-out domain, from data and settings to the run directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ltds.api.arguments import require_name, require_written
from ltds.core.config import merge, nested, read_toml
from ltds.core.durations import parse_duration
from ltds.core.errors import ConfigError
from ltds.core.plain import plain_value
from ltds.core.progress import SILENT, Progress, Say, say_nothing
from ltds.core.runs import FINAL_RUN, RunDirectory
from ltds.core.trust import modules_named, modules_trusted
from ltds.data.datasets.raw import open_or_build
from ltds.data.manifest import Manifest
from ltds.engine.config import with_absolute_paths
from ltds.engine.follow import on_all_ranks
from ltds.engine.model_record import unknown_rule
from ltds.engine.start import resume_run
from ltds.planning.begin import begin_run
from ltds.planning.series import RunSeries, check_estimate, require_new, series_locked


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
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
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
        return _resume(RunDirectory(Path(resume)), progress, modules_trusted(trust), say, ranks)
    require_name(method, "method")
    typed = [plain_value(layer) for layer in (_given({**options, "run.ranks": ranks}), nested(settings or {}))]
    check_estimate(estimate)
    seconds = None if budget is None else parse_duration(budget)
    if out is not None:
        require_new(Path(out))
    layers = [with_absolute_paths(layer) for layer in (read_toml(Path(config)) if config else {}, *typed)]
    manifest = _open_data(data, layers, progress)
    run = begin_run(
        None if out is None else Path(out),
        manifest,
        layers,
        budget=seconds,
        estimate=estimate,
        trust=[*modules_named(typed), *modules_trusted(trust)],
        progress=progress,
        say=say,
    )
    return _with_doubt(run, say)


def _with_doubt(run: RunDirectory, say: Say) -> RunDirectory:
    """The run that was trained; says so first if its threshold for "unknown" rests on too few images."""
    if doubt := unknown_rule(run).doubt:
        say(doubt)
    return run


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
        require_written(source)
    return open_or_build(source, progress)


def _resume(run: RunDirectory, progress: Progress, trust: list[str], say: Say, ranks: int | None) -> RunDirectory:
    if RunSeries.exists_in(run.path):
        series = RunSeries.read(run.path)
        if series.done:  # then its folder may be read-only
            return series.run(FINAL_RUN)
        with series_locked(run.path):
            return _with_doubt(series.train(progress=progress, say=say, trust=trust, ranks=ranks), say)
    if run.done:
        return run
    resume_run(run, progress, trust=trust, ranks=ranks)
    return _with_doubt(run, say)
