"""What a model gets wrong, as the page shows it: confused classes, and pictures of its most confident mistakes."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltds.evaluation.mistakes import confusions, judged_rows, worst_mistakes
from ltds.evaluation.table import PredictionTable
from ltds.evaluation.thumbnails import load_thumbnails
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.run import Run

SMALL = 64  # pixels up to which a picture is drawn, not photographed: PNG keeps it exactly
NO_PICTURES = "This run kept no pictures of its mistakes: it is older than they are, or was trained on features."


@dataclass(frozen=True)
class ConfusedPair:
    """How many of the images of a class were taken for another."""

    truth: str
    predicted: str
    count: int
    images: int


@dataclass(frozen=True)
class MistakePicture:
    """A wrongly predicted image with what it is, what the model said, and how sure it was, in percent."""

    picture: str
    truth: str
    predicted: str
    domain: str
    confidence: float
    known: bool = True

    @property
    def sure(self) -> str:
        """The confidence as printed: no model is 100 % sure."""
        return "over 99 %" if self.confidence > 99 else f"{self.confidence:.0f} %"

    @property
    def drawn(self) -> bool:
        """Whether the picture is so small that its pixels should stay sharp."""
        return self.picture.startswith("data:image/png")


@dataclass(frozen=True)
class MistakesView:
    """The mistakes of one method in one run; `note`: why there are no pictures, or ""."""

    method: str
    where: str
    images: int
    wrong: int
    pairs: tuple[ConfusedPair, ...]
    pictures: tuple[MistakePicture, ...]
    note: str


def mistakes_views(context: FigureContext) -> Iterator[MistakesView]:
    """The mistakes of each compared method whose predictions are stored, the leader first."""
    for label, table in context.predictions.items():
        yield _view(label, context.compared_runs[label], table)


def _view(label: str, run: Run, table: PredictionTable) -> MistakesView:
    classes, task = run.task.classes, run.task
    rows = judged_rows(table, task)
    known = rows[~np.isin(table.labels[rows], task.open_classes)]
    wrong = int((table.logits[known].argmax(axis=1) != table.labels[known]).sum())
    pairs = tuple(
        ConfusedPair(classes[c.truth], classes[c.predicted], c.count, c.images) for c in confusions(table, task)
    )
    thumbnails = load_thumbnails(run.directory.thumbnails_file)
    pictures = tuple(
        MistakePicture(
            picture_url(thumbnails[one.row]),
            classes[one.truth],
            classes[one.predicted],
            task.domains[one.domain],
            100 * one.confidence,
            one.truth not in task.open_classes,
        )
        for one in worst_mistakes(table, task)
        if one.row in thumbnails
    )
    where = f"on {run.held_out}, which it has never seen" if task.held_out else "on the test images of all domains"
    note = NO_PICTURES if wrong and not pictures else ""
    return MistakesView(label, f"{where} (seed {run.seed})", len(known), wrong, pairs, pictures, note)


def picture_url(pixels: NDArray[np.uint8]) -> str:
    """The picture (h,w,3) as a data URL."""
    from PIL import Image

    out = io.BytesIO()
    kind = "png" if max(pixels.shape[:2]) <= SMALL else "jpeg"
    Image.fromarray(np.ascontiguousarray(pixels)).save(out, format=kind, **({} if kind == "png" else {"quality": 82}))
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode()}"
