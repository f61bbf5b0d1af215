"""The contrast of Eq. (4) with loss and gradient made together, block by block: memory linear in the number of classes.

Nothing of size C x C is ever held: a block of rows is multiplied, exponentiated, summed and multiplied back before the
next one. The gradient is made in the forward pass and only scaled in the backward one: it can be differentiated
once. The plain twin is in `alignment.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ltds.core.errors import ConfigError

ROWS = 384
"""Rows of one block: fewer make the products inefficient, more save less of the symmetric half."""

FUSED_FROM = 200
"""Classes from which the fused way is the quicker one (measured by benchmarks/step.py --part method)."""


def takes_fused(fused: bool | None, classes: int) -> bool:
    """The choice between the two ways: as told, or (None) by the number of classes."""
    return classes >= FUSED_FROM if fused is None else fused


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

    @classmethod
    def to_semantics(cls, domains: int, *, intra: bool = True) -> Directions:
        """Every domain towards s, in the mean."""
        ones = torch.ones(domains, 1, dtype=torch.float64)
        return cls(ones / domains, ones, ones if intra else torch.zeros_like(ones))

    @classmethod
    def pairs(cls, domains: int, *, released: bool, to_semantics: bool) -> Directions:
        """Every ordered pair of domains, in the mean, and every domain towards s, in the mean."""
        ones = torch.ones(domains, domains + 1, dtype=torch.float64)
        weight = (1 - torch.eye(domains, domains + 1, dtype=torch.float64)) / max(domains * (domains - 1), 1)
        weight[:, -1] = 1 / domains if to_semantics else 0.0
        later = ones.triu(1)
        later[:, -1] = 0  # towards s the released code has no such slip
        return cls(weight, ones + later, ones - later) if released else cls(weight, ones, ones)


def refuse_second_order() -> None:
    """Raise inside a backward pass that keeps a graph.

    torch's own once_differentiable would stay silent where the upstream gradient is a constant, as a loss weight
    is, and the second derivative would lack this term.
    """
    if torch.is_grad_enabled():
        raise ConfigError(
            "Expected a fused loss to be differentiated once, but got create_graph=True. "
            "Pass fused=False to the losses for second-order gradients."
        )


def in_range(tables: Tensor, margin: float, temperature: float) -> bool:
    """Whether sums of exp(cosine / temperature) over unit rows neither overflow nor vanish in this number type."""
    terms = math.log(2 * tables.shape[0] * tables.shape[1] + 2)
    return (1 + abs(margin)) / temperature + terms < math.log(torch.finfo(tables.dtype).max)


def fused_contrast(
    tables: Tensor, semantics: Tensor, directions: Directions, margin: float, temperature: float
) -> Tensor:
    """Sum over directions of weight x mean over classes of Eq. (4), a scalar: tables (T,C,S), semantics (C,S) constant.

    Rows have unit length, so exp(cosine / tau) needs no row maximum (`in_range`). Products between domains are
    symmetric: each pair of domains is multiplied once for both of its directions.
    """
    loss: Tensor = _Contrast.apply(tables, semantics, directions, margin, temperature)  # type: ignore[no-untyped-call]
    return loss


class _Contrast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tables: Tensor, semantics: Tensor, directions: Directions, margin: float, temperature: float
    ) -> Tensor:
        wanted = ctx.needs_input_grad[0]
        with torch.autocast(tables.device.type, enabled=False):
            loss, gradient = _ContrastPass(tables, semantics, directions, margin, temperature).run(wanted)
        if wanted:
            ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_order()
        (gradient,) = ctx.saved_tensors
        return gradient * upstream, None, None, None, None


class _ContrastPass:
    """One evaluation of the contrast.

    With E the exponentials of a block, Z the denominators and q = weight / (C Z): the derivative by an entry (c, j) of
    block (m, n) is E_cj (cross_mn q^mn_c + cross_nm q^nm_j), of block (m, m) E_cj (r_c + r_j), r = sum_n intra_mn q^mn.
    Blocks within and between domains are made twice, for the sums and for the derivative; blocks to s once.
    """

    def __init__(self, tables: Tensor, semantics: Tensor, directions: Directions, margin: float, tau: float) -> None:
        self.tables, self.semantics, self.tau = tables, semantics, tau
        T, self.C, _ = tables.shape
        self.pairs = [(m, n) for m in range(T) for n in range(m + 1, T) if directions.has_pairs]
        self.towards_s = [m for m in range(T) if directions.weight[m, -1] != 0]
        self.within = [m for m in range(T) if directions.intra[m].any()]
        targets = [*tables, semantics] if directions.has_pairs else [semantics]
        cosines = torch.stack([(tables * t).sum(-1) for t in targets], dim=1)
        self.positive = (cosines - margin) / tau  # (T, T+1 or 1, C)
        self.weight, self.cross, self.intra = (
            x.to(tables)[..., None] for x in (directions.weight, directions.cross, directions.intra)
        )
        self.sums = torch.zeros_like(self.positive)  # over cross-domain negatives
        self.own = tables.new_zeros(T, self.C)  # over intra-domain negatives
        self.grad = torch.zeros_like(tables)
        self.buffer = tables.new_empty(min(self.C, ROWS) * self.C)

    def run(self, wanted: bool) -> tuple[Tensor, Tensor]:
        """The loss, a scalar, and if wanted its derivative by the tables (T,C,S)."""
        self._sum_negatives()
        self._meet_semantics(wanted)
        denominator = self._denominator(slice(None), slice(None), slice(None))
        loss = (self.weight * (denominator.log() - self.positive)).sum() / self.C
        if wanted:
            q = self.weight / (self.C * denominator)
            self._push_apart(self.cross * q, (self.intra * q).sum(1))
            self._pull_together(q * self.positive.exp() - self.weight / self.C)
            self.grad.div_(self.tau)
        return loss, self.grad

    def _sum_negatives(self) -> None:
        for m, n in self.pairs:
            for rows, block in self._blocks(m, self.tables[n]):
                self.sums[m, n, rows] = block.sum(1)
                self.sums[n, m] += block.sum(0)
        for m in self.within:
            for rows, block in self._own_blocks(m):
                self.own[m, rows] += block.sum(1)
                self.own[m, rows.stop :] += block[:, len(block) :].sum(0)

    def _meet_semantics(self, wanted: bool) -> None:
        """Sums over the negatives of s, and at once the derivative: the other sums are complete by now."""
        for m in self.towards_s:
            for rows, block in self._blocks(m, self.semantics):
                self.sums[m, -1, rows] = block.sum(1)
                if wanted:
                    factor = self.cross[m, -1] * self.weight[m, -1] / self.C
                    block.mul_((factor / self._denominator(m, -1, rows))[:, None])
                    self.grad[m, rows].addmm_(block, self.semantics)

    def _denominator(self, m: int | slice, n: int | slice, rows: slice) -> Tensor:
        own = self.own[:, None].expand_as(self.sums)[m, n, rows]
        return self.positive[m, n, rows].exp() + self.cross[m, n] * self.sums[m, n, rows] + self.intra[m, n] * own

    def _push_apart(self, across: Tensor, within: Tensor) -> None:
        X = self.tables
        for m, n in self.pairs:
            for rows, block in self._blocks(m, X[n]):
                block.mul_(across[m, n, rows, None] + across[n, m])
                self.grad[m, rows].addmm_(block, X[n])
                self.grad[n].addmm_(block.T, X[m, rows])
        for m in self.within:
            for rows, block in self._own_blocks(m):
                block.mul_(within[m, rows, None] + within[m, rows.start :])
                self.grad[m, rows].addmm_(block, X[m, rows.start :])
                self.grad[m, rows.stop :].addmm_(block[:, len(block) :].T, X[m, rows])

    def _pull_together(self, pull: Tensor) -> None:
        for m, own in enumerate(self.tables):
            self.grad[m].addcmul_(pull[m, -1, :, None], self.semantics)
            for n in range(pull.shape[1] - 1):
                self.grad[m].addcmul_(pull[m, n, :, None], self.tables[n])
                self.grad[n].addcmul_(pull[m, n, :, None], own)

    def _blocks(self, m: int, targets: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Rows of domain m with exp(cosine / tau) to every target but their own class."""
        for start in range(0, self.C, ROWS):
            rows = slice(start, min(start + ROWS, self.C))
            yield rows, self._exponentials(self.tables[m, rows], targets, start)

    def _own_blocks(self, m: int) -> Iterator[tuple[slice, Tensor]]:
        """Rows of domain m with exp(cosine / tau) to the rows of the same domain from the block's first one on."""
        for start in range(0, self.C, ROWS):
            rows = slice(start, min(start + ROWS, self.C))
            yield rows, self._exponentials(self.tables[m, rows], self.tables[m, start:], 0)

    def _exponentials(self, anchors: Tensor, targets: Tensor, first: int) -> Tensor:
        block = self.buffer[: len(anchors) * len(targets)].view(len(anchors), len(targets))
        block.addmm_(anchors, targets.T, beta=0, alpha=1 / self.tau).exp_()
        block.diagonal(first).zero_()
        return block
