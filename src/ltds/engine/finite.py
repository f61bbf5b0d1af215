"""Training stops, in words, when a loss or a weight becomes NaN or infinite."""

from __future__ import annotations

import math

import torch
from torch import nn

from ltds.core.errors import TrainingError
from ltds.core.types import StepLoss

REMEDY = "The last checkpoint is kept: start a new run with a smaller optimizer.lr, in another folder."


def finite_loss(loss: StepLoss, step: int) -> tuple[float, dict[str, float]]:
    """The total and the terms as numbers; a TrainingError names the terms that are not finite."""
    return finite_numbers({name: value.item() for name, value in loss.terms.items()}, loss.total.item(), step)


def finite_numbers(terms: dict[str, float], total: float, step: int) -> tuple[float, dict[str, float]]:
    """As `finite_loss`, for numbers that have been fetched."""
    broken = {name: value for name, value in {**terms, "total": total}.items() if not math.isfinite(value)}
    if broken:
        became = " and ".join(f"the term '{name}' became {value}" for name, value in broken.items())
        raise TrainingError(f"Expected a finite loss at step {step + 1}, but {became}. {REMEDY}")
    return total, terms


def require_finite_weights(method: nn.Module, step: int) -> None:
    """A finite loss can still have an infinite gradient: never save or select weights that it has spoilt."""
    for name, value in method.state_dict().items():
        if not bool(torch.isfinite(value).all()):
            raise TrainingError(
                f"Expected finite weights after step {step}, but '{name}' holds NaN or infinity. {REMEDY}"
            )
