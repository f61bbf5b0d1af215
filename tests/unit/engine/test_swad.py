"""SWAD: its window against a slow twin, that it is what a run keeps, and that it resumes bit for bit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from swad_reference import mean_of, window
from torch import nn

from ltds.core.errors import ConfigError, DataError, LtdsWarning
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.engine.assemble import assemble
from ltds.engine.loop import train
from ltds.engine.settings import AveragingSettings
from ltds.engine.swad import WeightWindow, validation_loss
from ltds.evaluation.choices import MODEL_RULE, WINDOW_RULE
from ltds.evaluation.run_metrics import evaluate
from ltds.evaluation.table import PredictionTable
from resuming import stop_and_resume
from toy import recorded, toy_config, toy_session

STEPS = 3
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")  # of BatchNorm


class Weights(nn.Module):
    """Two numbers and a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))


def settings(n_s: int, n_e: int, r: float) -> AveragingSettings:
    return AveragingSettings(name="swad", start_patience=n_s, end_patience=n_e, tolerance=r)


@pytest.mark.parametrize("seed", range(60))
def test_the_window_is_that_of_the_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_s, n_e, r = int(rng.integers(1, 5)), int(rng.integers(1, 5)), float(rng.choice([0.0, 0.1, 0.3]))
    epochs = int(rng.integers(1, 14))
    losses = np.abs(rng.normal(1, 0.3, size=epochs) + np.abs(np.arange(epochs) - epochs / 2) * 0.15).tolist()
    weights = rng.normal(size=(epochs * STEPS, 2)).astype(np.float32)
    module, average = Weights(), WeightWindow(settings(n_s, n_e, r))
    for step, values in enumerate(weights):
        with torch.no_grad():
            module.w.copy_(torch.from_numpy(values))
            module.get_buffer("seen").add_(1)
        average.update(module, None, step)  # type: ignore[arg-type]
        if (step + 1) % STEPS == 0:
            average.observe(losses[step // STEPS])
        if rng.random() < 0.3:  # interrupted: all that it knows goes through a checkpoint
            stored = {name: value.clone() for name, value in average.tensors.items()}
            average = WeightWindow(settings(n_s, n_e, r))
            average.tensors = stored
    chosen, result = window(losses, n_s, n_e, 1 + r), average.result()
    if chosen is None:
        assert result is None
        return
    assert result is not None
    np.testing.assert_allclose(result["w"], mean_of(weights.tolist(), STEPS, chosen), rtol=1e-5, atol=1e-6)
    assert result["seen"] == (chosen[1] + 1) * STEPS


def test_a_worked_example() -> None:
    """The loss falls, stays, rises: epochs 2 to 5 (from 0) are the window with Ns = 2, Ne = 2, r = .3."""
    losses = [3.0, 2.0, 1.0, 1.2, 1.1, 1.3, 2.0, 2.1, 0.5]
    assert window(losses, 2, 2, 1.3) == (2, 5)
    average, module = WeightWindow(settings(2, 2, 0.3)), Weights()
    for epoch, loss in enumerate(losses):
        nn.init.constant_(module.w, float(epoch))
        average.update(module, None, epoch)  # type: ignore[arg-type]
        average.observe(loss)
    result = average.result()
    assert result is not None
    assert result["w"].tolist() == pytest.approx([3.5, 3.5])


def test_the_loss_is_the_mean_over_source_domains(toy: Manifest) -> None:
    logits = np.array([[2, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 3, 0, 0]], dtype=np.float32)
    table = PredictionTable(logits, np.array([0, 1, 0]), np.array([0, 0, 1]), np.arange(3))
    each = [
        -torch.log_softmax(torch.tensor(row), 0)[label].item() for row, label in zip(logits, (0, 1, 0), strict=True)
    ]
    expected = ((each[0] + each[1]) / 2 + each[2]) / 2
    assert validation_loss(table, toy.task("wax")) == pytest.approx(expected, rel=1e-6)


def test_the_loss_leaves_images_of_open_classes_out(toy: Manifest) -> None:
    """'fox' is open without 'wax', and has no output in a method such as daml."""
    logits = np.array([[2, 0, 0, 0, 0, -np.inf], [0, 1, 0, 0, 0, -np.inf], [0, 0, 1, 0, 0, -np.inf]], dtype=np.float32)
    table = PredictionTable(logits, np.array([0, 1, 5]), np.array([0, 0, 1]), np.arange(3))
    known = PredictionTable(logits[:2], table.labels[:2], table.domains[:2], table.rows[:2])
    task = toy.task("wax")
    assert validation_loss(table, task) == pytest.approx(validation_loss(known, task))
    assert np.isfinite(validation_loss(table, task))


@pytest.mark.parametrize("of_open_classes", [False, True])
def test_without_validation_images_of_known_classes_it_is_refused(toy: Manifest, of_open_classes: bool) -> None:
    val, train = SPLITS.index("val"), SPLITS.index("train")
    splits = np.where(toy.split_ids == val, train, toy.split_ids)
    if of_open_classes:
        splits[(toy.labels == toy.classes.index("fox")) & (toy.domain_ids != toy.domains.index("wax"))] = val
    manifest = replace(toy, split_ids=splits)
    with pytest.raises(DataError, match=r"validation images of known classes in the source domains .* but got none"):
        assemble(toy_config(toy, averaging={"name": "swad"}), manifest)


def weights_in(file: Path, prefix: str) -> dict[str, torch.Tensor]:
    return {k.removeprefix(prefix): v for k, v in load_file(file).items() if k.startswith(prefix)}


@pytest.mark.parametrize("method", ["agg", "crt", "daml-warmup", "ltds"])
def test_runs_keep_the_window_and_resume_bit_for_bit(toy: Manifest, tmp_path: Path, method: str) -> None:
    averaging = {"name": "swad", "start_patience": 1, "end_patience": 2, "tolerance": 9.0}
    stop_and_resume(toy, tmp_path, method, 3, averaging=averaging)
    straight = RunDirectory(tmp_path / "straight")
    kept, average = weights_in(straight.best_checkpoint, "method."), weights_in(straight.last_checkpoint, "average.")
    for name, value in kept.items():
        if name.rpartition(".")[2] not in STATISTICS:
            assert torch.equal(value, average[f"window/{name}"]), "with this tolerance the window goes to the end"
    assert any(
        not torch.equal(kept[name], raw) for name, raw in weights_in(straight.last_checkpoint, "method.").items()
    )


def test_a_run_that_stopped_after_its_window_resumes_bit_for_bit(toy: Manifest, tmp_path: Path) -> None:
    """With this learning rate the loss rises in the second epoch, which ends the window."""
    averaging = {"name": "swad", "start_patience": 1, "end_patience": 1, "tolerance": 0.0}
    schedule = {"epochs": 6, "steps_per_epoch": 2, "milestones": []}
    stopped = stop_and_resume(toy, tmp_path, "agg", 9, averaging=averaging, schedule=schedule, optimizer={"lr": 0.5})
    assert isinstance(stopped.average, WeightWindow)
    assert stopped.average.ended


@pytest.mark.filterwarnings("ignore:SWAD found no window:ltds.core.errors.LtdsWarning")
@pytest.mark.parametrize(("start_patience", "found"), [(1, True), (50, False)])
def test_metrics_say_which_weights_were_kept(toy: Manifest, tmp_path: Path, start_patience: int, found: bool) -> None:
    averaging = {"name": "swad", "start_patience": start_patience}
    session = toy_session(toy, "agg", averaging=averaging, schedule={"epochs": 2, "steps_per_epoch": 2})
    run = recorded(session, tmp_path / "run")
    train(session, run)
    journal = run.read_journal()
    assert journal[-1] == {"kind": "window", "step": 4, "found": found}
    best = [row for row in journal if row["kind"] == "validation" and row["best"]][-1]
    kept = {"rule": WINDOW_RULE, "step": None, "validation_accuracy": None}
    if not found:
        kept = {"rule": MODEL_RULE, "step": best["step"], "validation_accuracy": best["accuracy"]}
    assert run.read_metrics()["choices"]["model"] == {**kept, "split": "val"}
    run.journal_file.write_text("".join(json.dumps(row) + "\n" for row in journal[:-1]))  # as older runs wrote it
    unsure = {"rule": f"{WINDOW_RULE}; if it found none: {MODEL_RULE}", "step": None, "validation_accuracy": None}
    assert evaluate(run)["choices"]["model"] == {**unsure, "split": "val"}


def test_a_phase_without_a_window_is_named(toy: Manifest, tmp_path: Path) -> None:
    """The last phase of crt is a tenth of the run: one epoch, too few for its own window."""
    averaging = {"name": "swad", "start_patience": 2, "tolerance": 9.0}
    session = toy_session(toy, "crt", averaging=averaging, optimizer={"lr": 0.5})  # the loss rises in the second epoch
    with pytest.warns(LtdsWarning, match=r"no window .* 'classifier', .* than the epoch after it") as said:
        train(session, run := recorded(session, tmp_path / "run"))
    assert len(said) == 1
    assert [row["found"] for row in run.read_journal() if row["kind"] == "window"] == [True, False]


def test_settings_of_the_other_kind_of_average_are_refused(toy: Manifest) -> None:
    with pytest.raises(ConfigError, match=r"decay has no effect with averaging.name=swad"):
        toy_config(toy, averaging={"name": "swad", "decay": 0.5})
    with pytest.raises(ConfigError, match=r"tolerance has no effect with averaging.name=ema"):
        toy_config(toy, averaging={"name": "ema", "tolerance": 0.5})
