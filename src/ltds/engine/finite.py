"""Training stops, in words, when a loss or a weight becomes NaN or infinite."""

from __future__ import annotations

import math

import torch
from torch import nn

from ltds.core.errors import TrainingError
from ltds.core.types import StepLoss

REMEDY = (
    "The last checkpoint, if there is one, is kept: start a new run with a smaller optimizer.lr, in another folder."
)
AT_ONCE = (
    "No weight has changed yet, so look at how the loss is computed: the logarithm of 0, a division by 0, bad input."
)
IN_A_BUFFER = "Buffers must be finite, too: begin with a large number instead of infinity, and with 0 instead of NaN."


def finite_loss(loss: StepLoss, step: int) -> tuple[float, dict[str, float]]:
    """The total and the terms as numbers; a TrainingError names the terms that are not finite."""
    return finite_numbers({name: value.item() for name, value in loss.terms.items()}, loss.total.item(), step)


def finite_numbers(terms: dict[str, float], total: float, step: int) -> tuple[float, dict[str, float]]:
    """As `finite_loss`, for numbers that have been fetched."""
    broken = {name: value for name, value in {**terms, "total": total}.items() if not math.isfinite(value)}
    if broken:
        became = " and ".join(f"the term '{name}' became {value}" for name, value in broken.items())
        raise TrainingError(f"Expected a finite loss at step {step + 1}, but {became}. {REMEDY if step else AT_ONCE}")
    return total, terms


def require_finite_weights(method: nn.Module, step: int) -> None:
    """A finite loss can still have an infinite gradient: never save or select weights that it has spoilt."""
    broken = [name for name, value in method.state_dict().items() if not bool(torch.isfinite(value).all())]
    learned = next((name for name in broken if name in dict(method.named_parameters(remove_duplicate=False))), None)
    if learned is not None:
        raise TrainingError(
            f"Expected finite weights after step {step}, but '{learned}' holds NaN or infinity. {REMEDY}"
        )
    if broken:
        raise TrainingError(
            f"Expected finite buffers after step {step}, but '{broken[0]}' holds NaN or infinity. {IN_A_BUFFER} If it "
            f"began with finite numbers, training has gone wrong. {REMEDY}"
        )
