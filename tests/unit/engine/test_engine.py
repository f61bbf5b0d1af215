"""The engine's parts: learning rate, checkpoints, journal, NaN, selection."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ltds.core.errors import CheckpointError, ConfigError, TrainingError
from ltds.core.runs import RunDirectory
from ltds.core.types import Batch, Clock, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine.checkpoint import TrainState, load_checkpoint, save_checkpoint
from ltds.engine.device import choose_device
from ltds.engine.loop import train
from ltds.engine.optim import learning_rate
from ltds.engine.phases import schedule_phases
from ltds.engine.settings import ScheduleSettings
from ltds.evaluation import PredictionTable, evaluate
from ltds.methods.agg import Agg
from ltds.methods.base import Phase
from toy import recorded, toy_session


def test_the_learning_rate_falls_at_40_and_80_percent() -> None:
    schedule = ScheduleSettings()
    (whole,) = schedule_phases((Phase(),), schedule)
    rates = [learning_rate(s, 0.1, schedule, whole) for s in (0, 4039, 4040, 8079, 8080, 10099)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_a_checkpoint_restores_every_bit(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    train(session, recorded(session, tmp_path / "run"), stop_after=3)
    file = tmp_path / "c.safetensors"
    save_checkpoint(file, session.method, session.optimizer, TrainState(3, 0.5, 2), "identity")
    other = toy_session(toy, run={"seed": 1})
    assert load_checkpoint(file, other.method, other.optimizer, "identity") == TrainState(3, 0.5, 2)
    for name, value in session.method.state_dict().items():
        assert torch.equal(value, other.method.state_dict()[name]), name
    for mine, theirs in zip(session.method.parameters(), other.method.parameters(), strict=True):
        state = session.optimizer.state[mine]["momentum_buffer"]
        assert torch.equal(state, other.optimizer.state[theirs]["momentum_buffer"])


def test_ranks_agree_before_every_checkpoint(toy: Manifest, tmp_path: Path) -> None:
    """Whatever differs between ranks is what a resumed run would get from the file, in all of them."""
    agreed: list[int] = []
    sharing: Any = SimpleNamespace(active=nullcontext, merge_step=lambda: None)
    session = replace(toy_session(toy, run={"checkpoint_every": 1}), sharing=sharing)
    run = recorded(session, tmp_path / "run")
    sharing.agree = lambda: agreed.append(run.last_checkpoint.exists())
    train(session, run, stop_after=1)
    assert agreed == [False], "in the first step, before there is a file"
    train(session, run, stop_after=2)
    assert agreed == [False, True, True], "at the end of the epoch for its validation, too"


def test_checkpoints_that_do_not_fit_are_refused(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    file = tmp_path / "c.safetensors"
    save_checkpoint(file, session.method, None, TrainState(), "one identity")
    with pytest.raises(CheckpointError, match="Expected the dataset and the settings that"):
        load_checkpoint(file, session.method, identity="another")
    wide = toy_session(toy, backbone={"name": "resnet10", "width": 8})
    with pytest.raises(CheckpointError, match=r"to fit the run's config\.toml"):
        load_checkpoint(file, wide.method)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match="could not be read"):
        load_checkpoint(file, session.method)
    save_file({"x": torch.zeros(1)}, file)
    with pytest.raises(CheckpointError, match="checkpoint of format 3, but got none"):
        load_checkpoint(file, session.method)


class Explosive(Agg):
    """Agg whose second term becomes NaN at the fourth step."""

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        plain = super().loss(batch, clock)
        extra = plain.total * (float("nan") if clock.step == 3 else 0.0)
        return StepLoss(plain.total + extra, {**plain.terms, "extra": extra.detach()})


class Overflowing(Agg):
    """Agg whose gradient, not its loss, is infinite at the third step."""

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        plain = super().loss(batch, clock)
        weight = next(self.parameters())
        trap = torch.sqrt((weight - weight.detach()).abs().sum()) if clock.step == 2 else torch.zeros(())
        return StepLoss(plain.total + trap, plain.terms)


def test_a_nan_loss_stops_names_the_term_and_keeps_the_last_checkpoint(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, "test_engine:Explosive")
    run = recorded(session, tmp_path / "run")
    with pytest.raises(TrainingError, match=r"finite loss at step 4, but the term 'extra' became nan.*smaller"):
        train(session, run)
    assert load_checkpoint(run.last_checkpoint, session.method).step == 2
    assert all(torch.isfinite(p).all() for p in session.method.parameters())
    assert not run.done


def test_weights_spoilt_by_an_infinite_gradient_are_never_saved(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, "test_engine:Overflowing", run={"checkpoint_every": 1})
    run = recorded(session, tmp_path / "run")
    with pytest.raises(TrainingError, match=r"Expected finite weights after step 3"):
        train(session, run)
    load_checkpoint(run.last_checkpoint, session.method)
    assert all(torch.isfinite(p).all() for p in session.method.parameters())


def test_a_run_leaves_all_that_comes_after_it_needs(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, "dc")
    run = recorded(session, tmp_path / "run")
    train(session, run)
    names = sorted(str(p.relative_to(run.path)) for p in run.path.rglob("*") if p.is_file())
    assert names == [
        "DONE",
        "checkpoints/best.safetensors",
        "checkpoints/last.safetensors",
        "config.toml",
        "environment.json",
        "log.jsonl",
        "metrics.json",
        "model.json",
        "predictions/features.npz",
        "predictions/test.npz",
        "predictions/thumbnails.npz",
        "predictions/val.npz",
        "seen.npy",
        "task.json",
    ]
    rows = run.read_journal()
    assert [r["step"] for r in rows if r["kind"] == "step"] == [1, 2, 3, 4, 5, 6]
    assert [r["step"] for r in rows if r["kind"] == "validation"] == [2, 4, 6]
    environment = run.read_environment()
    assert environment["parameters"] == sum(p.numel() for p in session.method.parameters())
    assert environment["data"] == toy.checksum
    assert set(environment) >= {"torch", "python", "commit", "device", "threads", "command", "started"}
    assert environment["processor"].endswith(torch.backends.cpu.get_cpu_capability())


def test_the_model_is_chosen_on_source_validation(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    validations = [r for r in run.read_journal() if r["kind"] == "validation"]
    best = max(validations, key=lambda r: (r["accuracy"], -r["step"]))
    choice = run.read_metrics()["choices"]["model"]
    assert (choice["split"], choice["step"], choice["validation_accuracy"]) == ("val", best["step"], best["accuracy"])
    table = PredictionTable.load(run.predictions_file("val"))
    assert set(np.unique(table.domains)) == {0, 1}, "the held-out domain must not take part in the choice"
    correct = table.logits.argmax(1) == table.labels
    assert best["accuracy"] == pytest.approx(np.mean([correct[table.domains == d].mean() for d in (0, 1)]))


def test_metrics_are_computed_again_without_model_or_images(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    first = run.read_metrics()
    run.metrics_file.unlink()
    for file in (run.last_checkpoint, run.best_checkpoint):
        file.unlink()
    assert json.loads(json.dumps(evaluate(run))) == first


@pytest.mark.parametrize("open_classes", [False, True], ids=["no images", "images of open classes"])
def test_a_dataset_without_validation_keeps_the_last_weights(toy: Manifest, tmp_path: Path, open_classes: bool) -> None:
    keep = toy.split_ids != 1
    fox = (toy.labels == toy.classes.index("fox")) & (toy.domain_ids == 0)  # held out with 'wax', so an open class
    splits = np.where(fox & open_classes, 1, toy.split_ids)
    manifest = Manifest(
        toy.root,
        "no-validation",
        toy.classes,
        toy.domains,
        tuple(p for p, k in zip(toy.paths, keep, strict=True) if k),
        toy.labels[keep],
        toy.domain_ids[keep],
        splits[keep],
    )
    session = toy_session(manifest)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    metrics = run.read_metrics()
    assert metrics["choices"]["model"] == {
        "rule": "the last step, as there are no validation images of known classes",
        "split": None,
        "step": 6,
    }
    assert metrics["summary"]["h_fixed"] is None


def test_a_device_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU, so run.device=cuda is right")
    with pytest.raises(ConfigError, match=r"got 'cuda'. Use run.device=auto"):
        choose_device("cuda")
    assert choose_device("cpu") == torch.device("cpu")


def test_unfinished_runs_are_not_done(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=4)
    assert not run.done
    assert not run.metrics_file.exists()
    assert RunDirectory(run.path).exists
