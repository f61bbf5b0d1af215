"""An exponential moving average of the weights, which stands in for them wherever the model is evaluated or kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ltds.core.types import first_step_after
from ltds.engine.phases import ScheduledPhase
from ltds.engine.settings import AveragingSettings
from ltds.stats.statistics import Statistics


class WeightAverage:
    """The averaged parameters and buffers of a method; empty until a phase reaches `averaging.start`.

    Integer and boolean buffers cannot be averaged: they are copied. So are those in `copied`.
    """

    def __init__(self, settings: AveragingSettings, copied: Collection[str] = ()) -> None:
        self.settings, self.copied = settings, frozenset(copied)
        self.tensors: dict[str, Tensor] = {}

    def update(self, method: nn.Module, scheduled: ScheduledPhase, step: int) -> None:
        """Take in the weights after a step of this phase: average <- decay average + (1 - decay) weights."""
        if self.settings.name == "none" or step < first_averaged_step(scheduled, self.settings.start):
            return
        state = weights_of(method)
        if not self.tensors:
            self.tensors = {name: value.clone() for name, value in state.items()}
            return
        floats = [name for name, value in state.items() if value.is_floating_point() and name not in self.copied]
        torch._foreach_lerp_(
            [self.tensors[name] for name in floats], [state[name] for name in floats], 1 - self.settings.decay
        )
        for name in state.keys() - set(floats):
            self.tensors[name].copy_(state[name])

    def clear(self) -> None:
        """Forget the average: a new phase starts its own."""
        self.tensors = {}

    @contextmanager
    def applied(self, method: nn.Module) -> Iterator[None]:
        """The method with the averaged weights inside the block, with its raw weights again after it."""
        if not self.tensors:
            yield
            return
        with with_weights(method, self.tensors):
            yield


def first_averaged_step(scheduled: ScheduledPhase, start: float) -> int:
    """The first step of the run (from 0) whose weights are averaged: after the share `start` of the phase."""
    return scheduled.start + first_step_after(start, scheduled.steps)


@contextmanager
def with_weights(method: nn.Module, weights: dict[str, Tensor]) -> Iterator[None]:
    """The method with these weights inside the block, with its own again after it."""
    state = weights_of(method)
    raw = {name: value.clone() for name, value in state.items()}
    _copy(weights, state)
    try:
        yield
    finally:
        _copy(raw, state)


def weights_of(method: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name; they share memory with the method's."""
    return {name: value.detach() for name, value in method.state_dict().items()}


def statistics_of(method: nn.Module) -> frozenset[str]:
    """The names of what a method knows of training images (prototypes, say), which averages of weights copy."""
    modules = [(name, module) for name, module in method.named_modules() if isinstance(module, Statistics)]
    return frozenset(f"{name}.{buffer}" for name, module in modules for buffer in module.state_dict())


@torch.no_grad()
def _copy(source: dict[str, Tensor], target: dict[str, Tensor]) -> None:
    for name, value in source.items():
        target[name].copy_(value)
