"""The optimizer and its learning rate as a function of the step."""

from __future__ import annotations

import math

import torch
from torch import nn

from ltds.engine.config import OptimizerSettings, ScheduleSettings
from ltds.engine.phases import ScheduledPhase


def build_optimizer(method: nn.Module, settings: OptimizerSettings) -> torch.optim.SGD:
    """SGD over all parameters of the method; those that a phase freezes have no gradient and are passed over."""
    return torch.optim.SGD(
        method.parameters(),
        lr=settings.lr,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=settings.nesterov,
        foreach=True,
    )


def learning_rate(step: int, base: float, schedule: ScheduleSettings, scheduled: ScheduledPhase) -> float:
    """lr at a step of the run. A pure function, so that resuming needs no scheduler state.

    "milestones": base * gamma^(milestones passed), as shares of the phase. "cosine": from base to 0, an epoch at a
    time, base/2 (1 + cos(pi e/E)) (METHODS 2.1). "constant": base. All times the phase's own factor.
    """
    within, base = step - scheduled.start, base * scheduled.phase.lr
    if scheduled.phase.decay == "constant":
        return base
    if scheduled.phase.decay == "cosine":
        epoch, epochs = within // schedule.steps_per_epoch, scheduled.steps // schedule.steps_per_epoch
        return base / 2 * (1 + math.cos(math.pi * epoch / epochs))
    passed = sum(within >= math.ceil(round(share * scheduled.steps, 9)) for share in schedule.milestones)
    return float(base * schedule.gamma**passed)
