"""Predictions as files: CSV, JSON lines, or a picture with the images and their labels."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from ltds.core.captioned_grid import GridPicture, draw_captioned
from ltds.core.errors import DataError, expected
from ltds.core.files import atomic, write_text
from ltds.data.decode import decoded
from ltds.engine.predict_files import FilePredictions, PredictedFile

MOST_PICTURES = 200  # on one sheet
SIDE = 128


def check_output(file: Path) -> None:
    """Raise a DataError unless the ending names a format."""
    if file.suffix.lower() not in WRITERS:
        remedy = "Choose the ending by what you need: a table, a line of JSON for each image, or a picture."
        raise DataError(expected(f"'{file}'", "a file .csv, .jsonl or .png", f"'{file.suffix}'", remedy))


def write_predictions(predictions: FilePredictions, file: Path) -> None:
    """Write a file in the format that its ending names. Skipped images are left out."""
    check_output(file)
    WRITERS[file.suffix.lower()](predictions, file)


def printable(path: Path) -> str:
    """The path as text that every terminal and file can hold: bytes that are no UTF-8 as \\x escapes."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _write_csv(predictions: FilePredictions, file: Path) -> None:
    most = max((len(row.answer.classes) for row in predictions.predicted), default=0)
    columns = [f"{name}_{i}" for i in range(1, most + 1) for name in ("class", "probability")]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["image", "label", "confidence", "score", *columns])
    for row in predictions.predicted:
        answer = row.answer
        classes = [value for pair in answer.classes for value in pair]
        table.writerow([printable(row.file), answer.label, answer.confidence, answer.score, *classes])
    write_text(file, text.getvalue())


def _write_jsonl(predictions: FilePredictions, file: Path) -> None:
    lines = []
    for row in predictions.predicted:
        answer = row.answer
        classes = [{"class": name, "probability": share} for name, share in answer.classes]
        content = {
            "image": printable(row.file),
            "label": answer.label,
            "confidence": answer.confidence,
            "score": answer.score,
            "classes": classes,
        }
        lines.append(json.dumps(content, ensure_ascii=False) + "\n")
    write_text(file, "".join(lines))


def _write_sheet(predictions: FilePredictions, file: Path) -> None:
    sheet = draw_captioned([_picture(row) for row in predictions.predicted[:MOST_PICTURES]], SIDE)
    with atomic(file) as stream:
        sheet.save(stream, format="PNG")


def _picture(row: PredictedFile) -> GridPicture:
    colour = "firebrick" if row.answer.unknown else "black"
    best = f"{row.answer.classes[0][0]} {100 * row.answer.confidence:.0f} %"
    label = f"unknown ({best})" if row.answer.unknown else best
    return GridPicture(decoded(row.file, 2 * SIDE), label, printable(Path(row.file.name)), colour)


WRITERS: dict[str, Callable[[FilePredictions, Path], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
    ".png": _write_sheet,
}
