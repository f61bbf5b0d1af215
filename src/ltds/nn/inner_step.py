"""One step of gradient descent as a function of the parameters, for any module: Eq. (9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

GradientClip = Literal["none", "global", "per_tensor"]

_RUNNING = ("running_mean", "running_var", "num_batches_tracked")


def gradients(loss: Tensor, parameters: Mapping[str, Tensor], *, second_order: bool = False) -> tuple[Tensor, ...]:
    """The gradient of a loss by each parameter, in order; zeros where the loss does not depend on it.

    `second_order` keeps the graph of the gradients themselves, for differentiating through the inner step.
    """
    return torch.autograd.grad(
        loss, tuple(parameters.values()), create_graph=second_order, allow_unused=True, materialize_grads=True
    )


def fast_weights(
    parameters: Mapping[str, Tensor],
    grads: Sequence[Tensor],
    lr: float,
    *,
    clip: GradientClip = "none",
    clip_norm: float = 2.0,
) -> dict[str, Tensor]:
    """theta' by name, after one step of plain SGD, as a function of theta.

    Eq. (9): theta' = theta - beta1 grad L_mtr. With gradients that are constants (first order) the derivative of theta'
    by theta is the identity, so the gradient of a loss at theta' is added to that of theta, as in Alg. 1, line 17.
    With gradients that keep their graph (second order) it is exact.
    `clip` limits the norm of all gradients together, or of each tensor, to `clip_norm`.
    """
    moved = torch._foreach_add(list(parameters.values()), clip_gradients(grads, clip, clip_norm), alpha=-lr)
    return dict(zip(parameters, moved, strict=True))


def submodule_weights(weights: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The weights of one submodule, by their names inside it: submodule_weights(w, "h")["bias"] is w["h.bias"]."""
    prefix = f"{name}."
    return {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}


def call_with(module: nn.Module, weights: Mapping[str, Tensor], *inputs: Tensor, update_statistics: bool = True) -> Any:
    """What the module returns with these weights instead of its parameters.

    BatchNorm's running statistics belong to the module: this pass updates them too, as the released code does, unless
    `update_statistics` is False; then it updates temporary copies.
    """
    if update_statistics:
        return functional_call(module, dict(weights), inputs)
    copies = {k: b.clone() for k, b in module.named_buffers() if k.rpartition(".")[2] in _RUNNING}
    return functional_call(module, {**copies, **weights}, inputs)


def clip_gradients(grads: Sequence[Tensor], clip: GradientClip, norm: float) -> list[Tensor]:
    """The gradients, with the norm of all of them together, or of each tensor, limited to `norm`."""
    if clip == "none":
        return list(grads)
    norms = torch.stack([torch.linalg.vector_norm(g) for g in grads])
    if clip == "global":  # the 1e-6 of torch.nn.utils.clip_grad_norm_
        factors = (norm / (torch.linalg.vector_norm(norms) + 1e-6)).clamp(max=1.0).expand_as(norms)
    else:
        factors = (norm / norms.clamp_min(norm)).clamp(max=1.0)
    return [g * factor for g, factor in zip(grads, factors, strict=True)]
