"""Run: what one finished run directory says, read and checked once."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ltds.core.errors import CheckpointError, expected
from ltds.core.runs import RunDirectory
from ltds.core.task import Task

STEP = '{"kind": "step"'  # how the journal's line of a step begins
STEPS = 300  # more of them hardly move a curve of 120 points, and a thousand long journals take minutes to parse
Share = Annotated[float, Field(ge=0, le=1 + 1e-9, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class TaskNames(_Part):
    """Which task the metrics were computed for."""

    name: str
    held_out: str | None


class ClassMetrics(_Part):
    """One class: its training images over all sources and its accuracy on the test images."""

    name: str = Field(alias="class")
    train_images: int
    accuracy: Share | None


class PairMetrics(_Part):
    """(all domains, C): accuracy of each domain-class pair, and whether training saw it."""

    accuracy: list[list[Share | None]]
    seen: list[list[bool]]


class Metrics(_Part):
    """The parts of metrics.json that a report reads. Shares lie in 0..1; None is undefined, never 0."""

    version: Literal[1]
    task: TaskNames
    summary: dict[str, Share | None]
    choices: dict[str, dict[str, Any]] = {}
    per_class: list[ClassMetrics] = []
    pairs: PairMetrics | None = None


@dataclass(frozen=True)
class Run:
    """A finished, evaluated run."""

    directory: RunDirectory
    method: str
    seed: int
    task: Task
    config: dict[str, Any]
    metrics: Metrics
    environment: dict[str, Any]

    @cached_property
    def journal(self) -> tuple[dict[str, Any], ...]:
        """The journal's lines, or nothing; of many steps about STEPS, spread evenly. Read when first asked for."""
        return tuple(_journal(self.directory.journal_file))

    @property
    def path(self) -> Path:
        return self.directory.path

    @property
    def command(self) -> str:
        """The command that made the run, as one would type it; empty where it was not recorded."""
        command = self.environment.get("command", "")
        return shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")

    @property
    def commit(self) -> str:
        """The commit of the code that made the run; empty where it was not recorded."""
        return str(self.environment.get("commit") or "")

    @property
    def held_out(self) -> str:
        return held_out_name(self.task.held_out)

    def settings(self) -> dict[str, Any]:
        """Dotted settings that the seeds of one experiment share: all but [run], the place and the held-out domain."""
        shared = {name: value for name, value in self.config.items() if name != "run"}
        return {k: v for k, v in _flat(shared).items() if k not in ("data.root", "data.held_out", "method.name")}


def held_out_name(held_out: str | None) -> str:
    """The held-out domain's name, or words for a model that was trained on every domain."""
    return "none held out" if held_out is None else held_out


def read_run(directory: RunDirectory) -> Run:
    """The run in this directory; a CheckpointError with one sentence where it cannot be reported."""
    if not directory.done:
        raise CheckpointError(_unfinished(directory))
    try:
        config, task = directory.read_config(), directory.read_task()
        method, seed = str(config["method"]["name"]), int(config["run"]["seed"])
    except (LookupError, TypeError, ValueError) as error:
        raise CheckpointError(_unreadable(directory, "config.toml and task.json", error)) from error
    metrics = _read_metrics(directory, task)
    return Run(directory, method, seed, task, config, metrics, _environment(directory))


def _read_metrics(directory: RunDirectory, task: Task) -> Metrics:
    file = directory.metrics_file
    remedy = f"'ltds evaluate {directory.path}' makes it anew."
    if not file.is_file():
        raise CheckpointError(f"'{directory.path}' is trained but not evaluated: {remedy}")
    try:
        metrics = Metrics.model_validate(directory.read_metrics())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CheckpointError(
            expected(f"'{file}'", "metrics of version 1", f"{where}: {first['msg']}", remedy)
        ) from error
    mismatch = _mismatch(metrics, task)
    if mismatch:
        raise CheckpointError(expected(f"'{file}'", "about the task in task.json", mismatch, remedy))
    return metrics


def _mismatch(metrics: Metrics, task: Task) -> str:
    """What in the metrics cannot belong to this task, in words; empty where all agrees."""
    if (metrics.task.name, metrics.task.held_out) != (task.name, task.held_out):
        return f"task '{metrics.task.name}' with '{metrics.task.held_out}' held out"
    unknown = [row.name for row in metrics.per_class if row.name not in task.classes]
    if unknown:
        return f"the unknown class '{unknown[0]}'"
    shape = {len(task.classes)}
    for matrix in (metrics.pairs.accuracy, metrics.pairs.seen) if metrics.pairs else ():
        if len(matrix) != len(task.domains) or {len(row) for row in matrix} != shape:
            return f"pairs that are not (domains, classes) = ({len(task.domains)}, {len(task.classes)})"
    return ""


def _environment(directory: RunDirectory) -> dict[str, Any]:
    """environment.json, or nothing: a report can do without it."""
    try:
        return directory.read_environment()
    except ValueError:
        return {}


def _journal(file: Path) -> Iterator[dict[str, Any]]:
    """The lines up to the first that a crash cut off; only those that are kept are parsed."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    steps = [i for i, line in enumerate(lines) if line.startswith(STEP)]
    every = max(1, len(steps) // STEPS)
    skipped = set(steps) - set(steps[::every]) if every > 1 else set()
    for i, line in enumerate(lines):
        if line and i not in skipped:
            try:
                row = json.loads(line)
            except ValueError:
                return
            if not isinstance(row, dict) or not isinstance(row.get("step"), int):
                return
            yield row


def _unfinished(directory: RunDirectory) -> str:
    remedy = f"Finish it with: ltds train --resume {directory.path}"
    return f"'{directory.path}' is left out because it is unfinished (it has no DONE file). {remedy}"


def _unreadable(directory: RunDirectory, files: str, error: Exception) -> str:
    said = f"no entry {error}" if isinstance(error, KeyError) else str(error)
    return f"'{directory.path}' is left out because its {files} cannot be read: {said}"


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
