"""The optimizer, and its learning rate as a function of the step."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from ltds.core.types import first_step_after
from ltds.engine.phases import ScheduledPhase
from ltds.engine.settings import OptimizerSettings, ScheduleSettings


def build_optimizer(method: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """SGD or AdamW over all parameters of the method; those that a phase freezes have no gradient and are skipped."""
    groups = _groups(method, settings.backbone_lr_scale)
    shared: dict[str, Any] = {"lr": settings.lr, "weight_decay": settings.weight_decay, "foreach": True}
    if settings.name == "adamw":
        return torch.optim.AdamW(groups, betas=settings.betas, **shared)
    return torch.optim.SGD(groups, momentum=settings.momentum, nesterov=settings.nesterov, **shared)


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Give every parameter its learning rate of this step: `lr` times the scale of its group."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group["lr_scale"]


def learning_rate(step: int, base: float, schedule: ScheduleSettings, scheduled: ScheduledPhase) -> float:
    """lr at a step of the run. A pure function, so that resuming needs no scheduler state.

    "milestones": base * gamma^(milestones passed), as shares of the phase. "cosine": base/2 (1 + cos(pi t/T)), step by
    step where the schedule asks for it, epoch by epoch where the phase does (as cRT's original). "constant": base. All
    times the phase's factor `lr_scale`, and rising linearly from 0 during the warm-up.
    """
    within, base = step - scheduled.start, base * scheduled.phase.lr_scale
    warmup = first_step_after(schedule.warmup, scheduled.steps)
    if within < warmup:
        return base * (within + 1) / (warmup + 1)
    match scheduled.phase.decay, schedule.decay:
        case "constant", _:
            return base
        case "cosine", _:
            epoch, epochs = within // schedule.steps_per_epoch, scheduled.steps // schedule.steps_per_epoch
            return base / 2 * (1 + math.cos(math.pi * epoch / epochs))
        case _, "cosine":
            return base / 2 * (1 + math.cos(math.pi * (within - warmup) / (scheduled.steps - warmup)))
    passed = sum(within >= first_step_after(share, scheduled.steps) for share in schedule.milestones)
    return float(base * schedule.gamma**passed)


def _groups(method: nn.Module, backbone_lr_scale: float) -> list[dict[str, Any]]:
    """One group of parameters, or two where backbones have a learning rate of their own."""
    if backbone_lr_scale == 1:
        return [{"params": list(method.parameters()), "lr_scale": 1.0}]
    backbones: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for name, parameter in method.named_parameters():
        (backbones if "backbone" in name.split(".") else rest).append(parameter)
    return [{"params": rest, "lr_scale": 1.0}, {"params": backbones, "lr_scale": backbone_lr_scale}]
