"""metrics.json of a run, checked against its task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ltds.core.errors import CheckpointError, expected
from ltds.core.runs import RunDirectory
from ltds.core.task import Task

MetricValue = Annotated[float, Field(ge=0, le=1 + 1e-9, allow_inf_nan=False)]


class _MetricsModel(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class TaskNames(_MetricsModel):
    """The task for which the metrics were computed."""

    name: str
    held_out: str | None


class ClassMetrics(_MetricsModel):
    """One class: its training images over all sources and its accuracy on the test images."""

    name: str = Field(alias="class")
    train_images: int
    accuracy: MetricValue | None


class PairMetrics(_MetricsModel):
    """(all domains, C): accuracy and test images of each domain-class pair, and whether it had training images."""

    accuracy: list[list[MetricValue | None]]
    images: list[list[int]] = []
    seen: list[list[bool]]


class RunMetrics(_MetricsModel):
    """The entries of metrics.json that a report reads. Fractions are in 0..1; None means undefined, never 0."""

    version: Literal[5]
    task: TaskNames
    summary: dict[str, MetricValue | None]
    choices: dict[str, dict[str, Any]] = {}
    per_class: list[ClassMetrics] = []
    pairs: PairMetrics | None = None


def read_metrics(directory: RunDirectory, task: Task) -> RunMetrics:
    """The metrics of a run; a CheckpointError if they are missing, damaged or of another task."""
    file = directory.metrics_file
    remedy = f"'ltds evaluate {directory.path}' computes it again."
    if not file.is_file():
        raise CheckpointError(f"'{directory.path}' is trained but not evaluated: {remedy}")
    try:
        metrics = RunMetrics.model_validate(directory.read_metrics())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CheckpointError(
            expected(f"'{file}'", "metrics of version 5", f"{where}: {first['msg']}", remedy)
        ) from error
    mismatch = _mismatch(metrics, task)
    if mismatch:
        raise CheckpointError(expected(f"'{file}'", "about the task in task.json", mismatch, remedy))
    return metrics.model_copy(update={"summary": {**metrics.summary, "macro_u": _macro_u(metrics, task)}})


def _macro_u(metrics: RunMetrics, task: Task) -> float | None:
    """Mean over known classes of the accuracy on the held-out domain; None without one or without its images."""
    if metrics.pairs is None or task.held_out is None:
        return None
    row = metrics.pairs.accuracy[task.domains.index(task.held_out)]
    known = [value for c, value in enumerate(row) if c not in task.open_classes and value is not None]
    return sum(known) / len(known) if known else None


def _mismatch(metrics: RunMetrics, task: Task) -> str:
    """What in the metrics cannot belong to this task, as text; empty if everything agrees."""
    if (metrics.task.name, metrics.task.held_out) != (task.name, task.held_out):
        return f"task '{metrics.task.name}' with '{metrics.task.held_out}' held out"
    unknown = [row.name for row in metrics.per_class if row.name not in task.classes]
    if unknown:
        return f"the unknown class '{unknown[0]}'"
    pairs = metrics.pairs
    matrices: list[Sequence[Sequence[object]]] = [pairs.accuracy, pairs.seen] if pairs else []
    for matrix in [*matrices, pairs.images] if pairs and pairs.images else matrices:
        if len(matrix) != len(task.domains) or {len(row) for row in matrix} != {len(task.classes)}:
            return f"pairs that are not (domains, classes) = ({len(task.domains)}, {len(task.classes)})"
    return ""
