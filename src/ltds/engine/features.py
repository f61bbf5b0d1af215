"""Features of a session's images: kept at the end of a run, and compared between domains during it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from ltds.core.progress import SILENT, Progress
from ltds.engine.session import Session
from ltds.evaluation.features import FeatureTable, drawn_rows, half
from ltds.stats.frechet import pairwise_frechet


@torch.inference_mode()
def features_of(session: Session, rows: NDArray[np.int64], progress: Progress = SILENT) -> torch.Tensor:
    """f(x) of these images, (N,D) float32 on the session's device, in evaluation mode."""
    session.method.eval()
    found = []
    with progress.track("Keeping features", len(rows)) as advance:
        for images, ids in session.images_of(rows):
            found.append(session.method.predict(images).features.flatten(1).float())
            advance(len(ids))
    return torch.cat(found)


@torch.inference_mode()
def sample_features(session: Session, progress: Progress = SILENT) -> FeatureTable:
    """Features of some test images, drawn alike for every method, and the method's own views of them."""
    rows = drawn_rows(session.rows("test"))
    features = features_of(session, rows, progress)
    views = session.method.views(features)
    return FeatureTable(
        half(features.cpu().numpy()),
        session.manifest.labels[rows],
        session.manifest.domain_ids[rows],
        rows,
        {name: half(value.float().cpu().numpy()) for name, value in views.items()},
    )


def domain_distances(session: Session) -> dict[str, float]:
    """ "first|second" -> Fréchet distance between the validation features of two source domains."""
    rows = session.rows("val")
    if not len(rows):
        return {}
    found = pairwise_frechet(features_of(session, rows).cpu().numpy(), session.manifest.domain_ids[rows])
    names = session.manifest.domains
    return {f"{names[a]}|{names[b]}": distance for (a, b), distance in found.items()}
