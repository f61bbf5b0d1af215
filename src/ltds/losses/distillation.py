"""Knowledge distillation from several networks to one (DAML, Shu et al., CVPR 2021)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def mixed_teacher(logits: Tensor, weights: Tensor, temperature: float) -> Tensor:
    """(N,C) probabilities sum_m r_m softmax(z_m / T), a constant: logits z (M,N,C), weights r (N,M) of sum 1."""
    softened = torch.softmax(logits.detach() / temperature, dim=2)
    return torch.einsum("nm,mnc->nc", weights.to(softened), softened)


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """(N,) T^2 KL(teacher || softmax(z / T)): student logits z (N,C), teacher probabilities (N,C).

    The factor T^2 makes the size of the gradient independent of T. The teacher gets no gradient.
    """
    log_student = torch.log_softmax(student / temperature, dim=1)
    return temperature**2 * F.kl_div(log_student, teacher.detach(), reduction="none").sum(dim=1)
