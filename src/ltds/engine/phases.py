"""Where each phase of a run begins and ends, and what beginning one means."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ltds.core.rng import reseed_global
from ltds.engine.config import ScheduleSettings
from ltds.methods.base import Method, Phase


@dataclass(frozen=True)
class ScheduledPhase:
    """A phase at its place in a run: the steps `start` .. `stop`-1. `last` tells whether its weights are the run's."""

    phase: Phase
    start: int
    steps: int
    last: bool

    @property
    def stop(self) -> int:
        return self.start + self.steps


def schedule_phases(phases: tuple[Phase, ...], schedule: ScheduleSettings) -> tuple[ScheduledPhase, ...]:
    """The phases one after the other, each a whole number of epochs, at least one.

    Within the run's epochs a phase ends where the shares so far end, rounded, so that shares of a whole fill it; a
    phase after them has its own share, rounded.
    """
    scheduled: list[ScheduledPhase] = []
    share, end = 0.0, 0  # the end in epochs
    for phase in phases:
        start, share = end, share + phase.share
        end = round(share * schedule.epochs) if share <= 1 else start + round(phase.share * schedule.epochs)
        end = max(start + 1, end)
        steps = (end - start) * schedule.steps_per_epoch
        scheduled.append(ScheduledPhase(phase, start * schedule.steps_per_epoch, steps, last=phase is phases[-1]))
    return tuple(scheduled)


def start_phase(scheduled: ScheduledPhase, method: Method, optimizer: torch.optim.Optimizer, seed: int) -> None:
    """Prepare the method for a later phase: a pure function of its weights and the seed. Momentum starts anew."""
    reseed_global(seed, f"enter/{scheduled.phase.name}")
    with torch.no_grad():
        method.enter(scheduled.phase)
    optimizer.state.clear()


def freeze(method: nn.Module, phase: Phase, learnable: frozenset[str]) -> None:
    """Let only the phase's parameters learn, of those that learn at all."""
    for name, parameter in method.named_parameters():
        parameter.requires_grad_(name in learnable and name.startswith(phase.trainable))
