"""A residual adapter: the trainable backbone on top of precomputed features."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def is_row_by_row(network: nn.Module) -> bool:
    """Whether the network says of itself that the output for a row depends on no other row of its batch.

    A network with BatchNorm must not say so.
    """
    return bool(getattr(network, "row_by_row", False))


class ResidualAdapter(nn.Module):
    """Features x (N,D) to relu(x + W2 relu(W1 x + b1) + b2) (N,D), with a hidden layer of `width`.

    W2 and b2 start at 0, so that training starts from the features themselves (rectified).
    """

    row_by_row = True

    def __init__(self, in_features: int, width: int = 256) -> None:
        super().__init__()
        self.out_features = in_features
        self.down = nn.Linear(in_features, width)
        self.up = nn.Linear(width, in_features)
        self._start_at_identity()

    def reset_parameters(self) -> None:
        """Draw new weights from the same distributions as the constructor."""
        self.down.reset_parameters()
        self._start_at_identity()

    def forward(self, features: Tensor) -> Tensor:
        return F.relu(features + self.up(F.relu(self.down(features))))

    def _start_at_identity(self) -> None:
        with torch.no_grad():
            self.up.weight.zero_()
            self.up.bias.zero_()
