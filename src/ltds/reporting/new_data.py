"""A trained model on another dataset, in words and tables: what `ltds evaluate RUN` with other data shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ltds.reporting.answer import isolated
from ltds.reporting.method_advice import Advice
from ltds.reporting.recommendation import LARGE, NAMED
from ltds.reporting.result_table import TableCell
from ltds.reporting.sample_size import Sample, half_width


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


def new_data_advice(metrics: Mapping[str, Any]) -> Iterator[Advice]:
    """What to do next; every sentence follows from the numbers."""
    overall, classes = metrics["overall"], metrics["classes"]
    right = share_cell(overall, COLUMNS[0])
    if right.too_few and right.sample:
        yield Advice("Collect more images before you decide anything.", right.sample.reason)
    if classes["spelled_differently"]:
        names = ", ".join(classes["spelled_differently"][:NAMED])
        reason = f"They count as classes that it does not know: {names}."
        yield Advice("Rename classes that are only spelled differently.", reason)
    yield from _about_unknown(overall)
    yield from _worst(metrics["per_domain"], "Look at the images of {name} first.", "on {name}", right)
    weak = [row for row in share_rows(metrics["per_class"], COLUMNS[:1]) if _is_low(row.cells[0], right)]
    weak.sort(key=lambda row: row.cells[0].mean or 0.0)
    if weak:
        names = ", ".join(f"{isolated(row.name)} ({row.cells[0].mean:.0f} of 100)" for row in weak[:NAMED])
        yield Advice("Add images of the weakest classes to the training images.", f"They are: {names}.")


def _about_unknown(overall: Mapping[str, Any]) -> Iterator[Advice]:
    """What to do where the model says 'unknown' to many images that it would have named right."""
    right, named, wrongly, rightly = (share_cell(overall, column) for column in COLUMNS)
    if right.mean is None or named.mean is None or wrongly.mean is None or right.mean - named.mean <= LARGE:
        return
    if rightly.mean is not None and not rightly.too_few and rightly.mean <= wrongly.mean:  # no threshold helps
        yield Advice(
            "Do not rely on 'unknown' for images like these.",
            f"It says so to {wrongly.mean:.0f} of 100 images whose class it knows, but only to {rightly.mean:.0f} of "
            "100 whose class it does not know.",
        )
        return
    cost = ""
    if rightly.mean is not None:
        cost = f" It then calls fewer images of unknown classes unknown, too: now {rightly.mean:.0f} of 100."
    yield Advice(
        "Try a lower threshold for 'unknown'.",
        f"It would be right for {right.mean:.0f} of 100 images, but says 'unknown' so often that {named.mean:.0f} "
        f"are left.{cost}",
    )


def _worst(rows: Mapping[str, Mapping[str, Any]], action: str, where: str, overall: TableCell) -> Iterator[Advice]:
    """The row with the lowest accuracy, if it is far below the whole and has enough images."""
    low = [row for row in share_rows(rows, COLUMNS[:1]) if _is_low(row.cells[0], overall)]
    if low:
        worst = min(low, key=lambda row: row.cells[0].mean or 0.0)
        name, mean = isolated(worst.name), worst.cells[0].mean
        yield Advice(
            action.format(name=name), f"The model is right for {mean:.0f} of 100 images {where.format(name=name)}."
        )


def _is_low(cell: TableCell, overall: TableCell) -> bool:
    known = cell.mean is not None and overall.mean is not None and not cell.too_few
    return known and (overall.mean or 0.0) - (cell.mean or 0.0) > LARGE


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
