"""`ltds predict`: name the class of images with a trained model."""

from __future__ import annotations

import codecs
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltds.cli.screen import SCREEN, name_unread
from ltds.core.errors import DataError
from ltds.core.text import printable, score_decimals

if TYPE_CHECKING:
    from ltds.engine.model import Model
    from ltds.engine.predict_files import FilePredictions

SHOWN = 20  # rows of the table on the screen
REPEATED = 3  # images that a printed command names: a shell may have listed thousands
TOP, BATCH_SIZE = 5, 64  # as long as the user says nothing else


def predict(
    model: Annotated[Path, typer.Argument(help="Run directory, or folder that 'ltds export' wrote as safetensors.")],
    images: Annotated[
        list[str],
        typer.Argument(help="Images, folders that are searched for images, or - for paths on standard input."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write: .csv, .jsonl (a line of JSON for each image) or .png (images with labels)."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many of the most probable classes to list.")] = TOP,
    threshold: Annotated[
        float | None, typer.Option(help="Score below which to say 'unknown' (default: the model's own).")
    ] = None,
    nearest: Annotated[
        int,
        typer.Option(
            min=0,
            help="List this many of the most similar training images. The first time, this computes the features of "
            "all training images and stores them with the model.",
        ),
    ] = 0,
    name_unknowns: Annotated[
        bool,
        typer.Option(
            "--name-unknowns",
            help="Give each unknown image the name of the class without training images whose description is nearest "
            "(ltds and other methods with class embeddings). How often that is right: open_names in metrics.json.",
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Dataset that the model was trained on, for --nearest, if it was moved after training."),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images that the network sees at once.")] = BATCH_SIZE,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    trust: Annotated[
        list[str] | None, typer.Option(help="Module outside ltds that the model needs and that may be imported.")
    ] = None,
) -> None:
    """Name the class of each image, or say 'unknown', and show how sure the model is.

    Example: ltds predict runs/first photos --out predictions.csv

    With the three most similar training images, as a picture: ltds predict runs/first photos --nearest 3 --out look.png

    Exit code 1: some images could not be read; they are named, and the others are predicted.
    """
    from ltds.engine.load import load_model
    from ltds.engine.use import predict as predict_images
    from ltds.engine.write_predictions import check_output

    if out is not None:
        check_output(out)
    with _say_what_was_written(out):
        files, missing = _files(images)
        loaded = load_model(model, device=device, trust=trust or ())
        done = predict_images(
            loaded,
            files,
            out=out,
            top=top,
            threshold=threshold,
            nearest=nearest,
            name_unknowns=name_unknowns,
            data=data,
            batch_size=batch_size,
            progress=SCREEN,
        )
    used = loaded.threshold if threshold is None else threshold
    decimals = 4 if used is None else score_decimals(used, (row.answer.score for row in done.predicted[:SHOWN]))
    _show(done, top, nearest, decimals)
    SCREEN.say(_unknown_rule(loaded, threshold, decimals))
    if out is not None:
        _say_written(out, len(done.predicted), nearest)
    elif len(images) > REPEATED:
        SCREEN.say("To write all of it to a file: the same command with --out predictions.csv")
    else:
        more = _changed(  # all that the file depends on
            ("--top", top, TOP),
            ("--threshold", threshold, None),
            ("--nearest", nearest, 0),
            ("--data", data, None),
            ("--batch-size", batch_size, BATCH_SIZE),
            ("--device", device, "auto"),
            *(("--trust", module, None) for module in trust or ()),
        )
        _say_command([str(model), *images, *more, *(["--name-unknowns"] if name_unknowns else [])])
    _end([*missing, *((item.file, item.reason) for item in done.skipped)])


@contextmanager
def _say_what_was_written(out: Path | None) -> Iterator[None]:
    """Say that there is no half of a file when the user interrupts: it is written at the end, as a whole."""
    try:
        yield
    except KeyboardInterrupt:
        SCREEN.say("Interrupted." if out is None else f"Interrupted. Nothing was written to {shlex.quote(str(out))}.")
        raise


