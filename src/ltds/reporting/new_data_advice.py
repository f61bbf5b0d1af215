"""What to do next about a model on other data; every sentence follows from the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ltds.core.text import score_text
from ltds.reporting.answer import isolated
from ltds.reporting.method_advice import Advice
from ltds.reporting.new_data import COLUMNS, auroc_cell, share_cell, share_rows
from ltds.reporting.recommendation import LARGE, NAMED
from ltds.reporting.result_table import TableCell

COIN_TOSS = 50.0  # percent


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
    yield from _about_unknown(metrics)
    yield from _worst(metrics["per_domain"], "Look at the images of {name} first.", "on {name}", right)
    weak = [row for row in share_rows(metrics["per_class"], COLUMNS[:1]) if _is_low(row.cells[0], right)]
    weak.sort(key=lambda row: row.cells[0].mean or 0.0)
    if weak:
        names = ", ".join(f"{isolated(row.name)} ({row.cells[0].mean:.0f} of 100)" for row in weak[:NAMED])
        yield Advice("Add images of the weakest classes to the training images.", f"They are: {names}.")


def _about_unknown(metrics: Mapping[str, Any]) -> Iterator[Advice]:
    """Whether another threshold for "unknown" would help, and which way.

    None does where the score does not tell known from open images. With too few open images to know that, only what is
    lost is said: known images that it would have named right.
    """
    overall, auroc = metrics["overall"], auroc_cell(metrics)
    right, named, wrongly, rightly = (share_cell(overall, column) for column in COLUMNS)
    if right.mean is None or named.mean is None or wrongly.mean is None or metrics["unknown"]["threshold"] is None:
        return
    if auroc.mean is not None and auroc.sample and rightly.mean is not None and not auroc.too_few:
        if auroc.mean - auroc.sample.half_width <= COIN_TOSS:
            yield Advice(
                "Do not rely on 'unknown' for images like these.",
                f"It says so to {wrongly.mean:.0f} of 100 images whose class it knows, and to {rightly.mean:.0f} of "
                "100 whose class it does not know. No threshold helps: its score hardly tells them apart (AUROC "
                f"{auroc.mean:.0f} %, where 50 % is a coin toss).",
            )
            return
        best = max(metrics["unknown"]["thresholds"], key=_balance)
        if 100 * (_balance(best) - _balance(overall)) > LARGE:
            yield _better_threshold(best, metrics)
            return
    if right.mean - named.mean > LARGE:
        cost = ""
        if rightly.mean is not None:
            cost = f" It then calls fewer images of unknown classes unknown, too: now {rightly.mean:.0f} of 100."
        yield Advice(
            "Try a lower threshold for 'unknown'.",
            f"It would be right for {right.mean:.0f} of 100 images, but says 'unknown' so often that {named.mean:.0f} "
            f"are left.{cost}",
        )


def _balance(row: Mapping[str, Any]) -> float:
    """Known images that are named right and open ones that are called unknown, both with the same weight."""
    return float(row["named_right"] + row["open_called_unknown"]) / 2


def _better_threshold(best: Mapping[str, Any], metrics: Mapping[str, Any]) -> Advice:
    now, threshold = metrics["overall"], best["threshold"]
    way = "lower" if threshold < metrics["unknown"]["threshold"] else "higher"
    return Advice(
        f"Try a {way} threshold for 'unknown', such as {score_text(threshold)}.",
        f"Of 100 images whose class it knows, it would name {100 * best['named_right']:.0f} right, now "
        f"{100 * now['named_right']:.0f}; of 100 others, it would call {100 * best['open_called_unknown']:.0f} "
        f"unknown, now {100 * now['open_called_unknown']:.0f}. The table of thresholds has more. Choose one on half of "
        "your images and measure it on the other half: on those that it was chosen on, it looks better than it is.",
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
