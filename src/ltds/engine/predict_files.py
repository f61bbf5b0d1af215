"""Predictions for image files: found in folders, read in batches; a file that cannot be read is named, not fatal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import torch
from torch import Tensor

from ltds.core.errors import DataError, expected
from ltds.core.progress import SILENT, Progress
from ltds.core.text import few
from ltds.data.image_files import SUFFIXES, images_below, leads_nowhere
from ltds.data.prefetch import READING_THREADS, prefetch
from ltds.engine.model import UNKNOWN, ImagePrediction, Model, check_counts, prepare_details
from ltds.engine.preprocessing import FrozenPreprocessing, ImagePreprocessing


@dataclass(frozen=True)
class PredictedFile:
    """An image file and what the model says of it."""

    file: Path
    answer: ImagePrediction


@dataclass(frozen=True)
class SkippedFile:
    """An image file that could not be read, and why."""

    file: Path
    reason: str


@dataclass(frozen=True)
class FilePredictions:
    """The files that were predicted and those that were skipped, each in the order given.

    Its length and a loop over it are those of the predicted files.
    """

    predicted: tuple[PredictedFile, ...]
    skipped: tuple[SkippedFile, ...]

    def __len__(self) -> int:
        return len(self.predicted)

    def __iter__(self) -> Iterator[PredictedFile]:
        return iter(self.predicted)

    def __repr__(self) -> str:
        """A line: a notebook shows it, even for thousands of images."""
        labels = few([f"{label!r}: {images}" for label, images in self.counts.items()])
        return f"<FilePredictions: {len(self.predicted)} predicted, {len(self.skipped)} skipped; {{{labels}}}>"

    @property
    def counts(self) -> dict[str, int]:
        """How many images got each label, "unknown" included (see `shown_label`); the most frequent first."""
        return dict(Counter(shown_label(row.answer) for row in self.predicted).most_common())


def shown_label(answer: ImagePrediction) -> str:
    """The label for a reader, to whom "unknown" always means that the model named no class."""
    return f"{UNKNOWN} (a class)" if answer.label == UNKNOWN and not answer.unknown else answer.label


def find_images(sources: Iterable[str | Path]) -> list[Path]:
    """The files among `sources`, and all images in and below the folders among them, sorted folder by folder."""
    files: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            files += _images_in_folder(source)
        elif source.exists() or leads_nowhere(source):  # predicting names it among the skipped files
            files.append(source)
        else:
            remedy = "Check the path."
            raise DataError(expected(f"'{source}'", "an image or a folder of images", "nothing there", remedy))
    return files


def predict_files(
    model: Model,
    files: Sequence[Path],
    *,
    top: int = 5,
    threshold: float | None = None,
    nearest: int = 0,
    name_unknowns: bool = False,
    batch_size: int = 64,
    progress: Progress = SILENT,
) -> FilePredictions:
    """What the model says of each file; see `Model.predict`. Files are read while the network computes.

    A file for which it computes NaN is skipped, like one that cannot be read: thousands of others may be good.
    """
    preprocessing = require_images(model)
    check_counts(top=top, nearest=nearest, batch_size=batch_size)
    add_details = prepare_details(model, nearest, name_unknowns, progress)
    predicted: list[PredictedFile] = []
    skipped: list[SkippedFile] = []
    batches = [files[start : start + batch_size] for start in range(0, len(files), batch_size)]

    def read(batch: Sequence[Path]) -> tuple[list[Path], Tensor | None, list[SkippedFile]]:
        return _read(preprocessing.images, batch)

    with progress.track("Predicting", len(files)) as advance, torch.inference_mode():
        for good, images, bad in prefetch(read, batches, threads=READING_THREADS, window=2):
            skipped += bad
            if images is not None:
                outputs = model.method.predict(preprocessing.to_inputs(images).to(model.device))
                logits = outputs.logits.float().cpu().numpy()
                features = outputs.features.flatten(1).float().cpu().numpy()
                said = model.has_answer(logits)
                answers = model.interpret(logits[said], top=top, threshold=threshold)
                predicted += map(PredictedFile, compress(good, said), add_details(answers, features[said]))
                skipped += [SkippedFile(file, "the model computes NaN or infinity") for file in compress(good, ~said)]
            advance(len(good) + len(bad))
    return FilePredictions(tuple(predicted), tuple(skipped))


def _read(
    preprocessing: ImagePreprocessing, batch: Sequence[Path]
) -> tuple[list[Path], Tensor | None, list[SkippedFile]]:
    """The files that can be read, their images transformed, and the other files."""
    good, pixels, bad = [], [], []
    for file in batch:
        try:
            pixels.append(preprocessing.decode(file))
            good.append(file)
        except DataError as error:
            bad.append(SkippedFile(file, error.reason))
    return good, preprocessing.transform(pixels) if good else None, bad


def require_images(model: Model) -> ImagePreprocessing | FrozenPreprocessing:
    """How the model prepares images; refuses a model of features that does not hold the network that computed them."""
    preprocessing = model.record.preprocessing
    if not isinstance(preprocessing, ImagePreprocessing | FrozenPreprocessing):
        raise DataError(
            "Expected a model of images, but this one was trained on precomputed features. In Python, give their "
            "array (N,D) to ltds.load_model(...).predict."
        )
    return preprocessing


def _images_in_folder(folder: Path) -> list[Path]:
    files = [folder / name for name in images_below(folder)]
    if not files:
        endings = ", ".join(sorted(SUFFIXES))
        got = "no image in it or below it"
        raise DataError(expected(f"'{folder}'", f"a folder of images ({endings})", got, "Check the path."))
    return files
