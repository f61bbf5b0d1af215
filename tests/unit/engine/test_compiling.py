"""Compiled backbones compute what others do; what cannot be compiled is refused in words."""

from __future__ import annotations

import pytest
import torch

from ltds.core.errors import ConfigError
from ltds.core.ranks import ALONE, Ranks
from ltds.core.types import Clock
from ltds.data.manifest import Manifest
from ltds.engine.compiling import compile_backbones
from ltds.engine.settings import RunSettings
from toy import toy_config, toy_session

CLOCK = Clock(0, 0, 6, 2)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_compiled_step_is_the_same(toy: Manifest, precision: str) -> None:
    """With torch's backend for tests, which needs no C++ compiler: what is translated is run as it is."""
    run = {"precision": precision, "threads": 1, "device": "cpu"}
    plain, compiled = (toy_session(toy, "ltds", run=run) for _ in range(2))
    compile_backbones(compiled.method, ALONE, backend="eager")
    losses = []
    for session in (plain, compiled):
        torch.manual_seed(0)
        loss = session.method.train().loss(session.batch(0), CLOCK)
        loss.total.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.total.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    assert plain.method.state_dict().keys() == compiled.method.state_dict().keys()
    for one, other in zip(plain.method.parameters(), compiled.method.parameters(), strict=True):
        if one.grad is not None and other.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "second"), [("ltds", False), ("ltds-paper", True), ("daml", False), ("agg", False)])
def test_only_methods_of_first_order_are_in_the_layout_for_them(toy: Manifest, name: str, second: bool) -> None:
    method = toy_session(toy, name).method
    assert method.second_order is second
    kernels = next(p for p in method.backbone.parameters() if p.ndim == 4 and p.shape[2] > 1)
    assert kernels.is_contiguous(memory_format=torch.channels_last) is not second


def test_nothing_is_compiled_unless_asked() -> None:
    assert RunSettings().compile is False


def test_what_cannot_be_compiled_is_refused(toy: Manifest) -> None:
    compiling = {"compile": True, "threads": 1, "device": "cpu"}
    with pytest.raises(ConfigError, match="a method of first order"):
        toy_session(toy, "ltds-paper", run=compiling)
    with pytest.raises(ConfigError, match="run of one rank, but got 2 ranks"):
        compile_backbones(toy_session(toy, "agg").method, Ranks(0, 2))
    assert toy_config(toy, "agg", run=compiling).run.compile
    assert not toy_config(toy, "agg").run.compile
