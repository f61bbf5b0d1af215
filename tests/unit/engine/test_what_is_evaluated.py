"""Which weights a run is judged by, and in which mode: the best and not the last ones, in evaluation mode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from ltds.core.types import Batch, Clock, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine.checkpoint import load_checkpoint
from ltds.engine.loop import train
from ltds.engine.outcome import fit_after_training, predict_split
from ltds.evaluation import PredictionTable
from ltds.methods.agg import Agg
from toy import recorded, toy_session


class Worsening(Agg):
    """Learns in the first epoch; in later ones it climbs: its best epoch is not its last."""

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        loss = super().loss(batch, clock)
        return loss if clock.epoch < 1 else StepLoss(-10 * loss.total, loss.terms)


def test_predictions_are_made_in_evaluation_mode(toy: Manifest) -> None:
    """BatchNorm takes its running statistics, and a prediction changes none of them."""
    session = toy_session(toy)
    session.method.train()
    for image in (session.batch(step).images for step in range(3)):
        session.method.backbone(image)  # so that running statistics differ from those of a batch
    before = {name: value.clone() for name, value in session.method.state_dict().items()}
    table = predict_split(session, "test")
    for name, value in session.method.state_dict().items():
        assert torch.equal(value, before[name]), name
    images, rows = next(iter(session.images("test")))
    session.method.eval()
    with torch.no_grad():
        alone = torch.cat([session.method.predict(image[None]).logits for image in images])
    at = [int(np.flatnonzero(table.rows == row)[0]) for row in rows]
    np.testing.assert_allclose(table.logits[at], alone.numpy(), rtol=1e-4, atol=1e-5)


def test_what_is_fitted_after_training_is_fitted_in_evaluation_mode(toy: Manifest) -> None:
    session = toy_session(toy, "ncm")
    session.method.train()
    before = {name: value.clone() for name, value in session.method.backbone.state_dict().items()}
    fit_after_training(session)
    for name, value in session.method.backbone.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_the_best_weights_are_evaluated_and_not_the_last(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, f"{__name__}:Worsening", schedule={"epochs": 4, "steps_per_epoch": 6})
    run = recorded(session, tmp_path / "run")
    train(session, run)
    accuracies = [row["accuracy"] for row in run.read_journal() if row["kind"] == "validation"]
    assert len(accuracies) == 4
    assert max(accuracies) > accuracies[-1], "a toy whose last epoch is as good as its best shows nothing"
    stored = {split: PredictionTable.load(run.predictions_file(split)) for split in ("val", "test")}
    predicted = {}
    for file in (run.best_checkpoint, run.last_checkpoint):
        load_checkpoint(file, session.method)
        predicted[file] = {split: predict_split(session, split).logits for split in stored}
    for split, table in stored.items():
        np.testing.assert_array_equal(table.logits, predicted[run.best_checkpoint][split])
        assert np.abs(table.logits - predicted[run.last_checkpoint][split]).max() > 0.01
    correct = stored["val"].logits.argmax(1) == stored["val"].labels
    mean = np.mean([correct[stored["val"].domains == d].mean() for d in (0, 1)])
    assert mean == max(accuracies)
