"""BatchNorm that keeps the statistics it comes with, for networks that were trained before.

A batch of one source domain, or a small one, has other statistics than the images that the network will be used on. A
pretrained network whose statistics stay as they are computes the same for an image in training and in use, whatever
else is in the batch. Its scale and shift still learn.
"""

from __future__ import annotations

from typing import Self

from torch import nn


class _FixedStatistics(nn.Module):
    """Evaluation mode, always."""

    def train(self, mode: bool = True) -> Self:
        return super().train(False)


class FixedBatchNorm1d(_FixedStatistics, nn.BatchNorm1d):
    """BatchNorm1d with fixed statistics."""


class FixedBatchNorm2d(_FixedStatistics, nn.BatchNorm2d):
    """BatchNorm2d with fixed statistics."""


class FixedBatchNorm3d(_FixedStatistics, nn.BatchNorm3d):
    """BatchNorm3d with fixed statistics."""


FIXED: dict[type[nn.Module], type[nn.Module]] = {
    nn.BatchNorm1d: FixedBatchNorm1d,
    nn.BatchNorm2d: FixedBatchNorm2d,
    nn.BatchNorm3d: FixedBatchNorm3d,
}


def fix_statistics(network: nn.Module) -> int:
    """Fix the statistics of all BatchNorm layers; how many there are.

    A layer gets another class and stays the same object, so that every module that holds it sees the change, and a deep
    copy keeps it.
    """
    layers = [layer for layer in network.modules() if type(layer) in FIXED]
    for layer in layers:
        layer.__class__ = FIXED[type(layer)]
        layer.train()
    return len(layers)
