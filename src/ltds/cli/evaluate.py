"""`ltds evaluate`: metrics again from stored predictions, or a trained model on another dataset."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ltds.cli.screen import SCREEN, name_unread
from ltds.core.errors import ConfigError
from ltds.core.text import count, few, score_text

if TYPE_CHECKING:
    from ltds.api.evaluate import EvaluateOptions
    from ltds.engine.other_data import EvaluatedSplit
    from ltds.engine.use import OtherDataResult

NAMED = 10  # classes


def evaluate(
    runs: Annotated[
        list[Path], typer.Argument(help="Run directories; with --data: one of them, or an exported model.")
    ],
    data: Annotated[
        str,
        typer.Option(
            help="Another dataset with the same class names, or a folder of images sorted as domain/class/*: predict "
            "its images."
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for numbers and page on --data (default: evaluations/NAME in the run, "
            "MODEL-evaluations/NAME beside an exported model)."
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Which images of --data: 'all' or 'test'.")] = "all",
    threshold: Annotated[
        float | None, typer.Option(help="Score below which to say 'unknown' (default: the model's own).")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images that the network sees at once.")] = 64,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    trust: Annotated[
        list[str] | None, typer.Option(help="Module outside ltds that the model needs and that may be imported.")
    ] = None,
) -> None:
    """Compute the metrics of runs again from their stored predictions, or test a model on other images (--data).

    Example: ltds evaluate runs/agg runs/dc

    This needs no model and no images. With --data, a model is tested on other images, such as those of a new site.

    Example: ltds evaluate runs/dc --data new_site

    Exit code 1: some images could not be read; they are named and left out.
    """
    options: EvaluateOptions = {
        "out": out,
        "split": cast("EvaluatedSplit", split),
        "threshold": threshold,
        "batch_size": batch_size,
        "device": device,
        "trust": trust or (),
    }
    if not data:
        _again(runs, options)
        return
    from ltds.api.evaluate import evaluate_with_page

    if len(runs) != 1:
        raise ConfigError(f"Expected one run or model for another dataset, but got {len(runs)}. Name one.")
    _show(evaluate_with_page(runs[0], data, **options, progress=SCREEN))


def _again(runs: list[Path], options: EvaluateOptions) -> None:
    """Each run from its stored predictions; the public function refuses options that these do not need."""
    from ltds.api.evaluate import evaluate as evaluate_run
    from ltds.cli.report import show
    from ltds.reporting.collection import collect

    with SCREEN.track("Evaluating", len(runs)) as advance:
        for path in runs:
            evaluate_run(path, **options)
            advance(note=path.name)
    show(collect(runs))


def _show(result: OtherDataResult) -> None:
    from ltds.reporting.legend import ABOUT_FEW_IMAGES
    from ltds.reporting.result_table import TOO_FEW

    metrics = result.metrics
    header = ["accuracy", "named right", "wrongly unknown", "images", "rightly unknown", "images of unknown classes"]
    rows = [[name, *_cells(row)] for name, row in metrics["per_domain"].items()]
    SCREEN.table(["domain", *header], [*rows, ["all", *_cells(metrics["overall"])]])
    classes = [[name, *_cells(row)] for name, row in metrics["per_class"].items()]
    SCREEN.table(["class", *header], classes)
    remarks = _remarks(metrics)
    for line in remarks:
        SCREEN.say(line)
    if any(TOO_FEW in cell for row in (*rows, *classes, remarks) for cell in row):
        SCREEN.say(ABOUT_FEW_IMAGES)
    if metrics["unknown"]["thresholds"]:
        SCREEN.say("report.html compares other thresholds. To judge with one, add --threshold T.")
    SCREEN.say(f"Wrote {shlex.quote(str(result.folder))}: report.html, evaluation.json, predictions.csv")
    if result.skipped:
        name_unread(((item.file, item.reason) for item in result.skipped), "left out")
        raise typer.Exit(1)


def _cells(row: dict[str, Any]) -> list[str]:
    from ltds.reporting.new_data import COLUMNS, marked_percent, share_cell

    *known, opened = (marked_percent(share_cell(row, column)) for column in COLUMNS)
    return [*known, str(row["known_images"]), opened, str(row["open_images"])]


def _remarks(metrics: dict[str, Any]) -> list[str]:
    from ltds.reporting.new_data import auroc_sentence, macro_sentence, shown_classes

    classes, unknown = shown_classes(metrics["classes"]), metrics["unknown"]
    threshold = unknown["threshold"]
    lines = [
        "accuracy: the most probable class is right; named right: it is right and the model did not say 'unknown'.",
        *filter(None, [macro_sentence(metrics), auroc_sentence(metrics)]),
        "No image is called 'unknown': the run had no correctly classified validation image to choose a threshold on."
        if threshold is None
        else f"An image is called 'unknown' if its score is below {score_text(threshold)}. "
        f"The rule: {unknown['rule']}.",
    ]
    if seen := metrics["data"]["seen_in_training"]:
        lines.append(f"Left out, because the model has seen them in training: {count(seen, 'image')}")
    for key, words in (
        ("open", "Classes that the model does not know, so 'unknown' is the right answer"),
        ("missing", "Classes that the model knows, but that this dataset does not have"),
        (
            "spelled_differently",
            "Spelled differently from a class of the model, so counted as classes that it does not know; rename them",
        ),
    ):
        if classes[key]:
            lines.append(f"{words}: {few(classes[key], NAMED)}")
    return lines
