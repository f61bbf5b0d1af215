"""BatchNorm's statistics for SWAD's mean weights: estimated on training batches, as the method passes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ltds.core.progress import Advance
from ltds.data.manifest import Manifest
from ltds.engine.batchnorm import estimate_statistics
from ltds.engine.checkpoint import load_checkpoint
from ltds.engine.loop import train
from ltds.engine.session import Session
from ltds.methods.base import Method
from ltds.nn.fixed_batchnorm import fix_statistics
from toy import recorded, toy_session

SWAD = {"name": "swad", "start_patience": 1, "tolerance": 9.0}


def layers_of(module: nn.Module) -> list[_BatchNorm]:
    return [layer for layer in module.modules() if isinstance(layer, _BatchNorm)]


def buffers_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.named_buffers()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def statistics_by_hand(session: Session, layer: _BatchNorm, *, joint: bool) -> tuple[Tensor, Tensor]:
    """The mean and variance of a layer's inputs in each pass, averaged over all passes of all steps of the run."""
    means, variances = [], []

    def look(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        rows = inputs[0].transpose(0, 1).flatten(1)
        means.append(rows.mean(dim=1))
        variances.append(rows.var(dim=1))

    handle = layer.register_forward_pre_hook(look)
    session.method.train()
    with torch.no_grad():
        for step in range(session.steps):
            batch = session.batch(step)
            for part in [batch] if joint else [batch.of(d) for d in range(len(session.task.sources))]:
                session.method.backbone(part.images)
    handle.remove()
    return torch.stack(means).mean(dim=0), torch.stack(variances).mean(dim=0)


@pytest.mark.parametrize(
    ("method", "settings", "joint"),
    [("agg", {}, False), ("agg", {"joint_forward": True}, True), ("mixstyle", {}, True), ("remix", {}, True)],
)
def test_the_kept_statistics_are_those_of_the_kept_weights(
    toy: Manifest, tmp_path: Path, method: str, settings: dict[str, Any], joint: bool
) -> None:
    session = toy_session(toy, method, averaging=SWAD, method=settings)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    load_checkpoint(run.best_checkpoint, session.method)
    stored = buffers_of(session.method)
    layers = {name: layer for name, layer in session.method.named_modules() if isinstance(layer, _BatchNorm)}
    assert len(layers) == 2
    for name, layer in layers.items():
        mean, variance = statistics_by_hand(session, layer, joint=joint)
        torch.testing.assert_close(stored[f"{name}.running_mean"], mean)
        torch.testing.assert_close(stored[f"{name}.running_var"], variance)


def estimated(session: Session) -> Method:
    estimate_statistics(session, session.phases[-1])
    return session.method


def test_layers_that_predictions_do_not_use_and_weights_stay_as_they_are(toy: Manifest) -> None:
    session = toy_session(toy, "epi-fcr")
    of_domains = session.method.get_submodule("domain_networks")
    for layer in layers_of(session.method):
        nn.init.constant_(layer.get_buffer("running_mean"), 0.5)
    before, unused = buffers_of(session.method.backbone), buffers_of(of_domains)
    weights = {name: p.clone() for name, p in session.method.named_parameters()}
    method = estimated(session)
    assert same(unused, buffers_of(of_domains))
    assert not same(before, buffers_of(method.backbone))
    assert same(weights, dict(method.named_parameters()))
    assert {layer.momentum for layer in layers_of(method)} == {0.1}


def test_the_projector_is_estimated_too(toy: Manifest) -> None:
    session = toy_session(toy, "ltds")
    projector = session.method.get_submodule("to_semantic")
    before = buffers_of(projector)
    estimated(session)
    assert not same(before, buffers_of(projector))


def test_fixed_statistics_stay_and_need_no_batch(toy: Manifest) -> None:
    session = replace(toy_session(toy, "agg"), loaders=())  # a batch would be an error
    fix_statistics(session.method)
    before = buffers_of(session.method)
    assert same(before, buffers_of(estimated(session)))


def test_the_pass_over_the_batches_is_shown(toy: Manifest, tmp_path: Path) -> None:
    counts: dict[str, list[int]] = {}

    class Bars:
        @contextmanager
        def track(self, title: str, total: int, done: int = 0) -> Iterator[Advance]:
            counts[title] = [total, done]

            def advance(amount: int = 1, note: str = "") -> None:
                counts[title][1] += amount

            yield advance

    session = toy_session(toy, "agg", averaging=SWAD)
    train(session, recorded(session, tmp_path / "run"), Bars())
    assert counts["Training"] == counts["Estimating BatchNorm"] == [session.steps, session.steps]


@pytest.mark.parametrize(("mode", "stay"), [("eval", True), ("train", False)])
def test_the_head_phase_of_crt_estimates_what_it_trains_with(toy: Manifest, mode: str, stay: bool) -> None:
    session = toy_session(toy, "crt", method={"second_phase_batchnorm": mode})
    before = buffers_of(session.method.backbone)
    assert same(before, buffers_of(estimated(session).backbone)) == stay
