"""Alignment of prototype tables across domains, with the class embeddings and back: the paper's L_S2S and L_S2Z.

Every large softmax here runs over all classes for every class (C x C, or TC x TC over T domains). There are two ways
to the same number, chosen by `fused`: the *plain* one is differentiable any number of times and keeps those matrices;
the *fused* one (see `fused.py`) makes loss and gradients in one blocked pass, with memory linear in C, and can be
differentiated once. `fused=None` takes the fused way from `FUSED_FROM` classes on; second order needs `fused=False`.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.losses.fused import Directions, fused_contrast, in_range, takes_fused
from ltds.losses.linear import linear_cross_entropy

Negatives = Literal["paper", "released"]
CycleForm = Literal["s2s", "z2s"]


def prototype_contrast(anchors: Tensor, targets: Tensor, *, margin: float, temperature: float) -> Tensor:
    """(C,) L_s2s of each class in the direction m -> n, before the mean: anchors m (C,S), targets n (C,S), unit rows.

    Eq. (4): -log [ e_pos / (e_pos + sum_{j != c} exp(m_c^T n_j / tau) + sum_{j != c} exp(m_c^T m_j / tau)) ] with
    e_pos = exp((m_c^T n_c - alpha) / tau).
    """
    towards = Directions.to_semantics(1)
    return _contrast(anchors[None], targets, towards, margin, temperature)[0, -1]


def align_prototypes(
    tables: Tensor,
    semantics: Tensor,
    *,
    margin: float,
    temperature: float,
    negatives: Negatives = "paper",
    to_semantics: bool = True,
    own: Tensor | None = None,
    fused: bool | None = None,
) -> Tensor:
    """L_S2S, a scalar: tables s^ (T,C,S) of T domains and semantics s (C,S), unit rows.

    L_S2S = mean_{m != n} L_s2s(s^m, s^n) + mean_n L_s2s(s^n, s), each of Eq. (4). One domain alone has only the second
    term. `negatives="released"` repeats the released code: for m before n the cross negatives count twice, in place of
    the intra-domain ones. `to_semantics=False` leaves the second term out, as that code does. `own` (T,C) marks the
    rows that are not copies of s: the fused way makes no product twice for copies, and no gradient.
    """
    directions = Directions.pairs(tables.shape[0], released=negatives == "released", to_semantics=to_semantics)
    return _weighted_contrast(tables, semantics, directions, margin, temperature, fused, own)


def back_to_visual(
    visual: Tensor,
    weight: Tensor,
    bias: Tensor,
    cycled: Tensor,
    semantics: Tensor,
    *,
    margin: float,
    temperature: float,
    weights: tuple[float, float] = (1.0, 1.0),
    cycle: CycleForm = "s2s",
    fused: bool | None = None,
) -> Tensor:
    """L_S2Z, a scalar, the mean over T domains: visual v^ = d(s^) (T,C,D), cycled e(v^) (T,C,S) of any length.

    Eq. (5): L_s2z(n) = mean_c CE(h(v^n_c), c) + L_s2s(u(e(v^n)), s), for the classifier h of weight (C,D) and bias (C,)
    and semantics s (C,S). Each class comes once, so no counts. `weights` scale the two terms (released code: .5, .5);
    `cycle="z2s"` leaves the intra-domain negatives out, as that code does.
    """
    classes = torch.arange(visual.shape[1], device=visual.device)
    classification = linear_cross_entropy(visual.flatten(0, 1), weight, bias, classes.repeat(len(visual)), fused=fused)
    directions = Directions.to_semantics(len(visual), intra=cycle == "s2s")
    loop = _weighted_contrast(F.normalize(cycled, dim=-1), semantics, directions, margin, temperature, fused)
    return weights[0] * classification + weights[1] * loop


def _weighted_contrast(
    tables: Tensor,
    semantics: Tensor,
    directions: Directions,
    margin: float,
    temperature: float,
    fused: bool | None,
    own: Tensor | None = None,
) -> Tensor:
    """Sum over directions of weight x mean over classes, by whichever way was chosen."""
    tables = tables.to(semantics.dtype)  # may come in half precision from autocast: too coarse over tau
    possible = not semantics.requires_grad and in_range(tables, margin, temperature)
    if possible and takes_fused(fused, tables.shape[1]):
        return fused_contrast(tables, semantics, own, directions, margin, temperature)
    with torch.autocast(tables.device.type, enabled=False):
        losses = _contrast(tables, semantics, directions, margin, temperature).mean(-1)
    return (losses * directions.weight.to(losses)).sum()


def _contrast(tables: Tensor, semantics: Tensor, directions: Directions, margin: float, temperature: float) -> Tensor:
    """(T,T+1,C) or, without pairs, (T,1,C): -log softmax of the positive, for each direction and class."""
    T, C, S = tables.shape
    if directions.has_pairs:
        everyone = torch.cat([tables, semantics[None]]).flatten(0, 1)
        scaled = (tables.flatten(0, 1) @ everyone.T / temperature).view(T, C, T + 1, C).transpose(1, 2)
    else:  # own domain and s only: no product between domains
        own_and_s = torch.stack([tables, semantics.expand(T, C, S)], dim=1)
        scaled = tables[:, None] @ own_and_s.transpose(-1, -2) / temperature
    itself = torch.eye(C, dtype=torch.bool, device=tables.device)
    negatives = scaled.masked_fill(itself, -torch.inf).logsumexp(-1)
    positive = scaled.diagonal(dim1=-2, dim2=-1) - margin / temperature
    domains = torch.arange(T, device=tables.device)
    own = negatives[domains, domains if directions.has_pairs else 0][:, None]
    if not directions.has_pairs:
        negatives, positive = negatives[:, 1:], positive[:, 1:]
    cross, intra = (torch.log(m).to(tables)[..., None] for m in (directions.cross, directions.intra))
    parts = torch.stack([positive, negatives + cross, (own + intra).expand_as(positive)])
    return parts.logsumexp(0) - positive
