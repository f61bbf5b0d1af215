"""Alignment of prototype tables across domains and with the class embeddings: the paper's L_S2S, Eq. (4).

Every softmax here runs over all classes for every class (C x C, or TC x TC over T domains). There are two ways to the
same number, chosen by `fused`: the *readable* one below can be differentiated any number of times and keeps those
matrices; the *fused* one (`kernels/contrast.py`) computes loss and gradient in one blocked pass, with memory linear in
C, and can be differentiated once. `fused=None` takes the fused way from `FUSED_FROM` classes on; second order needs
`fused=False`.

With a `ClassSample`, tables and s have the rows of its classes only, and each counts for as many as it stands for:
time and memory depend on the size of the sample, not on C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.core.devices import to_device
from ltds.losses.class_sample import ClassSample
from ltds.losses.kernels.choice import in_range, uses_fused
from ltds.losses.kernels.contrast import fused_contrast

NegativesForm = Literal["paper", "released"]


@dataclass(frozen=True)
class Directions:
    """Which directions m -> n of Eq. (4) count, and how: weight, cross, intra, each (T,T+1) or (T,1), on the CPU.

    Row m is the anchors' domain; the last column is the table s, the columns before it (if any) are the domains.
    `cross` and `intra` multiply the sums over cross- and intra-domain negatives in the denominator.
    """

    weight: Tensor
    cross: Tensor
    intra: Tensor

    @property
    def has_pairs(self) -> bool:
        return self.weight.shape[1] > 1

    def alone(self, m: int) -> Directions:
        """The direction of one domain towards s, without the others."""
        return Directions(*(F.pad(x[m : m + 1, -1:], (1, 0)) for x in (self.weight, self.cross, self.intra)))

    @classmethod
    def to_semantics(cls, domains: int, *, intra: bool = True) -> Directions:
        """Every domain towards s, averaged."""
        ones = torch.ones(domains, 1, dtype=torch.float64)
        return cls(ones / domains, ones, ones if intra else torch.zeros_like(ones))

    @classmethod
    def pairs(cls, domains: int, *, released: bool, to_semantics: bool) -> Directions:
        """Every ordered pair of domains, averaged, and every domain towards s, averaged."""
        ones = torch.ones(domains, domains + 1, dtype=torch.float64)
        weight = (1 - torch.eye(domains, domains + 1, dtype=torch.float64)) / max(domains * (domains - 1), 1)
        weight[:, -1] = 1 / domains if to_semantics else 0.0
        later = ones.triu(1)
        later[:, -1] = 0  # towards s the released code does not double the cross negatives
        return cls(weight, ones + later, ones - later) if released else cls(weight, ones, ones)


def prototype_contrast(anchors: Tensor, targets: Tensor, *, margin: float, temperature: float) -> Tensor:
    """(C,) L_s2s of each class in the direction m -> n, before the mean: anchors m (C,S), targets n (C,S), unit rows.

    Eq. (4): -log [ e_pos / (e_pos + sum_{j != c} exp(m_c^T n_j / tau) + sum_{j != c} exp(m_c^T m_j / tau)) ] with
    e_pos = exp((m_c^T n_c - alpha) / tau).
    """
    return _contrast(anchors[None], targets, Directions.to_semantics(1), margin, temperature)[0, -1]


def semantic_alignment_loss(
    tables: Tensor,
    semantics: Tensor,
    *,
    margin: float,
    temperature: float,
    negatives: NegativesForm = "paper",
    to_semantics: bool = True,
    projected: Tensor | None = None,
    fused: bool | None = None,
    sample: ClassSample | None = None,
) -> Tensor:
    """L_S2S, a scalar: tables s^ (T,C,S) of T domains and semantics s (C,S), unit rows.

    L_S2S = mean_{m != n} L_s2s(s^m, s^n) + mean_n L_s2s(s^n, s), each of Eq. (4). A single domain has only the second
    term. `negatives="released"` repeats the released code: for m before n the cross negatives count twice, in place of
    the intra-domain ones. `to_semantics=False` leaves the second term out, as that code does. `projected` (T,C) marks
    the rows that are not copies of s: the fused way computes products with copies once, and no gradient for them. Give
    it on the CPU: for one on a GPU the host has to wait.
    `sample`: the classes of the rows, where they are not all.
    """
    directions = Directions.pairs(tables.shape[0], released=negatives == "released", to_semantics=to_semantics)
    return weighted_contrast(tables, semantics, directions, margin, temperature, fused, projected, sample)


def weighted_contrast(
    tables: Tensor,
    semantics: Tensor,
    directions: Directions,
    margin: float,
    temperature: float,
    fused: bool | None,
    projected: Tensor | None = None,
    sample: ClassSample | None = None,
) -> Tensor:
    """Sum over directions of weight x mean over classes of Eq. (4), in the way that `fused` chooses."""
    tables = tables.to(semantics.dtype)  # autocast may give half precision, which is too coarse after division by tau
    stood_for = tables.shape[1] if sample is None else sample.total
    possible = not semantics.requires_grad and in_range(tables, margin, temperature, stood_for)
    if possible and uses_fused(fused, tables.shape[1]):
        return fused_contrast(tables, semantics, projected, directions, margin, temperature, sample)
    with torch.autocast(tables.device.type, enabled=False):
        losses = _contrast(tables, semantics, directions, margin, temperature, sample)
        losses = (losses if sample is None else losses * sample.anchor_weights.to(losses)).mean(-1)
    return (losses * to_device(directions.weight.to(losses.dtype), losses.device)).sum()


def _contrast(
    tables: Tensor,
    semantics: Tensor,
    directions: Directions,
    margin: float,
    temperature: float,
    sample: ClassSample | None = None,
) -> Tensor:
    """(T,T+1,C) or, without pairs, (T,1,C): Eq. (4) of every class, for each direction from a domain to a target.

    -log [ e_pos / (e_pos + cross + intra) ] = logsumexp(log e_pos, log cross, log intra) - log e_pos.
    """
    scaled, itself = _scaled_cosines(tables, semantics, directions.has_pairs, temperature)
    same_class = torch.eye(tables.shape[1], dtype=torch.bool, device=tables.device)
    negatives = scaled if sample is None else scaled + sample.log_weights.to(scaled)
    log_sums = negatives.masked_fill(same_class, -torch.inf).logsumexp(-1)  # over j != c, for every target
    intra = log_sums[torch.arange(len(tables), device=tables.device), itself][:, None]
    positive = scaled.diagonal(dim1=-2, dim2=-1) - margin / temperature
    if not directions.has_pairs:  # the domain itself is a source of negatives only, not a target
        log_sums, positive = log_sums[:, 1:], positive[:, 1:]
    log_cross, log_intra = (
        to_device(torch.log(m).to(tables.dtype), tables.device)[..., None] for m in (directions.cross, directions.intra)
    )
    terms = torch.stack([positive, log_sums + log_cross, (intra + log_intra).expand_as(positive)])
    return terms.logsumexp(0) - positive


def _scaled_cosines(tables: Tensor, semantics: Tensor, pairs: bool, temperature: float) -> tuple[Tensor, Tensor | int]:
    """m_c^T n_j / tau of every domain m with its targets n, and the position of m among those targets.

    With pairs (T,T+1,C,C): all domains, then s. Without (T,2,C,C): the domain itself, then s.
    """
    T, C, S = tables.shape
    if pairs:
        everyone = torch.cat([tables, semantics[None]]).flatten(0, 1)
        scaled = (tables.flatten(0, 1) @ everyone.T / temperature).view(T, C, T + 1, C).transpose(1, 2)
        return scaled, torch.arange(T, device=tables.device)
    itself_and_s = torch.stack([tables, semantics.expand(T, C, S)], dim=1)
    return tables[:, None] @ itself_and_s.transpose(-1, -2) / temperature, 0
