"""The verbs for a trained model: predict image files, export it, evaluate it on another dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ltds.core.errors import ConfigError
from ltds.core.files import require_writable
from ltds.core.progress import SILENT, Progress
from ltds.data.datasets.raw import open_or_preview
from ltds.data.manifest import Manifest
from ltds.engine.export import ExportFormat, ExportResult
from ltds.engine.load import load_model
from ltds.engine.model import Model, check_counts, check_threshold
from ltds.engine.other_data import (
    EvaluatedSplit,
    Judged,
    evaluate_on,
    evaluation_folder,
    evaluations_of,
    write_evaluation,
)
from ltds.engine.predict_files import FilePredictions, SkippedFile, find_images, predict_files
from ltds.engine.write_predictions import check_output, write_predictions

MOST_CHECKED = 100  # images that an export is compared on


def predict(
    model: str | Path | Model,
    images: str | Path | Sequence[str | Path],
    *,
    out: str | Path | None = None,
    top: int = 5,
    threshold: float | None = None,
    nearest: int = 0,
    name_unknowns: bool = False,
    data: str | Path | Manifest | None = None,
    batch_size: int = 64,
    device: str = "auto",
    trust: Iterable[str] = (),
    progress: Progress = SILENT,
) -> FilePredictions:
    """Name the class of image files, or "unknown". Files that cannot be read are listed and skipped.

        ltds.predict("runs/first", "photos", out="predictions.csv").counts

    Args:
        model: A run, a model directory, or what `load_model` returned.
        images: Files, and folders that are searched for images.
        out: A file to write: .csv, .jsonl or .png.
        top: How many of the most probable classes to list.
        threshold: Say "unknown" if the score is below this number, instead of the model's own threshold.
        nearest: How many of the most similar training images to list for each image, with class, domain and similarity.
            Their features are computed once and stored with the model.
        name_unknowns: Give unknown images the name of the open class with the nearest embedding (methods with class
            embeddings only).
        data: The dataset that the model was trained on, for `nearest`, if it was moved after training.
        batch_size: How many images are computed at once.
        device: "auto" (a GPU if there is one), "cpu", "cuda" or "mps".
        trust: Modules outside ltds that the model needs and that may be imported.
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
    """
    check_threshold(threshold)
    check_counts(top=top, nearest=nearest, batch_size=batch_size)
    if data is not None and not nearest:
        raise ConfigError(
            "Expected argument 'data' only where nearest training images are asked for, but got it alone: a prediction "
            "needs no dataset. Ask for some, or leave it out.",
            arguments=["nearest=3"],
        )
    if out is not None:
        check_output(Path(out))
    files = find_images([images] if isinstance(images, str | Path) else images)
    loaded = model if isinstance(model, Model) else load_model(model, device=device, trust=trust)
    index = loaded.training_index(data, progress) if nearest else None
    predictions = predict_files(
        loaded,
        files,
        top=top,
        threshold=threshold,
        nearest=nearest,
        name_unknowns=name_unknowns,
        batch_size=batch_size,
        progress=progress,
    )
    if out is not None:
        write_predictions(predictions, Path(out), index)
    return predictions


def export(
    model: str | Path,
    out: str | Path,
    *,
    to: ExportFormat = "safetensors",
    check: str | Path | Sequence[str | Path] = (),
    threshold: float | None = None,
    nearest: bool = False,
    trust: Iterable[str] = (),
    progress: Progress = SILENT,
) -> ExportResult:
    """Write the model of a run, or of a model directory, to the new folder `out`; see `Model.export`.

        ltds.export("runs/first", "models/first", to="onnx", check="photos").difference

    Args:
        model: A run or a model directory.
        out: The folder to write to, which must not exist.
        to: "safetensors" (to load with `load_model`), "onnx" or "torch-export".
        check: Images, or folders of images. The export is compared with the model on the first hundred.
        threshold: The score below which the exported model says "unknown", instead of the model's own threshold.
        nearest: Add what is needed to find the nearest training images, including small copies of them.
        trust: Modules outside ltds that the model needs and that may be imported.
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
    """
    images = find_images([check] if isinstance(check, str | Path) else check)[:MOST_CHECKED]
    loaded = _with_threshold(load_model(model, device="cpu", trust=trust), threshold)
    return loaded.export(out, to=to, check=images, nearest=nearest, progress=progress)


def _with_threshold(model: Model, threshold: float | None) -> Model:
    return model if threshold is None else model.with_threshold(threshold)


@dataclass(frozen=True)
class OtherDataResult:
    """A model on another dataset: the numbers, the folder they were written to, and the images left out.

    `judged`: what the numbers were computed from; its paths belong to the folder `root`.
    """

    metrics: dict[str, Any]
    folder: Path
    skipped: tuple[SkippedFile, ...]
    judged: tuple[Judged, ...]
    root: Path


def evaluate_elsewhere(
    model: str | Path,
    data: str | Path | Manifest,
    *,
    out: str | Path | None = None,
    split: EvaluatedSplit = "all",
    threshold: float | None = None,
    batch_size: int = 64,
    device: str = "auto",
    trust: Iterable[str] = (),
    progress: Progress = SILENT,
) -> OtherDataResult:
    """A trained model on another dataset with the same class names, or on a folder of images sorted by class.

    Writes evaluation.json and predictions.csv into `out`, by default evaluations/NAME in the run or
    MODEL-evaluations/NAME beside a model directory; if NAME holds an evaluation on other images, the name gets longer,
    and with a `threshold` instead of the model's own it contains that.
    """
    manifest = open_or_preview(data, progress)
    loaded = _with_threshold(load_model(model, device=device, trust=trust), threshold)
    parent = evaluations_of(Path(model))
    require_writable(parent if out is None else Path(out))
    metrics, judged, predictions = evaluate_on(loaded, manifest, split=split, batch_size=batch_size, progress=progress)
    folder = evaluation_folder(parent, metrics, threshold) if out is None else Path(out)
    write_evaluation(folder, metrics, judged)
    return OtherDataResult(metrics, folder, predictions.skipped, tuple(judged), manifest.root)
