"""A first phase is trained once: a run that starts behind that of another run ends as if it had trained it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ltds.benchmarking.cells import GridCell, cells_of
from ltds.benchmarking.grid import Grid
from ltds.benchmarking.runner import run_cells
from ltds.core.config import parse
from ltds.core.runs import RunDirectory
from ltds.data.features import write_features
from ltds.data.manifest import Manifest
from ltds.engine.config import resolve
from ltds.engine.first_phase import first_phase_of, training_of
from ltds.engine.start import train_new_run
from ltds.evaluation.table import PredictionTable
from ltds.methods.crt import Decoupled
from ltds.methods.registry import METHODS
from resuming import assert_same_outcome, journal
from toy import toy_config

BEGINS_AS = dict.fromkeys(("crt", "lws", "tau-norm", "ncm"), "agg") | {"boda-crt": "boda"}
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ema": {"averaging": {"name": "ema", "decay": 0.5}},
    "swad": {"averaging": {"name": "swad", "start_patience": 1, "end_patience": 1}},
    "early stopping": {"schedule": {"epochs": 6, "patience": 1}},
    "last weights": {"schedule": {"keep": "last"}},
    "random numbers": {"method": {"mixstyle": {"p": 0.5}}},
    "embeddings": {"method": {"z2s": 0.1}, "optimizer": {"name": "adamw", "lr": 0.01}},
}
OF_AGG_ONLY = ("random numbers", "embeddings")  # settings that boda does not have


def trained(toy: Manifest, path: Path, name: str, other: RunDirectory | None = None, **groups: Any) -> RunDirectory:
    run = RunDirectory(path)
    train_new_run(run, toy_config(toy, name, **groups), toy, first_phase=other)
    return run


def was_adopted(run: RunDirectory, other: RunDirectory) -> bool:
    """Whether it starts with the steps of the other: seconds, to a ten-thousandth, are those of one training only."""
    seconds = [[row["seconds"] for row in r.read_journal() if row["kind"] == "step"] for r in (run, other)]
    named = run.read_environment().get("first_phase", {}).get("run") == other.path.name
    assert named == (seconds[0][: len(seconds[1])] == seconds[1])
    return named


def assert_same_model(one: RunDirectory, other: RunDirectory) -> None:
    """As `assert_same_outcome`, but the last checkpoint may lack averages and momentum that nobody will use."""
    assert journal(one) == journal(other)
    assert one.best_checkpoint.read_bytes() == other.best_checkpoint.read_bytes()
    for split in ("val", "test"):
        mine, theirs = (PredictionTable.load(run.predictions_file(split)) for run in (one, other))
        np.testing.assert_array_equal(mine.logits, theirs.logits)
    assert one.read_metrics() == other.read_metrics()


@pytest.mark.parametrize(
    ("method", "way"),
    [(name, way) for name, first in BEGINS_AS.items() for way in WAYS if first == "agg" or way not in OF_AGG_ONLY],
)
def test_a_run_ends_as_if_it_had_trained_its_first_phase(toy: Manifest, tmp_path: Path, method: str, way: str) -> None:
    first = trained(toy, tmp_path / "first", BEGINS_AS[method], **WAYS[way])
    alone = trained(toy, tmp_path / "alone", method, **WAYS[way])
    behind = trained(toy, tmp_path / "behind", method, first, **WAYS[way])
    assert was_adopted(behind, first)
    assert not was_adopted(alone, first)
    if method in ("crt", "lws", "boda-crt"):
        assert_same_outcome(alone, behind)
    assert_same_model(alone, behind)


def test_a_first_phase_with_a_relative_path_is_used_as_well(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a benchmark that an earlier version began."""
    monkeypatch.chdir(tmp_path)
    write_features("vectors.npz", np.eye(len(toy.classes), 8, dtype=np.float32)[toy.labels], toy.paths)

    def of_features(path: str, name: str, features: Path, other: RunDirectory | None = None) -> RunDirectory:
        run = RunDirectory(tmp_path / path)
        data = {"root": str(toy.root), "held_out": "wax", "features": str(features), "batch_size": 8}
        groups = {"schedule": {"epochs": 2, "steps_per_epoch": 2}, "run": {"threads": 1, "device": "cpu"}}
        train_new_run(run, resolve({"data": data, "method": {"name": name}, **groups}), toy, first_phase=other)
        return run

    agg = of_features("agg", "agg", Path("vectors.npz"))
    assert agg.read_config()["data"]["features"] == "vectors.npz"
    assert was_adopted(of_features("crt", "crt", tmp_path / "vectors.npz", agg), agg)


def damage(run: RunDirectory) -> None:
    content = bytearray(run.best_checkpoint.read_bytes())
    content[-1] ^= 1
    run.best_checkpoint.write_bytes(content)


def other_images(run: RunDirectory) -> None:
    environment = run.read_environment()
    run.write_environment({**environment, "content": "0" * 64})