def _changed(*options: tuple[str, object, object]) -> list[str]:
    """The options (name, value, default) as typed, without those at their default."""
    return [word for name, value, default in options if value != default for word in (name, str(value))]


def _say_command(words: list[str]) -> None:
    SCREEN.say(f"To write all of it to a file: {shlex.join(['ltds', 'predict', *words, '--out', 'predictions.csv'])}")


def _say_written(out: Path, images: int, nearest: int) -> None:
    from ltds.engine.write_predictions import pictures_on_a_sheet

    most = pictures_on_a_sheet(nearest)
    part = f", the first {most} images" if images > most and out.suffix.lower() == ".png" else ""
    SCREEN.say(f"Wrote {shlex.quote(str(out))}{part}")


def _end(skipped: list[tuple[Path, str]]) -> None:
    if skipped:
        name_unread(skipped, "skipped")
        raise typer.Exit(1)


def _files(images: list[str]) -> tuple[list[Path], list[tuple[Path, str]]]:
    """The images of the given paths; "-" stands for the lines of standard input.

    One bad line of many does not end the command: lines without an image are returned, too, with the reason.
    """
    from ltds.engine.predict_files import find_images

    files: list[Path] = []
    missing: list[tuple[Path, str]] = []
    for word in images:
        if word != "-":
            files += find_images([word])
            continue
        for line in _lines(sys.stdin.buffer.read()):
            try:
                files += find_images([line])
            except DataError as error:
                missing.append((Path(line), error.reason))
            except OSError as error:  # such as a name that is too long
                missing.append((Path(line), error.strerror or str(error)))
    return files, missing


def _lines(content: bytes) -> Iterator[str]:
    """The paths in a list: one on each line, or with a zero byte after each, as `find -print0` writes them."""
    content = content.removeprefix(codecs.BOM_UTF8)
    names = content.split(b"\0") if b"\0" in content else (line.rstrip(b"\r") for line in content.split(b"\n"))
    return (os.fsdecode(name) for name in names if name)


def _show(done: FilePredictions, top: int, nearest: int, decimals: int) -> None:
    """The predictions as a table, scores with so many decimals."""
    from ltds.engine.predict_files import shown_label

    rows = []
    for row in done.predicted[:SHOWN]:
        others = ", ".join(f"{name} {100 * share:.0f} %" for name, share in row.answer.classes)
        label = f"unknown: {row.answer.name}?" if row.answer.name else shown_label(row.answer)
        sure = [f"{row.answer.score:.{decimals}f}", f"{100 * row.answer.confidence:.1f} %"]
        cells = [printable(row.file), label, *sure, others]
        near = "\n".join(f"{n.similarity:.2f} {n.label} in {n.domain}: {n.path}" for n in row.answer.nearest)
        rows.append([*cells, near] if nearest else cells)
    if rows:
        header = ["image", "label", "score", "confidence", "most probable" if top > 1 else "class"]
        SCREEN.table([*header, "nearest training images"] if nearest else header, rows)
        SCREEN.say("score: below the threshold it is 'unknown'; confidence: of the most probable class, named or not.")
    if len(done.predicted) > SHOWN:
        SCREEN.say(f"... and {len(done.predicted) - SHOWN} more images")
    if done.predicted:
        total = len(done.predicted)
        counts = [[label, str(n), f"{100 * n / total:.1f} %"] for label, n in done.counts.items()]
        SCREEN.table(["label", "images", "share"], [*counts, ["all", str(total), "100.0 %"]])


def _unknown_rule(model: Model, threshold: float | None, decimals: int) -> str:
    rule = model.record.unknown
    if threshold is not None:
        return f"An image is called 'unknown' if its score is below {threshold:.15g}, as you asked."
    if rule.threshold is None:
        why = "the run had no correctly classified validation image to choose a threshold on (see --threshold)"
        return f"No image is called 'unknown': {why}."
    return f"An image is called 'unknown' if its score is below {rule.threshold:.{decimals}f}. The rule: {rule.rule}."
