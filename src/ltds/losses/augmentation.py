"""Implicit augmentation of features along directions in which similar classes vary: L_aug, Eqs. (6) to (8)."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.core.devices import to_device
from ltds.losses.kernels.quadratic import full_quadratic

StrengthSchedule = Literal["ramp", "constant"]


def strength_at(
    epoch: float, *, start: float, end: float, peak: float, schedule: StrengthSchedule = "ramp"
) -> float | None:
    """lambda at an epoch (counted from 0), or None before T_Sigma = `start`, where the loss has no augmentation term.

    "ramp": peak (epoch - start) / (end - start), the released code (peak 10 over epochs 40 to 100, a mean of 4.92);
    "constant": the peak from `start` on (the paper prints 5).
    """
    if epoch < start:
        return None
    return peak * (epoch - start) / (end - start) if schedule == "ramp" else peak


def augmentation_loss(
    logits: Tensor,
    labels: Tensor,
    weight: Tensor,
    sigma: Tensor,
    strength: float,
    *,
    log_n: Tensor | None = None,
    true_weight: Tensor | None = None,
) -> Tensor:
    """(N,) L_aug of each sample: cross-entropy of `augmented_logits`, calibrated with `log_n`, (N,C) or (C,), if given.

    Eq. (8), the bound of Eq. (6). Reading: Eq. (8) prints w_y^T f in the denominator, where w_c^T f is meant; the bias,
    left out there for simplicity, is used; adding log n_c to the biases leaves the bound exact. labels may be on the
    CPU, as for `augmented_logits`.
    """
    augmented = augmented_logits(logits, labels, weight, sigma, strength, true_weight=true_weight)
    if log_n is not None:
        augmented = augmented + log_n
    return F.cross_entropy(augmented, to_device(labels, logits.device), reduction="none")


def augmented_logits(
    logits: Tensor,
    labels: Tensor,
    weight: Tensor,
    sigma: Tensor,
    strength: float,
    *,
    true_weight: Tensor | None = None,
) -> Tensor:
    """(N,C) w_c^T f + b_c + (lambda/2) (w_c - w_y)^T Sigma'_y (w_c - w_y).

    logits W f + b (N,C); labels y (N,); weight W (C,D); sigma Sigma' (C,D) diagonal or (C,D,D), a constant.
    The gradient flows through every w. `true_weight` (C,D) gives w_y where it differs from W (in the released
    meta-test w_c are the slow and w_y the fast weights). With a full covariance give labels on the CPU: for those
    on a GPU the host has to wait.
    """
    true_weight = weight if true_weight is None else true_weight
    with torch.autocast(weight.device.type, enabled=False):  # the expansion below is inaccurate in half precision
        centre = weight.detach().mean(0)  # the differences stay the same, and the expansion stays accurate in float32
        quadratic = _diagonal_quadratic if sigma.dim() == 2 else full_quadratic
        return logits + 0.5 * strength * quadratic(weight - centre, true_weight - centre, sigma.detach(), labels)


def _diagonal_quadratic(weight: Tensor, true_weight: Tensor, sigma: Tensor, labels: Tensor) -> Tensor:
    """(N,C) sum_a S_a (w_ca - w_ya)^2 = S.(w_c^2) - 2 (S w_y).w_c + S.(w_y^2), S = diag Sigma'_y: no (N,C,D) tensor."""
    labels = to_device(labels, sigma.device)
    variance, true = sigma[labels], true_weight[labels]
    constant = (variance * true.square()).sum(1, keepdim=True)
    return variance @ weight.square().T - 2 * (variance * true) @ weight.T + constant
