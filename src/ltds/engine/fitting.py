"""What a method computes without gradient from whole splits: between steps of training, and after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ltds.core.progress import SILENT, Advance, Progress
from ltds.core.types import Batch
from ltds.engine.session import Session


@dataclass(frozen=True)
class SplitInBatches:
    """The images of a split without augmentation; each loop over it shows all of them."""

    session: Session
    split: str
    advance: Advance

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.session.labelled(self.split):
            yield batch
            self.advance(len(batch))


def fit_in_training(session: Session, step: int, progress: Progress = SILENT) -> None:
    """Before a step that the method names, let it compute what its loss needs to know of all training images."""
    if not session.method.fits_before(session.clock(step)):
        return
    session.method.eval()
    total = len(session.rows("train"))
    with progress.track("Looking at all training images", total) as advance, torch.no_grad(), session.shared_out():
        session.method.fit_in_training(SplitInBatches(session, "train", advance))


def fit_after_training(session: Session, progress: Progress = SILENT) -> None:
    """Let the method fit what needs no gradient, on training and validation images without augmentation."""
    total = len(session.rows("train")) + len(session.rows("val"))
    session.method.eval()
    with progress.track("Fitting after training", total) as advance, torch.no_grad(), session.shared_out():
        training, validation = (SplitInBatches(session, split, advance) for split in ("train", "val"))
        session.method.fit_after_training(training, validation)
