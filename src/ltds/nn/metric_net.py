"""MetricNet: the small network in whose space MASF measures distances."""

from __future__ import annotations

from torch import nn


class MetricNet(nn.Sequential):
    """Two linear layers, each with a leaky ReLU of slope .2: (N, in_width) -> (N, widths[1])."""

    def __init__(self, in_width: int, widths: tuple[int, int]) -> None:
        hidden, out = widths
        super().__init__(nn.Linear(in_width, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, out), nn.LeakyReLU(0.2))
