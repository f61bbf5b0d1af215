"""What tells statistics of training images from weights."""

from __future__ import annotations

from torch import nn


class Statistics(nn.Module):
    """A module whose buffers describe training images. Averages of weights copy them: they are not weights."""
