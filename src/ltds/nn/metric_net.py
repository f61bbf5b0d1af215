"""The small network whose outputs MASF measures distances between (Dou et al., NeurIPS 2019)."""

from __future__ import annotations

from torch import nn


class MetricNet(nn.Sequential):
    """Two linear layers, each with a leaky ReLU of slope .2: (N, in_dim) -> (N, dims[1])."""

    def __init__(self, in_dim: int, dims: tuple[int, int]) -> None:
        hidden, out = dims
        super().__init__(nn.Linear(in_dim, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, out), nn.LeakyReLU(0.2))
