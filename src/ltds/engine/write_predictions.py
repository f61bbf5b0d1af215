"""Write predictions to a file: CSV, JSON lines, or a picture with the images and their labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from ltds.core.captioned_grid import COLUMNS, GridPicture, draw_captioned
from ltds.core.errors import DataError, expected
from ltds.core.files import atomic, first_line_of, refuse_to_replace, require_writable, write_csv, write_text
from ltds.core.image_grid import has_software_tag, software_tag
from ltds.core.text import path_cell, printable
from ltds.data.decode import decoded
from ltds.engine.predict_files import FilePredictions, PredictedFile
from ltds.engine.training_index import NearestImage, TrainingIndex

MOST_PICTURES = 200  # on one sheet
SIDE = 128
_MARK = "ltds predict"  # a text in the PNG files of sheets
_COLUMNS = ("image", "label", "unknown", "confidence", "score")  # the first ones of a table
_KEYS = {*_COLUMNS, "classes"}  # of a line of JSON, at least


def check_output(file: Path) -> None:
    """Raise a DataError unless the ending names a format and the file can be written."""
    if file.is_dir():
        raise DataError(
            expected(f"'{file}'", "a file to write", "a folder", "Name a file in it."),
            arguments=[f"out={file / 'predictions.csv'}"],
        )
    if file.suffix.lower() not in WRITERS:
        remedy = "Choose the ending by what you need: a table, a line of JSON for each image, or a picture."
        raise DataError(expected(f"'{file}'", "a file .csv, .jsonl or .png", f"'{file.suffix}'", remedy))
    _refuse_to_replace(file)
    require_writable(file.parent)


def _refuse_to_replace(file: Path) -> None:
    """Raise unless `write_predictions` wrote what is there: an output typed as *.png or *.csv names a user's file."""
    what, is_ours = {
        ".csv": ("a table of predictions", _is_table),
        ".jsonl": ("lines of predictions", _is_lines),
        ".png": ("a sheet of predictions", has_software_tag(_MARK)),
    }[file.suffix.lower()]
    refuse_to_replace(file, what, is_ours)


def _is_table(file: Path) -> bool:
    return first_line_of(file).split(",")[: len(_COLUMNS)] == list(_COLUMNS)


def _is_lines(file: Path) -> bool:
    try:
        first = json.loads(first_line_of(file))
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.keys() >= _KEYS


def write_predictions(predictions: FilePredictions, file: Path, index: TrainingIndex | None = None) -> None:
    """Write a file in the format that its ending names. Skipped images are left out.

    `index`: has the pictures of the nearest training images, where there are some in the predictions.
    """
    check_output(file)
    WRITERS[file.suffix.lower()](predictions, file, index)


def _write_csv(predictions: FilePredictions, file: Path, index: TrainingIndex | None) -> None:
    most = max((len(row.answer.classes) for row in predictions.predicted), default=0)
    near = max((len(row.answer.nearest) for row in predictions.predicted), default=0)
    named = any(row.answer.name for row in predictions.predicted)
    columns = ["name"] if named else []
    columns += [f"{name}_{i}" for i in range(1, most + 1) for name in ("class", "probability")]
    columns += [f"nearest_{i}_{name}" for i in range(1, near + 1) for name in _NEAREST]
    rows: list[list[Any]] = [[*_COLUMNS, *columns]]
    for row in predictions.predicted:
        answer = row.answer
        classes: list[Any] = [answer.name] if named else []
        classes += [value for pair in answer.classes for value in pair]
        for image in answer.nearest:
            classes += [path_cell(image.path), *list(describe_nearest(image).values())[1:]]
        said = [answer.label, "yes" if answer.unknown else "no", answer.confidence, answer.score]
        rows.append([path_cell(row.file), *said, *classes])
    write_csv(file, rows)


def _write_jsonl(predictions: FilePredictions, file: Path, index: TrainingIndex | None) -> None:
    lines = []
    for row in predictions.predicted:
        answer = row.answer
        classes = [{"class": name, "probability": share} for name, share in answer.classes]
        content = {
            "image": printable(row.file),
            "label": answer.label,
            "unknown": answer.unknown,
            "confidence": answer.confidence,
            "score": answer.score,
            "classes": classes,
        }
        if answer.name:
            content["name"] = answer.name
        if answer.nearest:
            content["nearest"] = [describe_nearest(image) for image in answer.nearest]
        lines.append(json.dumps(content, ensure_ascii=False) + "\n")
    write_text(file, "".join(lines))


def describe_nearest(image: NearestImage) -> dict[str, Any]:
    """What is said of a near training image, as JSON values."""
    return dict(zip(_NEAREST, (image.path, image.label, image.domain, image.similarity), strict=True))


def _write_sheet(predictions: FilePredictions, file: Path, index: TrainingIndex | None) -> None:
    """An image is followed by the training images nearest to it; an image and its neighbours stay in one row."""
    rows = predictions.predicted
    width = 1 + max((len(row.answer.nearest) for row in rows), default=0)
    shown = rows[: pictures_on_a_sheet(width - 1)]
    pictures = [picture for row in shown for picture in _pictures(row, width, index)]
    sheet = draw_captioned(pictures, SIDE, width * max(1, COLUMNS // width))
    with atomic(file) as stream:
        sheet.save(stream, format="PNG", pnginfo=software_tag(_MARK))


def pictures_on_a_sheet(nearest: int) -> int:
    """How many predicted images a sheet shows, with this many training images for each."""
    return max(1, MOST_PICTURES // (1 + nearest))


def _pictures(row: PredictedFile, width: int, index: TrainingIndex | None) -> Iterator[GridPicture]:
    """The predicted image, and then its nearest training images; blank ones fill the row."""
    colour = "firebrick" if row.answer.unknown else "black"
    best = f"{row.answer.classes[0][0]} {100 * row.answer.confidence:.0f} %"
    label = f"unknown ({row.answer.name or best})" if row.answer.unknown else best
    yield GridPicture(_decoded_again(row.file), label, printable(Path(row.file.name)), colour)
    for image in row.answer.nearest:
        content = index.thumbnail(image.row) if index is not None else None
        picture = decoded(content, SIDE) if content else Image.new("RGB", (SIDE, SIDE), "whitesmoke")
        yield GridPicture(picture, f"{image.similarity:.2f} {image.label}", image.domain, "steelblue")
    for _ in range(width - 1 - len(row.answer.nearest)):
        yield GridPicture(Image.new("RGB", (SIDE, SIDE), "white"), "")


def _decoded_again(file: Path) -> Image.Image:
    """The image, or grey where it was deleted or changed since it was predicted: the predictions are not lost then."""
    try:
        return decoded(file, 2 * SIDE)
    except DataError:
        return Image.new("RGB", (2 * SIDE, 2 * SIDE), "grey")


_NEAREST = ("path", "class", "domain", "similarity")
WRITERS: dict[str, Callable[[FilePredictions, Path, TrainingIndex | None], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
    ".png": _write_sheet,
}
