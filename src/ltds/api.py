"""The public functions, one for each verb of the command line, with the same options and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ltds.core.config import merge, nested, read_toml
from ltds.core.errors import ConfigError
from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.data.datasets.opening import open_dataset
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig, resolve
from ltds.engine.start import create_run, refuse_existing, resume_run
from ltds.evaluation.run_metrics import evaluate as evaluate_run


def train(
    data: str | Path | Manifest | None = None,
    *,
    out: str | Path | None = None,
    method: str | None = None,
    held_out: str | None = None,
    seed: int | None = None,
    epochs: int | None = None,
    device: str | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    tensorboard: bool = False,
    resume: str | Path | None = None,
    progress: Progress = SILENT,
) -> RunDirectory:
    """Train a method on a dataset with one domain held out; the run directory holds all that comes of it.

        run = ltds.train("bestiary", method="ltds", held_out="woodblock", out="runs/first")

    `data`: "bestiary" (built in), the folder of a dataset, or a Manifest. `config`: a TOML file with settings.
    `settings`: settings by dotted name, as in {"optimizer.lr": 0.05}; they replace the file's. `resume`: the directory
    of a run to continue exactly where it stopped, with nothing else given.
    """
    options = {
        "method.name": method,
        "data.held_out": held_out,
        "run.seed": seed,
        "schedule.epochs": epochs,
        "run.device": device,
        "run.tensorboard": tensorboard or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if resume is not None:
        if data is not None or out is not None or config is not None or settings or given:
            raise ConfigError(
                "Expected argument 'resume' alone, but got others with it: a run continues with its own settings. To "
                "change settings, start a new run in another folder."
            )
        return _resume(RunDirectory(Path(resume)), progress)
    if out is None:
        raise ConfigError("Expected a folder for the run, but got none. Name one.", arguments=["out=runs/first"])
    layers = [read_toml(Path(config)) if config else {}, nested(given), nested(settings or {})]
    run = RunDirectory(Path(out))
    refuse_existing(run)
    manifest, resolved = prepare(data, layers, progress)
    create_run(run, resolved, manifest, progress)
    return run


def prepare(
    data: str | Path | Manifest | None, layers: list[dict[str, Any]], progress: Progress = SILENT
) -> tuple[Manifest, RunConfig]:
    """The dataset, opened or built, and the settings of a run on it; later layers replace values of earlier ones."""
    root = merge(*layers).get("data", {}).get("root")
    if data is not None and "root" in layers[-1].get("data", {}):
        raise ConfigError("Expected one dataset, but got argument 'data' and data.root. Leave one of them out.")
    source = data if data is not None else root
    if not source:
        raise ConfigError("Expected a dataset, but got none. Name one.", arguments=["data=bestiary"])
    manifest = open_dataset(source, progress)
    folder = {"data": {"root": str(manifest.root.resolve())}}
    return manifest, resolve(*layers, folder, dataset=manifest.name)


def evaluate(run: str | Path | RunDirectory, *, progress: Progress = SILENT) -> dict[str, Any]:
    """Compute the metrics of a run again, from its stored predictions: no model, no images. Writes metrics.json."""
    directory = run if isinstance(run, RunDirectory) else RunDirectory(Path(run))
    with progress.track("Evaluating", 1) as advance:
        metrics = evaluate_run(directory)
        advance()
    return metrics


def _resume(run: RunDirectory, progress: Progress) -> RunDirectory:
    if not run.done:
        resume_run(run, progress)
    return run
