"""The maps e (from the visual to the semantic space) and d (back) of the paper."""

from __future__ import annotations

from torch import nn


class Projector(nn.Sequential):
    """Linear, BatchNorm, ReLU: (N, in_dim) -> (N, out_dim), entries >= 0.

    In training mode BatchNorm needs two rows or more.
    """

    def __init__(self, in_dim: int, out_dim: int) -> None:
        super().__init__(nn.Linear(in_dim, out_dim), nn.BatchNorm1d(out_dim), nn.ReLU(inplace=True))
