"""Features of a session's images: kept at the end of a run, and compared between domains during it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.engine.session import Session
from ltds.evaluation.features import FeatureTable, drawn_rows, to_float16
from ltds.evaluation.mistakes import worst_mistakes
from ltds.evaluation.retrieval import retrieval_examples
from ltds.evaluation.table import PredictionTable
from ltds.evaluation.thumbnails import make_thumbnails, save_thumbnails
from ltds.stats.frechet import pairwise_frechet


@torch.inference_mode()
def features_of(session: Session, rows: NDArray[np.int64], progress: Progress = SILENT) -> torch.Tensor:
    """f(x) of these images, (N,D) float32 on the session's device, in evaluation mode."""
    session.method.eval()
    batches, mine = [], session.own(rows)
    with progress.track("Keeping features", len(mine)) as advance:
        for images, ids in session.images_of(mine):
            batches.append(session.method.predict(images).features.flatten(1).float())
            advance(len(ids))
    return session.of_all(torch.cat(batches), rows)


@torch.inference_mode()
def sample_features(session: Session, progress: Progress = SILENT) -> FeatureTable:
    """Features of some test images, the same for every method, and what the method shows of itself."""
    rows = drawn_rows(session.rows("test"))
    features = features_of(session, rows, progress)
    diagnostics = session.method.diagnostics(features)
    return FeatureTable(
        to_float16(features.cpu().numpy()),
        session.manifest.labels[rows],
        session.manifest.domain_ids[rows],
        rows,
        {name: to_float16(value.float().cpu().numpy()) for name, value in diagnostics.items()},
    )


def store_thumbnails(
    session: Session, table: FeatureTable, predictions: PredictionTable | None, run: RunDirectory
) -> None:
    """Save small copies of the test images that a report shows: nearest neighbours, and the worst mistakes.

    `predictions`: those for test images, where there are any. No file if there is no such image that can be read.
    """
    shown = {i for example in retrieval_examples(table, session.task) for i in (example.query, *example.neighbours)}
    wrong = [] if predictions is None else worst_mistakes(predictions, session.task)
    rows = sorted({*(int(table.rows[i]) for i in shown), *(mistake.row for mistake in wrong)})
    images = make_thumbnails((row, session.manifest.root / session.manifest.paths[row]) for row in rows)
    if images:
        save_thumbnails(run.thumbnails_file, images)


def validation_distances(session: Session) -> dict[str, float]:
    """ "first|second" -> Fréchet distance between the validation features of two source domains."""
    rows = session.rows("val")
    if not len(rows):
        return {}
    distances = pairwise_frechet(features_of(session, rows).cpu().numpy(), session.manifest.domain_ids[rows])
    names = session.manifest.domains
    return {f"{names[a]}|{names[b]}": distance for (a, b), distance in distances.items()}