@pytest.mark.parametrize(
    ("settings", "harm"),
    [
        ({"optimizer": {"lr": 0.05}}, None),
        ({"run": {"seed": 1}}, None),
        ({"run": {"threads": 2}}, None),
        ({"data": {"held_out": "ink"}}, None),
        ({"method": {"criterion": "bsce"}}, None),
        ({}, lambda run: run.done_file.unlink()),
        ({}, damage),
        ({}, lambda run: run.last_checkpoint.unlink()),
        ({}, lambda run: run.config_file.write_text("[")),
        ({}, other_images),
    ],
    ids=["lr", "seed", "threads", "held out", "criterion", "unfinished", "damaged", "lost", "unreadable", "images"],
)
def test_what_another_training_left_is_not_used(toy: Manifest, tmp_path: Path, settings: Any, harm: Any) -> None:
    agg = trained(toy, tmp_path / "agg", "agg", **settings)
    if harm is not None:
        harm(agg)
    behind = trained(toy, tmp_path / "behind", "crt", agg)
    assert "first_phase" not in behind.read_environment()
    assert_same_outcome(trained(toy, tmp_path / "alone", "crt"), behind)


def test_a_kill_before_the_run_exists_leaves_nothing_that_disturbs(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agg = trained(toy, tmp_path / "agg", "agg")

    def killed(run: RunDirectory, config: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RunDirectory, "write_config", killed)
        with pytest.raises(KeyboardInterrupt):
            trained(toy, tmp_path / "behind", "crt", agg)
    assert RunDirectory(tmp_path / "behind").last_checkpoint.is_file(), "killed too early to show anything"
    alone = trained(toy, tmp_path / "alone", "crt")
    assert_same_outcome(alone, trained(toy, tmp_path / "behind", "crt", agg))


def test_events_of_the_first_phase_are_written_again(toy: Manifest, tmp_path: Path) -> None:
    event_file = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    shown = {"run": {"tensorboard": True}}
    agg = trained(toy, tmp_path / "agg", "agg", **shown)
    behind = trained(toy, tmp_path / "behind", "crt", agg, **shown)
    assert was_adopted(behind, agg)
    events = event_file.EventAccumulator(str(behind.path))
    events.Reload()
    losses = [row["loss"] for row in behind.read_journal() if row["kind"] == "step"]
    assert [event.value for event in events.Scalars("step/loss")] == pytest.approx(losses)


class Modified(Decoupled):
    """May train in any way."""


def test_which_methods_begin_as_another(toy: Manifest) -> None:
    begins = {name: first for name in METHODS if (first := first_phase_of(toy_config(toy, name))) is not None}
    assert begins == {name: training_of(toy_config(toy, other)) for name, other in BEGINS_AS.items()}
    assert first_phase_of(toy_config(toy, f"{__name__}:Modified")) is None


class InOrder:
    """Trains nothing, but notes what it is given."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def submit(self, cells: Iterable[GridCell]) -> Iterator[GridCell]:
        given = list(cells)
        self.batches.append([cell.method for cell in given])
        yield from given


def grid_cells(toy: Manifest, out: Path, methods: list[str], variants: dict[str, Any] | None = None) -> list[GridCell]:
    settings = {"data": {"size": 16, "batch_size": 8}, "backbone": {"name": "tiny"}, "run": {"device": "cpu"}}
    grid = {"data": "toy", "methods": methods, "held_out": ["wax"], "seeds": [0], "settings": settings}
    return cells_of(parse(Grid, {**grid, "variants": variants or {}}), out, lambda _: toy)


def test_cells_come_after_the_one_that_trains_their_first_phase(toy: Manifest, tmp_path: Path) -> None:
    cells = grid_cells(toy, tmp_path, ["crt", "agg", "bsce", "ncm"])
    crt, agg, bsce, ncm = cells
    assert (agg.first_phase, bsce.first_phase) == (None, None)
    assert (crt.first_phase, ncm.first_phase) == (agg.run, agg.run)
    executor = InOrder()
    assert len(list(run_cells(cells, executor, tmp_path))) == 4
    assert executor.batches == [["agg", "bsce"], ["crt", "ncm"]]


def test_a_variant_begins_with_the_run_of_its_own_settings(toy: Manifest, tmp_path: Path) -> None:
    variants = {"slow": {"optimizer": {"lr": 0.05}}, "fast": {"optimizer": {"lr": 0.2}}}
    cells = grid_cells(toy, tmp_path, ["agg", "crt"], variants)
    of = {cell.method: cell for cell in cells}
    for name in variants:
        first = of[f"crt ({name})"].first_phase
        assert first is not None
        assert first.path == of[f"agg ({name})"].run.path


def test_a_cell_without_its_partner_in_the_grid_trains_alone(toy: Manifest, tmp_path: Path) -> None:
    executor = InOrder()
    cells = grid_cells(toy, tmp_path, ["crt", "lws"])
    assert list(run_cells(cells, executor, tmp_path)) == cells
    assert executor.batches == [["crt", "lws"]]
    assert json.loads((tmp_path / "cells.json").read_text())[0]["method"] == "crt"
