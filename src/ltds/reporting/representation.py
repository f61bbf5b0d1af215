"""Drawings of what models made of images and classes: feature maps, similarity of classes, retrieval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ltds.evaluation.features import FeatureTable
from ltds.reporting import observations as seen
from ltds.reporting.dataset import Dataset
from ltds.reporting.drawing import Drawing
from ltds.reporting.figures.embedding_map import embedding_map
from ltds.reporting.figures.retrieval import retrieval
from ltds.reporting.figures.similarity import similar, similarity
from ltds.reporting.run import Run
from ltds.reporting.series import head_to_tail

INSIDE = "Domains, features and the semantic space"


def feature_maps(few: Mapping[str, Run]) -> Iterator[Drawing]:
    """Test features on a plane, side by side."""
    tables = {label: table for label, run in few.items() if (table := seen.features_of(run))}
    if not tables:
        return
    laid_out = {label: seen.cloud_of(few[label], table) for label, table in tables.items()}
    clouds = {label: cloud for label, (cloud, _) in laid_out.items()}
    way = next(iter(laid_out.values()))[1]
    task = next(iter(few.values())).task
    names = [f"{name} (held out)" if name == task.held_out else name for name in task.domains]
    count = len(next(iter(clouds.values())).places)
    missing = "" if way == "t-SNE" else " For t-SNE type pip install 'ltds[figures]' and make the report again."
    yield Drawing(
        embedding_map(clouds, names, len(task.classes)),
        f"Test features ({way})",
        "Above coloured by domain, below by class: where a method looks past the domain, colours mix above and gather "
        f"below. The same {count} test images for each method. {where(few)}{missing}",
        f"{way} of the features of {count} test images for {', '.join(clouds)}.",
        INSIDE,
        pixels=True,
    )


def semantic_space(dataset: Dataset) -> Iterator[Drawing]:
    """Similarity of classes, and retrieval, for the method that kept most of it: the first of equals."""
    kept: dict[str, tuple[Run, FeatureTable]] = {}
    for label, runs in dataset.rows.items():
        first = min(runs, key=lambda run: (dataset.held_out.index(run.held_out), run.seed))
        table = seen.features_of(first)
        if table and "embeddings" in table.views:
            kept[label] = first, table
    if not kept:
        return
    label = max(kept, key=lambda label: len(kept[label][1].views))
    yield _similarities(label, *kept[label])
    yield from _neighbours(label, *kept[label])


def _similarities(label: str, run: Run, table: FeatureTable) -> Drawing:
    names = {"covariances": "Covariances Σ", "updated": "Updated covariances Σ'"}
    matrices = {word: similar(table.views[key].astype(np.float64)) for key, word in names.items() if key in table.views}
    order = head_to_tail(run.task.class_counts)
    update = (
        " The update makes the covariance of a rare class (right, below) resemble those of classes near in meaning."
    )
    return Drawing(
        similarity(table.views["embeddings"].astype(np.float64), matrices, order, run.task.classes),
        f"Similarity of classes in {label}",
        f"Each cell is a pair of classes, dark where they are alike.{update if matrices else ''} {where({label: run})}",
        f"Matrices over {len(order)} classes: {', '.join(['cosine of embeddings', *map(str.lower, matrices)])}.",
        INSIDE,
        pixels=True,
    )


def _neighbours(label: str, run: Run, table: FeatureTable) -> Iterator[Drawing]:
    rows = seen.retrieved_of(run, table)
    if not rows:
        return
    right = [sum(shot.label == row.query.label for shot in row.neighbours) for row in rows]
    said = [f"{row.query.label}: {n} of {len(row.neighbours)}" for row, n in zip(rows, right, strict=True)]
    yield Drawing(
        retrieval(rows),
        f"Nearest images in the semantic space of {label}",
        "A head, a middle and a tail class: neighbours of the same class (✓) in other domains show that the space "
        f"holds meaning rather than style. {where({label: run})}",
        f"Neighbours of the query's own class: {'; '.join(said)}.",
        INSIDE,
        pixels=True,
    )


def where(few: Mapping[str, Run]) -> str:
    """Which runs these are: all have the same held-out domain and seed."""
    run = next(iter(few.values()))
    return f"Held out: {run.held_out}, seed {run.seed}."
