"""Projector: the maps e (visual to semantic space) and d (back) of the paper."""

from __future__ import annotations

from torch import nn


class Projector(nn.Sequential):
    """Linear, BatchNorm, ReLU: (N, in_width) -> (N, out_width), entries >= 0.

    In training mode BatchNorm needs two rows or more.
    """

    def __init__(self, in_width: int, out_width: int) -> None:
        super().__init__(nn.Linear(in_width, out_width), nn.BatchNorm1d(out_width), nn.ReLU(inplace=True))
