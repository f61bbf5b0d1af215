"""BatchNorm's statistics for averaged weights, estimated on training batches.

The network with the mean of many weights has other activations than the networks that these weights belong to, so the
mean of their statistics does not suit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ltds.core.progress import SILENT, Progress
from ltds.engine.phases import ScheduledPhase
from ltds.engine.session import Session

MOST_BATCHES = 500  # as in the code of SWAD


@torch.no_grad()
def estimate_statistics(session: Session, scheduled: ScheduledPhase, progress: Progress = SILENT) -> None:
    """Replace BatchNorm's statistics by their means over the last training batches of a phase, at the present weights.

    The batches are those of the last steps of the schedule, wherever training ended, so that resuming repeats them.
    Every rank passes whole batches, as one rank would. Layers with fixed statistics, and those that predictions do not
    use, stay as they are.
    """
    method = session.method
    layers = _layers_that_follow_batches(method)
    method.eval()  # no dropout: statistics are for predictions
    if not layers:
        return
    first = max(scheduled.start, scheduled.stop - MOST_BATCHES)
    with _averaging(layers), progress.track("Estimating BatchNorm", scheduled.stop - first) as advance:
        for batch in session.batches(first, scheduled.stop):
            for images in method.training_passes(batch, scheduled.phase):
                method.project(method.predict(images).features)
            advance()


def _layers_that_follow_batches(network: nn.Module) -> list[_BatchNorm]:
    """BatchNorm layers whose statistics training moves: not those that stay in evaluation mode."""
    network.train()
    layers = [layer for layer in network.modules() if isinstance(layer, _BatchNorm)]
    return [layer for layer in layers if layer.training and layer.running_mean is not None]


@contextmanager
def _averaging(layers: list[_BatchNorm]) -> Iterator[None]:
    """Inside, each layer takes the mean of the statistics of all its batches; one that gets none keeps its own."""
    before = [(layer.momentum, {name: value.clone() for name, value in layer.named_buffers()}) for layer in layers]
    for layer in layers:
        layer.train()
        layer.reset_running_stats()
        layer.momentum = None  # the mean over all batches, each with the same weight
    try:
        yield
    finally:
        for layer, (momentum, statistics) in zip(layers, before, strict=True):
            layer.eval()
            layer.momentum = momentum
            if not layer.num_batches_tracked:
                layer.load_state_dict(statistics, strict=False)
