"""What `loss` of a method returns, checked with a few comparisons: it may be a user's."""

from __future__ import annotations

from torch import Tensor

from ltds.core.errors import TrainingError, expected
from ltds.core.types import StepLoss
from ltds.methods.base import Method

REMEDY = "Return ltds.StepLoss(total, {'name': term.detach()}), where the total and each term are one number."


def checked_loss(loss: object, method: Method) -> StepLoss:
    """The loss of a step; raises unless it is one number that can be differentiated, with numbers as its terms."""
    whose = f"{type(method).__name__}.loss"
    if not isinstance(loss, StepLoss):
        raise TrainingError(expected(f"what {whose} returns", "a ltds.StepLoss", _kind(loss), REMEDY))
    for name, value in (("total", loss.total), *loss.terms.items()):
        if not isinstance(value, Tensor) or value.numel() != 1:
            thing = f"the term '{name}' of {whose}"
            raise TrainingError(expected(thing, "a tensor with one number", _kind(value), REMEDY))
    if not loss.total.requires_grad:
        got = "a constant: it depends on no parameter that learns in this phase"
        remedy = "Compute it from the output of the network, without detach() and torch.no_grad()."
        raise TrainingError(expected(f"the total of {whose}", "a function of the weights", got, remedy))
    return loss


def _kind(value: object) -> str:
    return f"a tensor {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
