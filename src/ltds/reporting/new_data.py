"""A trained model on another dataset, in words and tables: what `ltds evaluate RUN` with other data shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ltds.core.text import score_text
from ltds.reporting.answer import isolated
from ltds.reporting.result_table import TOO_FEW, TableCell
from ltds.reporting.sample_size import Sample, half_width, ranking_width, sample_of_parts


class JudgedImage(Protocol):
    """One image of the other dataset: its true class and domain, and what the model said."""

    @property
    def path(self) -> str: ...
    @property
    def truth(self) -> str: ...
    @property
    def domain(self) -> str: ...
    @property
    def best(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def known(self) -> bool: ...
    @property
    def unknown(self) -> bool: ...


@dataclass(frozen=True)
class ShareColumn:
    """A share of evaluation.json: its name there, its heading, its meaning, and where its images are counted."""

    key: str
    heading: str
    plain: str
    images: str = "known_images"


COLUMNS = (
    ShareColumn(
        "accuracy", "Right %", "of 100 images of classes that it knows, for how many the true class comes first"
    ),
    ShareColumn("named_right", "Named right %", "the same, and the model did not say 'unknown'"),
    ShareColumn(
        "known_called_unknown", "Wrongly unknown %", "of 100 images of classes that it knows, how many it calls unknown"
    ),
    ShareColumn(
        "open_called_unknown",
        "Rightly unknown %",
        "of 100 images of classes that it does not know, how many it calls unknown",
        "open_images",
    ),
)


@dataclass(frozen=True)
class ShareRow:
    """One domain or class, with a cell for each of `shown_columns`."""

    name: str
    cells: tuple[TableCell, ...]
    known_images: int
    open_images: int


def shown_columns(metrics: Mapping[str, Any]) -> tuple[ShareColumn, ...]:
    """The columns that have a value."""
    return tuple(column for column in COLUMNS if metrics["overall"][column.key] is not None)


def share_rows(rows: Mapping[str, Mapping[str, Any]], columns: Sequence[ShareColumn]) -> tuple[ShareRow, ...]:
    """The rows that have images."""
    return tuple(
        ShareRow(name, tuple(share_cell(row, c) for c in columns), row["known_images"], row["open_images"])
        for name, row in rows.items()
        if row["known_images"] or row["open_images"]
    )


def share_cell(row: Mapping[str, Any], column: ShareColumn) -> TableCell:
    """The share in percent, with the images behind it."""
    share, images = row[column.key], row[column.images]
    if share is None:
        return TableCell(None, None, 0)
    return TableCell(100 * share, None, 1, sample=Sample(images, half_width(100 * share, images)))


def threshold_rows(metrics: Mapping[str, Any], columns: Sequence[ShareColumn]) -> tuple[ShareRow, ...]:
    """A row for each of the thresholds in evaluation.json."""
    rows, in_use = metrics["unknown"]["thresholds"], metrics["unknown"]["threshold"]
    thresholds = [row["threshold"] for row in rows]
    names = [f"{score_text(t, thresholds)}{' (in use)' if t == in_use else ''}" for t in thresholds]
    return share_rows(dict(zip(names, rows, strict=True)), columns)


def marked_percent(cell: TableCell) -> str:
    """A share for a sentence or a terminal, marked if it rests on too few images; "" without a value."""
    return "" if cell.mean is None else f"{cell.mean:.1f} %{TOO_FEW if cell.too_few else ''}"


def auroc_cell(metrics: Mapping[str, Any]) -> TableCell:
    """How well the score tells images of known classes from others, in percent, with the images behind it."""
    share, overall = metrics["unknown"]["auroc"], metrics["overall"]
    if share is None:
        return TableCell(None, None, 0)
    known, opened = overall["known_images"], overall["open_images"]
    width = ranking_width(100 * share, min(known, opened))
    classes = sum(row["open_images"] > 0 for row in metrics["per_class"].values())
    sample = Sample(opened, width, "open", classes) if opened < known else Sample(known, width, "known")
    return TableCell(100 * share, None, 1, sample=sample)


def auroc_sentence(metrics: Mapping[str, Any]) -> str:
    """The AUROC in words; "" without images of both kinds."""
    cell = auroc_cell(metrics)
    if cell.sample is None:
        return ""
    return (
        f"AUROC of the score: {marked_percent(cell)}, on {cell.sample.basis}: how often an image of a class "
        "that it knows has a higher score than one of a class that it does not know; 50 % is a coin toss."
    )


def macro_sentence(metrics: Mapping[str, Any]) -> str:
    """The mean over classes in words; "" without an image of a known class."""
    share, classes = metrics["overall"]["macro_accuracy"], metrics["classes"]
    parts = [row["known_images"] for row in metrics["per_class"].values() if row["known_images"]]
    if share is None:
        return ""
    sample = sample_of_parts(parts, 100 * share)
    assert sample is not None
    cell = TableCell(100 * share, None, 1, sample=sample)
    known = len(classes["matched"]) + len(classes["missing"])
    return (
        f"Mean over classes of the accuracy (macro accuracy): {marked_percent(cell)} over {len(parts)} of {known} "
        f"classes, {sample.text} images; chance alone moves it by about {sample.half_width:.0f} points."
    )


def headline_sentences(metrics: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The sentence that matters, and those that follow."""
    overall, name = metrics["overall"], isolated(metrics["data"]["name"])
    cells = {column.key: share_cell(overall, column) for column in COLUMNS}
    right, more = cells["accuracy"], []
    if right.mean is None:
        main = f"{name} has no image of a class that the model knows, so nothing can be said about what it names."
    else:
        few = ": too few to rely on it" if right.too_few else ""
        main = (
            f"On the images of {name}, the model is right for {right.mean:.0f} of 100 "
            f"({overall['known_images']:,} images of classes that it knows{few})."
        )
    wrongly, rightly = cells["known_called_unknown"], cells["open_called_unknown"]
    if metrics["unknown"]["threshold"] is None:
        more.append(
            "It never says 'unknown': there was no correctly classified validation image to choose a threshold on."
        )
    elif wrongly.mean is not None:
        more.append(f"It says 'unknown' to {wrongly.mean:.0f} of 100 of these images, although it knows their class.")
    if rightly.mean is not None:
        few = ": too few to rely on it" if rightly.too_few else ""
        more.append(
            f"Of 100 images of classes that it does not know, it calls {rightly.mean:.0f} unknown, as it should "
            f"({overall['open_images']:,} images{few})."
        )
    return main, more


