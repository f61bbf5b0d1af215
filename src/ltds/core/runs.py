"""RunDirectory: the only place that knows what a run's files are called."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from ltds.core.errors import CheckpointError
from ltds.core.files import remove_leftovers, write_json, write_text
from ltds.core.journal_lines import journal_rows, last_step
from ltds.core.locks import LockedError, locked
from ltds.core.task import Task

SERIES_FILE = "series.json"  # of a folder that holds a series of runs
FINAL_RUN = "final"  # the last of these, trained on every domain
# In a run, and in a model directory:
SEEN_FILE = "seen.npy"  # fingerprints of the images that the model was trained on
NEAREST_FILE = "nearest.npz"  # features of its training images, made when they are first needed
EVENTS_PREFIX = "events.out.tfevents"  # of TensorBoard's files
EVALUATIONS_FOLDER = "evaluations"  # of the model on other data


@contextmanager
def free_for_training(folder: Path) -> Iterator[None]:
    """Create the folder and lock it against other processes; a CheckpointError if one of them trains in it."""
    try:
        with locked(folder):
            yield
    except LockedError as error:
        raise CheckpointError(
            f"Expected '{folder}' to be free, but another process is training in it. "
            "Wait for it, stop it, or choose another folder."
        ) from error


@dataclass(frozen=True)
class RunDirectory:
    """All files of a run. Whatever comes after training (metrics, reports, models) reads these and no dataset.

    config.toml plan.json environment.json task.json embeddings.npz log.jsonl checkpoints/ predictions/*.npz
    metrics.json model.json seen.npy DONE, or FAILED.json; where somebody asked for it, nearest.npz and evaluations/
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))  # people type ltds.RunDirectory("runs/first")

    @property
    def config_file(self) -> Path:
        return self.path / "config.toml"

    @property
    def plan_file(self) -> Path:
        """Which settings were chosen for the user, and why, where some were."""
        return self.path / "plan.json"

    @property
    def environment_file(self) -> Path:
        return self.path / "environment.json"

    @property
    def task_file(self) -> Path:
        return self.path / "task.json"

    @property
    def embeddings_file(self) -> Path:
        """The class embeddings that the method was given, where it uses any."""
        return self.path / "embeddings.npz"

    @property
    def model_file(self) -> Path:
        """What a prediction needs besides weights and settings: class names, preprocessing, when to say "unknown"."""
        return self.path / "model.json"

    @property
    def journal_file(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def last_checkpoint(self) -> Path:
        return self.path / "checkpoints" / "last.safetensors"

    @property
    def previous_checkpoint(self) -> Path:
        """The checkpoint before the last, in case that one gets damaged; only while the run trains."""
        return self.path / "checkpoints" / "previous.safetensors"

    @property
    def best_checkpoint(self) -> Path:
        return self.path / "checkpoints" / "best.safetensors"

    @property
    def frozen_weights(self) -> Path:
        """The weights of the frozen network that prepares images for the model, where there is one."""
        return self.path / "checkpoints" / "frozen.safetensors"

    def best_of(self, phase: str) -> Path:
        """The best weights of a phase before the last; those of the last are `best_checkpoint`."""
        return self.path / "checkpoints" / f"best-{phase}.safetensors"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.json"

    @property
    def done_file(self) -> Path:
        return self.path / "DONE"

    @property
    def failed_file(self) -> Path:
        return self.path / "FAILED.json"

    def predictions_file(self, split: str) -> Path:
        return self.path / "predictions" / f"{split}.npz"

    @property
    def features_file(self) -> Path:
        return self.path / "predictions" / "features.npz"

    @property
    def thumbnails_file(self) -> Path:
        """Small copies of the test images that figures show."""
        return self.path / "predictions" / "thumbnails.npz"

    @property
    def exists(self) -> bool:
        return self.config_file.is_file()

    @property
    def others_files(self) -> list[str]:
        """Files and folders that no run has left there, which training there would mix with its own. Hidden ones pass.

        A start that was killed leaves some of its own, without config.toml.
        """
        own = {self.plan_file, self.environment_file, self.task_file, self.embeddings_file, self.journal_file}
        own |= {self.failed_file, self.last_checkpoint.parent}
        there = sorted(self.path.iterdir()) if self.path.is_dir() else []
        return [p.name for p in there if p not in own and not p.name.startswith((".", EVENTS_PREFIX))]

    @property
    def done(self) -> bool:
        return self.done_file.is_file()

    @property
    def ended(self) -> bool:
        """Whether it is done, or recorded as failed."""
        return self.done or self.failed_file.is_file()

    def read_config(self) -> dict[str, Any]:
        content = self._read(self.config_file)
        try:
            return tomllib.loads(content.decode())
        except (ValueError, RecursionError) as error:  # the latter for a number of 5,000 digits
            raise CheckpointError(
                f"Expected '{self.config_file}' to be valid TOML, but got: {error}. "
                "Restore it, or train a new run in another folder."
            ) from error

    def read_task(self) -> Task:
        content = self._json(self.task_file)
        try:
            return Task.from_dict(content)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise CheckpointError(
                f"Expected '{self.task_file}' to describe a task, but got {type(error).__name__}: {error}. "
                "Restore it, or train a new run in another folder."
            ) from error

    def read_environment(self) -> dict[str, Any]:
        return self._json(self.environment_file)

    def read_model(self) -> dict[str, Any]:
        return self._json(self.model_file)

    def read_metrics(self) -> dict[str, Any]:
        return self._json(self.metrics_file)

    def read_journal(self) -> list[dict[str, Any]]:
        """The journal's lines without damaged ones, such as a crash leaves; none where there is no journal."""
        return journal_rows(self._read(self.journal_file)) if self.journal_file.is_file() else []

    def last_line(self, now: float) -> tuple[int, float, float]:
        """Steps done so far, seconds of the last one, and seconds since it was written; reads only the file's end."""
        try:
            with self.journal_file.open("rb") as file:
                step, seconds = last_step(file)
                return step, seconds, now - os.fstat(file.fileno()).st_mtime
        except OSError:
            return 0, 0.0, now - self.config_file.stat().st_mtime

    def seconds(self, since: float = 0.0) -> float:
        """Wall-clock seconds from the run's start to its end, interruptions included.

        0 where files were copied, and where the run began before the time `since`.
        """
        try:
            began = self.config_file.stat().st_mtime
            return max(0.0, self.done_file.stat().st_mtime - began) if began >= since else 0.0
        except OSError:
            return 0.0

    def failure(self) -> dict[str, Any] | None:
        """Why the run failed; None where it did not, or was tried again since."""
        if not self.failed_file.is_file():
            return None
        try:
            return self._json(self.failed_file)
        except CheckpointError:  # that it failed is known all the same
            return {"error": f"{self.failed_file.name} cannot be read"}

    def write_failure(self, failure: dict[str, Any]) -> None:
        write_json(self.failed_file, failure)

    def forget_failure(self) -> None:
        self.failed_file.unlink(missing_ok=True)

    def write_config(self, config: dict[str, Any]) -> None:
        write_text(self.config_file, tomli_w.dumps(config))

    def write_plan(self, plan: dict[str, Any]) -> None:
        write_json(self.plan_file, plan)

    def write_task(self, task: Task) -> None:
        write_json(self.task_file, task.to_dict())

    def write_environment(self, environment: dict[str, Any]) -> None:
        write_json(self.environment_file, environment)

    def write_metrics(self, metrics: dict[str, Any]) -> None:
        write_json(self.metrics_file, metrics)

    def write_model(self, model: dict[str, Any]) -> None:
        write_json(self.model_file, model)

    def mark_done(self) -> None:
        write_text(self.done_file, "")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and keep other processes from training in it; an empty folder is removed afterwards."""
        with free_for_training(self.path):
            for folder in (self.path, self.last_checkpoint.parent, self.features_file.parent):
                remove_leftovers(folder)
            yield

    def _read(self, file: Path) -> bytes:
        try:
            return file.read_bytes()
        except OSError as error:
            self._refuse_series(error)
            raise CheckpointError(
                f"Expected '{self.path}' to be a run directory with a file '{file.name}', but it could not be read "
                f"({error.strerror}). Name a folder that ltds has trained in."
            ) from error

    def _refuse_series(self, error: OSError) -> None:
        """Say where the model of a series is: people name the folder that they trained in."""
        if self.exists or not (self.path / SERIES_FILE).is_file():
            return
        final = RunDirectory(self.path / FINAL_RUN)
        if final.done:
            message = f"Its model is '{final.path}': name that folder."
        else:
            message = f"Its model will be '{final.path}', which is not trained yet. Resume the series first."
        raise CheckpointError(
            f"Expected '{self.path}' to be a run directory, but it holds a series of runs. {message}",
            resume=None if final.done else self.path,
        ) from error

    def _json(self, file: Path) -> dict[str, Any]:
        content = self._read(file)
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise CheckpointError(
                f"Expected '{file}' to be valid JSON, but got: {error}. "
                "If it is metrics.json, evaluate the run again: that writes it from the stored predictions."
            ) from error
        if not isinstance(value, dict):
            raise CheckpointError(f"Expected '{file}' to hold a JSON object, but got a {type(value).__name__}.")
        return value
