"""The optimizer and its learning rate as a function of the step."""

from __future__ import annotations

import math

import torch
from torch import nn

from ltds.engine.config import OptimizerSettings, ScheduleSettings


def build_optimizer(method: nn.Module, settings: OptimizerSettings) -> torch.optim.SGD:
    """SGD over all parameters of the method."""
    return torch.optim.SGD(
        method.parameters(),
        lr=settings.lr,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=settings.nesterov,
        foreach=True,
    )


def learning_rate(step: int, base: float, schedule: ScheduleSettings) -> float:
    """lr at a step: base * gamma^(milestones passed). A pure function, so that resuming needs no scheduler state."""
    passed = sum(step >= math.ceil(round(share * schedule.steps, 9)) for share in schedule.milestones)
    return float(base * schedule.gamma**passed)
