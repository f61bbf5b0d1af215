"""The projectors e and d against their slow twin."""

from __future__ import annotations

import torch
from torch import nn
from torch.testing import assert_close

from ltds.nn.projector import Projector
from reference import equations as eq


def test_equals_the_slow_twin():
    torch.manual_seed(0)
    projector = Projector(5, 3).double()
    nn.init.uniform_(projector[1].weight)
    nn.init.normal_(projector[1].bias)
    rows = torch.randn(6, 5, dtype=torch.float64)
    parameters = [p.tolist() for p in projector.parameters()]
    twin = eq.project(rows.tolist(), *parameters, lambda x: max(x, 0.0))
    assert_close(projector(rows), torch.tensor(twin, dtype=torch.float64), rtol=0, atol=1e-12)
    assert (projector(rows) >= 0).all()


def test_has_the_four_parameters_and_three_running_statistics_in_order():
    projector = Projector(5, 3)
    names = [name for name, _ in projector.named_parameters()]
    assert names == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert len(list(projector.buffers())) == 3
