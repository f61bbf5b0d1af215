"""Class alignment: a class should be confused with the same other classes in two domains (MASF's global loss)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ltds.core.devices import to_device


def class_alignment_loss(
    logits: Tensor, labels: Tensor, other_logits: Tensor, other_labels: Tensor, *, temperature: float = 2.0
) -> Tensor:
    """The scalar (1/C) sum over classes c in both domains of [KL(p_c|q_c) + KL(q_c|p_c)] / 2.

    p_c and q_c are softmaxes, at the temperature, of the mean logits of class c in one domain and in the other:
    logits (N,C) with labels (N,), other_logits (M,C) with other_labels (M,). A class that one of them lacks adds 0, but
    the divisor stays C (Dou et al., NeurIPS 2019). Give labels on the CPU: for those on a GPU the host has to wait.
    """
    counts, other_counts = (y.cpu().bincount(minlength=logits.shape[1]) for y in (labels, other_labels))
    in_both = (counts.minimum(other_counts) > 0).nonzero()[:, 0]
    mean = _class_means(logits, labels, counts)
    other_mean = _class_means(other_logits, other_labels, other_counts)
    log_p, log_q = (F.log_softmax(m / temperature, dim=1) for m in (mean, other_mean))
    half_symmetric = 0.5 * ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(1)
    return half_symmetric[to_device(in_both, mean.device)].sum() / len(mean)


def _class_means(logits: Tensor, labels: Tensor, counts: Tensor) -> Tensor:
    """(C,C) mean logits of the samples of each class: counts (C,) says how many it has."""
    labels, counts = (to_device(x, logits.device) for x in (labels, counts))
    total = logits.new_zeros(len(counts), logits.shape[1]).index_add(0, labels, logits)
    return total / counts.clamp_min(1)[:, None]
