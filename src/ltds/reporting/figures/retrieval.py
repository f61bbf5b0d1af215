"""Top-5 retrieval: the test images nearest to a query in the semantic space, from thumbnails stored in the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.evaluation.features import FeatureTable
from ltds.evaluation.retrieval import NEIGHBOURS, retrieval_examples
from ltds.evaluation.thumbnails import Thumbnails, load_thumbnails
from ltds.reporting.figures.canvas import ABSENT, COLOURS, GREY, INK, new_figure, shortened
from ltds.reporting.figures.context import FigureContext, run_note
from ltds.reporting.figures.drawing import MODEL_INTERNALS, Drawing
from ltds.reporting.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class LabelledImage:
    """A thumbnail (h,w,3) uint8 with its class and domain; None if the run did not store it."""

    pixels: NDArray[np.uint8] | None
    label: str
    domain: str


@dataclass(frozen=True)
class RetrievedImages:
    """A query, its neighbours (nearest first), and the domains with training images of its class."""

    query: LabelledImage
    neighbours: tuple[LabelledImage, ...]
    seen: tuple[str, ...]


def draw(context: FigureContext) -> Iterator[Drawing]:
    """For the method that stored the most diagnostics of a semantic space, if its run has thumbnails."""
    semantic = context.semantic_run
    if semantic is None:
        return
    rows = retrieved_images(semantic.run, semantic.table)
    if not rows:
        return
    counts = [sum(image.label == row.query.label for image in row.neighbours) for row in rows]
    texts = [f"{row.query.label}: {n} of {len(row.neighbours)}" for row, n in zip(rows, counts, strict=True)]
    yield Drawing(
        retrieval(rows),
        f"Nearest images in the semantic space of {semantic.label}",
        "Queries of a head, a middle and a tail class. Neighbours of the same class (✓) from other domains show that "
        f"the space encodes meaning rather than style. {run_note({semantic.label: semantic.run})}",
        f"Neighbours of the same class as the query: {'; '.join(texts)}.",
        MODEL_INTERNALS,
        pixels=True,
        method=semantic.label,
    )


def retrieved_images(run: Run, table: FeatureTable) -> list[RetrievedImages]:
    """The queries and neighbours with their thumbnails; none if the run stored no thumbnails."""
    thumbnails = load_thumbnails(run.directory.thumbnails_file)
    examples = retrieval_examples(table, run.task) if thumbnails else []
    rows = []
    for example in examples:
        query, *neighbours = (_labelled(run, table, thumbnails, i) for i in (example.query, *example.neighbours))
        trained = run.task.seen_in_domain[:, table.labels[example.query]]
        seen = tuple(domain for domain, has_images in zip(run.task.domains, trained, strict=True) if has_images)
        rows.append(RetrievedImages(query, tuple(neighbours), seen))
    return rows


def _labelled(run: Run, table: FeatureTable, thumbnails: Thumbnails, index: int) -> LabelledImage:
    pixels = thumbnails.get(int(table.rows[index]))
    return LabelledImage(pixels, run.task.classes[table.labels[index]], run.task.domains[table.domains[index]])


def retrieval(rows: Sequence[RetrievedImages]) -> Figure:
    """A row for each query: domains of its class, the query, its neighbours. A check mark: the class of the query."""
    figure = new_figure(9, 1.62 * len(rows) + 0.1)
    ratios = [1.05, *[1] * (NEIGHBOURS + 1)]
    panels = figure.subplots(len(rows), NEIGHBOURS + 2, squeeze=False, width_ratios=ratios)
    for line, row in zip(panels, rows, strict=True):
        _print_domains(line[0], row)
        _show(line[1], row.query, INK, "query: ")
        for axes, image in zip(line[2:], row.neighbours, strict=False):
            same = image.label == row.query.label
            _show(axes, image, COLOURS[0] if same else COLOURS[1], "✓ " if same else "✗ ")
        for axes in line[2 + len(row.neighbours) :]:
            axes.axis("off")
    return figure


def _print_domains(axes: Axes, row: RetrievedImages) -> None:
    axes.axis("off")
    seen = "\n".join(shortened(name, 18) for name in row.seen[:5]) or "nowhere (open)"
    more = f"\nand {len(row.seen) - 5} more" if len(row.seen) > 5 else ""
    axes.text(0, 1, shortened(row.query.label, 16), fontsize=9, color=INK, va="top", weight="bold", parse_math=False)
    axes.text(0, 0.8, f"seen in\n{seen}{more}", fontsize=7, color=GREY, va="top", parse_math=False)


def _show(axes: Axes, image: LabelledImage, colour: str, mark: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(colour)
    axes.spines[:].set_linewidth(2)
    axes.set_facecolor(ABSENT)
    axes.set_box_aspect(1)
    if image.pixels is not None:
        small = image.pixels.shape[0] <= 64
        axes.imshow(image.pixels, aspect="auto", interpolation="nearest" if small else None)
    axes.set_title(mark + shortened(image.label, 15), fontsize=7.5, color=colour, pad=3, parse_math=False)
    axes.set_xlabel(shortened(image.domain, 18), fontsize=7, color=GREY, labelpad=2, parse_math=False)
