"""`ltds.evaluate`: the metrics of a run, again or on other data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ltds.core.errors import ConfigError
from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.evaluation.run_metrics import evaluate as evaluate_run

if TYPE_CHECKING:  # stored predictions are evaluated without torch
    from ltds.engine.other_data import EvaluatedSplit
    from ltds.engine.use import OtherDataResult

BATCH_SIZE = 64  # images that the network sees at once, with other data


class EvaluateOptions(TypedDict):
    """How other data is evaluated: the arguments of `evaluate` that it needs `data` for."""

    out: str | Path | None
    split: EvaluatedSplit
    threshold: float | None
    batch_size: int
    device: str
    trust: Iterable[str]


def evaluate(
    run: str | Path | RunDirectory,
    *,
    data: str | Path | Manifest | None = None,
    out: str | Path | None = None,
    split: EvaluatedSplit = "all",
    threshold: float | None = None,
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
        threshold: Judge the model with "unknown" below this score, instead of its own threshold.
        batch_size: How many images are computed at once.
        device: "auto" (a GPU if there is one), "cpu", "cuda" or "mps".
        trust: Modules outside ltds that the model needs and that may be imported.
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
    """
    directory = run if isinstance(run, RunDirectory) else RunDirectory(Path(run))
    if data is not None:
        return evaluate_with_page(
            directory.path,
            data,
            out=out,
            split=split,
            threshold=threshold,
            batch_size=batch_size,
            device=device,
            trust=trust,
            progress=progress,
        ).metrics
    given = (out is not None, split != "all", threshold is not None, batch_size != BATCH_SIZE, device != "auto")
    if any(given) or tuple(trust):
        raise ConfigError(
            "Expected arguments 'out', 'split', 'threshold', 'batch_size', 'device' and 'trust' only with 'data', but "
            "got one without it: stored predictions are read, and metrics.json of the run is written. Name a dataset, "
            "or leave the argument out.",
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
    progress: Progress,
    **options: Unpack[EvaluateOptions],
) -> OtherDataResult:
    """`evaluate_elsewhere`, with a page for people next to the numbers."""
    from ltds.engine.use import evaluate_elsewhere
    from ltds.reporting.formats.html.new_data_page import write_new_data_page

    result = evaluate_elsewhere(model, data, **options, progress=progress)
    write_new_data_page(result.folder, result.metrics, result.judged, result.root, Path(model).resolve().name)
    return result