def shown_classes(classes: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """How classes match those of the model, for readers: one that is only spelled differently is not open or missing.

    The numbers count it there, but 'unknown' is not what anybody wants to hear of it, and the dataset does have it.
    """
    trained = [*classes["matched"], *classes["missing"]]
    spelled = set(classes["spelled_differently"])
    pairs = [(name, known) for name in classes["open"] for known in trained if f"{name} ({known})" in spelled]
    respelled = {name for pair in pairs for name in pair}
    shown = {key: list(names) for key, names in classes.items()}
    return shown | {key: [name for name in shown[key] if name not in respelled] for key in ("open", "missing")}


def most_confident_mistakes(judged: Sequence[JudgedImage], count: int, same: int) -> list[JudgedImage]:
    """The surest wrong answers, at most `same` with the same true and predicted class. "unknown" for a known class is
    no answer, so it is not among them.
    """
    wrong = [one for one in judged if not one.unknown and one.best != one.truth]
    taken: dict[tuple[str, str], int] = {}
    chosen: list[JudgedImage] = []
    for one in sorted(wrong, key=lambda one: (-one.confidence, one.path)):
        pair = (one.truth, one.best)
        taken[pair] = taken.get(pair, 0) + 1
        if taken[pair] <= same and len(chosen) < count:
            chosen.append(one)
    return chosen
