"""One self-contained HTML page: the answer, the tables, the figures, and every run behind them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.files import write_text
from ltds.reporting.answer import Answer, answer
from ltds.reporting.class_accuracy import class_accuracy, head_to_tail
from ltds.reporting.collection import Collection
from ltds.reporting.comparison import reference_of
from ltds.reporting.comparison_table import ComparisonTable, about_intervals, sentences
from ltds.reporting.cost import HEADINGS
from ltds.reporting.dataset import Dataset
from ltds.reporting.figures import FIGURES
from ltds.reporting.figures.context import FigureContext, ReportFigure
from ltds.reporting.formats.html.figure_groups import FigureGroup, figure_groups
from ltds.reporting.formats.html.run_details import filters, run_details
from ltds.reporting.glossary import MAIN, METRICS
from ltds.reporting.legend import comparison_tables, legend
from ltds.reporting.result_table import ResultTable, detail_table, main_table
from ltds.reporting.run import Run


@dataclass(frozen=True)
class ClassRow:
    """One line of the table of classes: mean training images, and accuracy in percent for each method."""

    name: str
    images: float
    accuracy: tuple[float | None, ...]


@dataclass(frozen=True)
class DatasetSection:
    """All content of the page on one dataset."""

    dataset: Dataset
    answer: Answer
    tables: tuple[tuple[ResultTable, str, list[str]], ...]
    reference: str
    comparisons: tuple[ComparisonTable, ...]
    comparisons_legend: list[str]
    figure_groups: tuple[FigureGroup, ...]
    classes: tuple[ClassRow, ...]


def write_page(collection: Collection, out: Path, reference: str | None = None) -> None:
    """Write the page to `out`, whole or not at all."""
    write_text(out, render(collection, reference))


def render(collection: Collection, reference: str | None = None, figures: Sequence[ReportFigure] = FIGURES) -> str:
    """The HTML of the page. It loads nothing, and its security policy allows only its own script."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("ltds.reporting.formats.html", ".")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style, script = (Markup(loader.get_source(pages, name)[0]) for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return pages.get_template("page.html.j2").render(
        style=style,
        script=script,
        script_digest=digest,
        cost_headings=HEADINGS,
        runs=run_details(collection),
        filters=filters(collection),
        run_metrics=MAIN,
        problems=collection.problems,
        sections=[_section(dataset, reference, figures) for dataset in collection.datasets],
        metrics=[(metric, _chosen(collection.runs, metric.choice)) for metric in METRICS.values()],
    )


def _section(dataset: Dataset, reference: str | None, figures: Sequence[ReportFigure]) -> DatasetSection:
    main, detail = main_table(dataset), detail_table(dataset)
    captions = ("Results on each held-out domain", "All other metrics")
    best = answer(dataset)
    comparisons = tuple(comparison_tables(dataset, reference))
    return DatasetSection(
        dataset,
        best,
        tuple((t, c, _legend(t)) for t, c in zip((main, detail), captions, strict=True)),
        reference_of(dataset, reference),
        comparisons,
        sentences(comparisons),
        figure_groups(FigureContext(dataset, best.leader, reference), figures),
        tuple(_classes(dataset)),
    )


def _legend(table: ResultTable) -> list[str]:
    return [*legend([table]), *about_intervals(cell for _, cells in table.rows for cell in cells)]


def _classes(dataset: Dataset) -> Iterator[ClassRow]:
    images, accuracy, trained = class_accuracy(dataset)
    for i in head_to_tail(images):
        percents = tuple(None if np.isnan(value) else 100 * float(value) for value in accuracy[:, i])
        yield ClassRow(dataset.classes[trained[i]], float(images[i]), percents)


def _chosen(runs: tuple[Run, ...], choice: str) -> list[str]:
    """How and on which split the choice behind a metric was made, as recorded by the runs: each wording once."""
    texts = dict.fromkeys(_wording(run.metrics.choices[choice]) for run in runs if choice in run.metrics.choices)
    return list(texts)


def _wording(choice: dict[str, Any]) -> str:
    split = choice.get("split")
    where = f"Chosen on the {split} split" if split else "Not chosen on any split"
    oracle = " (an oracle: it uses test labels)" if choice.get("oracle") else ""
    why = f" No value, because there is {choice['why']}." if choice.get("why") else ""
    return f"{where}{oracle}: {choice.get('rule', 'rule not recorded')}.{why}"
