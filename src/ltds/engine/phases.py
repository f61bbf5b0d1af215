"""Where each phase of a run begins and ends, and what starting one means."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ltds.core.rng import reseed_global
from ltds.engine.settings import ScheduleSettings
from ltds.methods.base import Method, Phase


@dataclass(frozen=True)
class ScheduledPhase:
    """A phase with its steps `start` .. `stop`-1 of the run. `last`: the weights it ends with are the run's."""

    phase: Phase
    start: int
    steps: int
    last: bool

    @property
    def stop(self) -> int:
        return self.start + self.steps


def schedule_phases(phases: tuple[Phase, ...], schedule: ScheduleSettings) -> tuple[ScheduledPhase, ...]:
    """The phases one after the other, each a whole number of epochs, at least one.

    Shares that add up to 1 fill the run's epochs exactly: within them, a phase ends where the sum of the shares so far
    ends, rounded. A phase beyond that sum is as long as its own share, rounded.
    """
    scheduled: list[ScheduledPhase] = []
    share, end = 0.0, 0  # the end in epochs
    for number, phase in enumerate(phases, start=1):
        start, share = end, share + phase.share
        end = round(share * schedule.epochs) if share <= 1 else start + round(phase.share * schedule.epochs)
        end = max(start + 1, end)
        steps = (end - start) * schedule.steps_per_epoch
        scheduled.append(ScheduledPhase(phase, start * schedule.steps_per_epoch, steps, last=number == len(phases)))
    return tuple(scheduled)


def start_phase(scheduled: ScheduledPhase, method: Method, optimizer: torch.optim.Optimizer, seed: int) -> None:
    """Prepare the method for a later phase: depends only on its weights and the seed. Momentum starts at zero."""
    reseed_global(seed, f"enter/{scheduled.phase.name}")
    with torch.no_grad():
        method.start_phase(scheduled.phase)
    optimizer.state.clear()


def freeze(method: nn.Module, phase: Phase, learnable: frozenset[str]) -> None:
    """Let only the phase's parameters learn, among those that learn at all."""
    for name, parameter in method.named_parameters():
        parameter.requires_grad_(name in learnable and name.startswith(phase.trainable))
