"""The mark of methods that know the names of the open classes, and the sentence that explains it."""

from __future__ import annotations

from collections.abc import Container, Iterable

from ltds.reporting.dataset import Dataset

INFORMED = "\u00a7"  # a section sign
KNOWS_NAMES = (
    f"{INFORMED} knows the names of the open classes: their embeddings took part in training. The other methods do not "
    "know of these classes"
)


def about_names(informed: Iterable[str]) -> str:
    """The sentence on these rows; a method that can do without the names is named where it is one of them."""
    ours = any(label.strip("`").partition(" ")[0].partition("-")[0] == "ltds" for label in informed)
    return f"{KNOWS_NAMES}; the same method without the names: ltds-hidden-names." if ours else f"{KNOWS_NAMES}."


def informed_rows(dataset: Dataset) -> tuple[str, ...]:
    """The rows whose method knows the names of the open classes, in some run."""
    return tuple(label for label, runs in dataset.rows.items() if any(run.knows_open_names for run in runs))


def marked(label: str, informed: Container[str]) -> str:
    """The label of a row, with the mark if it is one of the `informed` rows."""
    return f"{label} {INFORMED}" if label in informed else label
