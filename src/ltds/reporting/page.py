"""One self-contained HTML page from a collection: the answer, the tables, the figures, and every run behind them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.files import write_text
from ltds.reporting import series
from ltds.reporting.answer import Answer, answer
from ltds.reporting.cells import Table, detail_table, main_table
from ltds.reporting.collect import Collection
from ltds.reporting.comparison import reference_of
from ltds.reporting.comparison_table import Sheet, about_intervals, sentences
from ltds.reporting.cost import HEADINGS
from ltds.reporting.dataset import Dataset
from ltds.reporting.gallery import Part, parts
from ltds.reporting.glossary import MAIN, METRICS
from ltds.reporting.run import Run
from ltds.reporting.run_details import choices, details
from ltds.reporting.table import legend, sheets_of


@dataclass(frozen=True)
class ClassRow:
    """One line of the table of classes: mean training images, and accuracy in percent for each method."""

    name: str
    images: float
    accuracy: tuple[float | None, ...]


@dataclass(frozen=True)
class Section:
    """All that the page says of one dataset."""

    dataset: Dataset
    answer: Answer
    tables: tuple[tuple[Table, str, list[str]], ...]
    reference: str
    sheets: tuple[Sheet, ...]
    sheets_legend: list[str]
    parts: tuple[Part, ...]
    classes: tuple[ClassRow, ...]


def write_page(collection: Collection, out: Path, reference: str | None = None) -> None:
    """Write the page to `out`, whole or not at all."""
    write_text(out, render(collection, reference))


def render(collection: Collection, reference: str | None = None) -> str:
    """The page's HTML. It loads nothing, and its policy lets no script run but its own."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("ltds.reporting", ".")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style, script = (Markup(loader.get_source(pages, name)[0]) for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return pages.get_template("page.html.j2").render(
        style=style,
        script=script,
        script_digest=digest,
        cost_headings=HEADINGS,
        runs=details(collection),
        choices=choices(collection),
        run_metrics=MAIN,
        problems=collection.problems,
        sections=[_section(dataset, reference) for dataset in collection.datasets],
        metrics=[(metric, _chosen(collection.runs, metric.choice)) for metric in METRICS.values()],
    )


def _section(dataset: Dataset, reference: str | None) -> Section:
    main, detail = main_table(dataset), detail_table(dataset)
    captions = ("Results on each held-out domain", "All other metrics")
    tables = tuple((t, c, _legend(t)) for t, c in zip((main, detail), captions, strict=True))
    found = answer(dataset)
    sheets = tuple(sheets_of(dataset, reference))
    return Section(
        dataset,
        found,
        tables,
        reference_of(dataset, reference),
        sheets,
        sentences(sheets),
        parts(dataset, found, reference),
        tuple(_classes(dataset)),
    )


def _legend(table: Table) -> list[str]:
    return [*legend([table]), *about_intervals(cell for _, cells in table.rows for cell in cells)]


def _classes(dataset: Dataset) -> Iterator[ClassRow]:
    images, accuracy, trained = series.class_frequency(dataset)
    for i in series.head_to_tail(images):
        shares = tuple(None if np.isnan(share) else 100 * float(share) for share in accuracy[:, i])
        yield ClassRow(dataset.classes[trained[i]], float(images[i]), shares)


def _chosen(runs: tuple[Run, ...], choice: str) -> list[str]:
    """How and on which split the metric's choice was made, as the runs recorded it: each wording once."""
    said = dict.fromkeys(_wording(run.metrics.choices[choice]) for run in runs if choice in run.metrics.choices)
    return list(said)


def _wording(choice: dict[str, Any]) -> str:
    split = choice.get("split")
    where = f"Chosen on the {split} split" if split else "Chosen on no split"
    oracle = " (an oracle: it looks at test labels)" if choice.get("oracle") else ""
    why = f" No value where there is {choice['why']}." if choice.get("why") else ""
    return f"{where}{oracle}: {choice.get('rule', 'rule not recorded')}.{why}"
