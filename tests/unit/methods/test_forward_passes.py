"""Domains share a forward pass where that makes no difference: fewer passes, the same training."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ltds.data.manifest import Manifest
from ltds.nn.adapter import ResidualAdapter, is_row_by_row
from ltds.nn.small import TinyNet
from ranked_steps import PlainNet, take_steps

# Passes of three steps with three source domains: one for each domain, or all in one. A meta-test domain is alone.
PASSES = {
    "agg": (9, 3),
    "agg-embeddings": (9, 3),
    "cumix-scratch": (18, 6),
    "daml-scratch": (54, 18),
    "epi-fcr-scratch": (21, 15),
    "isda": (9, 3),
    "ltds": (9, 6),
    "masf-scratch": (15, 6),
    "mldg-scratch": (9, 6),
}
TRIED = 2  # more: a network from outside is tried in evaluation and in training mode before it is used


@pytest.mark.parametrize("name", PASSES)
def test_one_pass_trains_as_a_pass_for_each_domain(toy: Manifest, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    passes = 0
    forward = PlainNet.forward

    def counted(network: PlainNet, images: Tensor) -> Tensor:
        nonlocal passes
        passes += 1
        return forward(network, images)

    monkeypatch.setattr(PlainNet, "forward", counted)
    apart = take_steps(toy, name, "ranked_steps:PlainNet")
    assert passes - TRIED == PASSES[name][0]
    passes = 0
    monkeypatch.setattr(PlainNet, "row_by_row", True, raising=False)
    together = take_steps(toy, name, "ranked_steps:PlainNet")
    assert passes - TRIED == PASSES[name][1]
    assert apart.keys() == together.keys()
    for key, value in apart.items():
        assert_close(together[key], value, rtol=0, atol=1e-12, msg=lambda text, key=key: f"{key}: {text}")
    assert (apart["losses"] > 0.01).all()


def test_only_a_network_that_says_so_is_row_by_row() -> None:
    """The adapter says so, and it is true; a network with BatchNorm does not."""
    torch.manual_seed(0)
    adapter, rows = ResidualAdapter(6, 4).double().train(), torch.randn(5, 6, dtype=torch.float64)
    torch.nn.init.normal_(adapter.up.weight)
    assert_close(adapter(rows), torch.cat([adapter(row[None]) for row in rows]), rtol=0, atol=1e-14)
    assert is_row_by_row(adapter)
    assert not is_row_by_row(TinyNet())
    assert not is_row_by_row(PlainNet())
