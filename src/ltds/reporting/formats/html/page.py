"""One self-contained HTML page: the answer, the tables, the figures, and every run behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ltds.reporting.answer import Answer, answer
from ltds.reporting.collection import Collection
from ltds.reporting.comparison import reference_of
from ltds.reporting.comparison_table import ComparisonTable, about_intervals, sentences
from ltds.reporting.dataset import Dataset
from ltds.reporting.figures import FIGURES, OF_SINGLE_RUNS
from ltds.reporting.figures.context import FigureContext, ReportFigure
from ltds.reporting.figures.outside import figure_problems
from ltds.reporting.formats.html.figure_groups import FigureGroup, figure_groups
from ltds.reporting.formats.html.mistakes import MistakesView, mistakes_views
from ltds.reporting.formats.html.run_details import filters, run_details
from ltds.reporting.formats.html.template import render_template
from ltds.reporting.formats.html.wide_tables import MethodColumns, by_class, by_domain, by_metric, parts
from ltds.reporting.glossary import MAIN, METRICS, Metric
from ltds.reporting.headline import Headline, headline
from ltds.reporting.legend import IMAGES_ROW, comparison_tables, cost_headings, cost_texts, legend
from ltds.reporting.method_advice import Advice
from ltds.reporting.open_names import informed_rows, marked
from ltds.reporting.recommendation import recommendations
from ltds.reporting.result_table import ResultTable, detail_group, detail_table, main_table
from ltds.reporting.run import Run


@dataclass(frozen=True)
class DatasetSection:
    """All content of the page on one dataset."""

    dataset: Dataset
    headline: Headline
    advice: list[Advice]
    answer: Answer
    tables: tuple[tuple[ResultTable, str], ...]
    key: tuple[Metric, ...]
    tables_legend: list[str]
    detail_group: str
    details: tuple[MethodColumns, ...]
    details_legend: list[str]
    domains: tuple[MethodColumns, ...]
    mistakes: tuple[MistakesView, ...]
    reference: str
    comparisons: tuple[ComparisonTable, ...]
    comparisons_legend: list[str]
    figure_groups: tuple[FigureGroup, ...]
    classes: tuple[MethodColumns, ...]
    informed: tuple[str, ...]

    @property
    def trained_in_test(self) -> bool:
        """Whether test images of the source domains were used in training, as the protocol of some datasets wants."""
        return any(run.task.trained_in_test for runs in self.dataset.rows.values() for run in runs)


def render_page(collection: Collection, reference: str | None = None, figures: Sequence[ReportFigure] = FIGURES) -> str:
    """The HTML of the page."""
    sections: list[DatasetSection] = []
    for dataset in collection.datasets:
        drawn = sum(len(group.figures) for section in sections for group in section.figure_groups)
        sections.append(_section(dataset, reference, figures, drawn))
    return render_template(
        "page.html.j2",
        cost_headings=cost_headings,
        cost_texts=cost_texts,
        images_row=IMAGES_ROW,
        marked=marked,
        runs=run_details(collection),
        filters=filters(collection),
        run_metrics=MAIN,
        problems=(*collection.problems, *figure_problems(figures)),
        sections=sections,
        left_out=any(figure not in figures for figure in OF_SINGLE_RUNS),
        metrics=[(metric, _chosen(collection.runs, metric.choice)) for metric in METRICS.values()],
    )


def _section(
    dataset: Dataset, reference: str | None, figures: Sequence[ReportFigure], first_figure: int
) -> DatasetSection:
    main, detail = main_table(dataset), detail_table(dataset)
    best = answer(dataset)
    context = FigureContext(dataset, best.leader, reference)
    comparisons = tuple(comparison_tables(dataset, reference))
    labels = sorted(dataset.rows, key=lambda label: label != best.leader)
    return DatasetSection(
        dataset,
        headline(context),
        recommendations(context, best),
        best,
        tuple(parts(main)),
        tuple(dict.fromkeys(column.metric for column in main.columns)),
        _legend(main),
        detail_group(dataset),
        tuple(by_metric(detail)),
        _legend(detail),
        tuple(by_domain(dataset, labels)),
        tuple(mistakes_views(context)),
        reference_of(dataset, reference),
        comparisons,
        sentences(comparisons),
        figure_groups(context, figures, first_figure),
        tuple(by_class(dataset)),
        informed_rows(dataset),
    )


def _legend(table: ResultTable) -> list[str]:
    return [*legend([table]), *about_intervals(cell for _, cells in table.rows for cell in cells)]


def _chosen(runs: tuple[Run, ...], choice: str) -> list[str]:
    """How and on which split the choice behind a metric was made, as recorded by the runs: each wording once."""
    made = [run.metrics.choices[choice] for run in runs if choice in run.metrics.choices]
    images = sorted({one["images"] for one in made if isinstance(one.get("images"), int)})
    return list(dict.fromkeys(_wording(one, images) for one in made))


def _wording(choice: dict[str, Any], images: Sequence[int]) -> str:
    """`images`: how many each of the runs chose it on, where that was recorded."""
    split = choice.get("split")
    where = f"Chosen on the {split} split" if split else "Not chosen on any split"
    if images and choice.get("images") is not None:
        where += (
            f" ({images[0]:,}{f' to {images[-1]:,}' if images[-1] > images[0] else ''} correctly classified images)"
        )
    oracle = " (an oracle: it uses test labels)" if choice.get("oracle") else ""
    why = f" No value, because there is {choice['why']}." if choice.get("why") else ""
    return f"{where}{oracle}: {choice.get('rule', 'rule not recorded')}.{why}"
