"""FigureContext: the runs of one dataset, as figures see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ltds.core.errors import LtdsError
from ltds.evaluation.features import FeatureTable
from ltds.evaluation.openset import OpenSetScores
from ltds.evaluation.table import PredictionTable
from ltds.reporting.comparison import reference_of
from ltds.reporting.dataset import Dataset
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.run import Run

COMPARED = 3  # methods shown side by side: a t-SNE takes seconds, and a screen has no room for more


@dataclass(frozen=True)
class SemanticRun:
    """A run of a method with a semantic space, and the features that it stored."""

    label: str
    run: Run
    table: FeatureTable


@dataclass(frozen=True)
class FigureContext:
    """What a figure is drawn from. `leader` is the label of the best method, None if none leads."""

    dataset: Dataset
    leader: str | None = None
    reference: str | None = None

    @cached_property
    def comparable(self) -> FigureContext:
        """The same, with the held-out domains that every method has; itself if that is all of them."""
        dataset = self.dataset.comparable()
        return self if dataset is self.dataset else replace(self, dataset=dataset)

    @cached_property
    def compared_runs(self) -> dict[str, Run]:
        """One run each of the leader, the reference and the next rows: same held-out domain, same seed."""
        labels = [self.leader, reference_of(self.dataset, self.reference), *self.dataset.rows]
        chosen = list(dict.fromkeys(label for label in labels if label))[:COMPARED]
        by_pair = [{(run.held_out, run.seed): run for run in self.dataset.rows[label]} for label in chosen]
        seeds = sorted({seed for runs in by_pair for _, seed in runs})
        pairs = [(held_out, seed) for held_out in self.dataset.held_out for seed in seeds]
        best = max(pairs, key=lambda pair: (sum(pair in runs for runs in by_pair), pair in by_pair[0]))
        return {label: runs[best] for label, runs in zip(chosen, by_pair, strict=True) if best in runs}

    @cached_property
    def predictions(self) -> dict[str, PredictionTable]:
        """Label -> predictions for the test images, for the compared runs that have them."""
        tables = {label: stored_predictions(run) for label, run in self.compared_runs.items()}
        return {label: table for label, table in tables.items() if table}

    @cached_property
    def open_set_scores(self) -> dict[str, OpenSetScores]:
        """Label -> scores of the test images, for the compared runs that have predictions."""
        runs = self.compared_runs
        return {
            label: OpenSetScores.of(table.probabilities, table.labels, runs[label].task.open_classes)
            for label, table in self.predictions.items()
        }

    @cached_property
    def deployed_scores(self) -> dict[str, OpenSetScores]:
        """As `open_set_scores`, by the score that a run compares with its threshold for "unknown", if it has one."""
        runs = self.compared_runs
        rules = {label: (runs[label].deployed_rule, table) for label, table in self.predictions.items()}
        return {label: rule.scores(table, runs[label].task) for label, (rule, table) in rules.items() if rule}

    @cached_property
    def semantic_run(self) -> SemanticRun | None:
        """The first run of the method that stored the most diagnostics of a semantic space."""
        candidates = []
        for label, runs in self.dataset.rows.items():
            first = min(runs, key=lambda run: (self.dataset.held_out.index(run.held_out), run.seed))
            table = stored_features(first)
            if table and "embeddings" in table.diagnostics:
                candidates.append(SemanticRun(label, first, table))
        return max(candidates, key=lambda one: len(one.table.diagnostics), default=None)


ReportFigure = Callable[[FigureContext], Iterable[Drawing]]


def stored_predictions(run: Run) -> PredictionTable | None:
    """The stored predictions; None if there are none or they do not fit the task."""
    try:
        table = PredictionTable.load(run.directory.predictions_file("test"))
        table.check_task("test", run.task)
    except LtdsError:
        return None
    return table


def stored_features(run: Run) -> FeatureTable | None:
    """The features that the run stored; None if there are none or they do not fit its task."""
    table = FeatureTable.load(run.directory.features_file)
    if table is None or not len(table.rows):
        return None
    classes, square = len(run.task.classes), ("embeddings", "covariances", "updated")  # see Method.diagnostics
    shapes = {name: values.shape for name, values in table.diagnostics.items()}
    fits = (
        table.labels.max() < classes
        and table.domains.max() < len(run.task.domains)
        and all(shapes[name] == (classes, classes) for name in square if name in shapes)
        and ("projected" not in shapes or (len(shapes["projected"]) == 2 and len(table.rows) == shapes["projected"][0]))
    )
    return table if fits else None


def run_note(runs: Mapping[str, Run]) -> str:
    """Which held-out domain and seed these runs share."""
    run = next(iter(runs.values()))
    return f"Held out: {run.held_out}, seed {run.seed}."
