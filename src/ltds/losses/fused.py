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
import torch.nn.functional as F
from torch import Tensor

from ltds.core.errors import ConfigError

ROWS = 512
"""Rows of one block: fewer make the products inefficient, more save less of the symmetric half."""

COLUMNS = 1024
"""Columns of one block: wider ones leave the cache between their products."""

KEPT_BYTES = 24 * 2**20
"""Room for blocks kept between the sums and the derivative: to read one is quicker than to make it again."""

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

    def alone(self, m: int) -> Directions:
        """The direction of one domain towards s, without the others."""
        return Directions(*(F.pad(x[m : m + 1, -1:], (1, 0)) for x in (self.weight, self.cross, self.intra)))

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
    tables: Tensor, semantics: Tensor, own: Tensor | None, directions: Directions, margin: float, temperature: float
) -> Tensor:
    """Sum over directions of weight x mean over classes of Eq. (4), a scalar: tables (T,C,S), semantics (C,S) constant.

    own (T,C) marks the rows that are not copies of s; a copy is a constant, without gradient. None: every row is own.
    Rows have unit length, so exp(cosine / tau) needs no row maximum (`in_range`).
    """
    own = torch.ones(tables.shape[:2], dtype=torch.bool, device=tables.device) if own is None else own
    loss: Tensor = _Contrast.apply(tables, semantics, own, directions, margin, temperature)  # type: ignore[no-untyped-call]
    return loss


class _Contrast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tables: Tensor, semantics: Tensor, own: Tensor, directions: Directions, margin: float, tau: float
    ) -> Tensor:
        wanted = ctx.needs_input_grad[0]
        with torch.autocast(tables.device.type, enabled=False):
            problems = [(slice(None), directions)]
            if not directions.has_pairs:  # no product between domains: each is a problem of its own
                problems = [(slice(m, m + 1), directions.alone(m)) for m in range(len(tables))]
            done = [_ContrastPass(tables[m], semantics, own[m], d, margin, tau).run(wanted) for m, d in problems]
        if wanted:
            ctx.save_for_backward(done[0][1] if len(done) == 1 else torch.cat([gradient for _, gradient in done]))
        return torch.stack([loss for loss, _ in done]).sum()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_order()
        (gradient,) = ctx.saved_tensors
        return gradient * upstream, None, None, None, None, None


class _ContrastPass:
    """One evaluation of the contrast, over the N distinct rows: the P own rows of all domains, then the C rows of s.

    E (N,N) holds exp(cosine / tau), 0 between rows of one class. Row y is a member (N,T+1) of its domain; a row of s is
    one of s (the last column) and of each domain that copies it. E @ member are then the sums over negatives of every
    anchor, by domain. With Z the denominators and q = weight / (C Z), let share (N,T+1) be the derivative of the loss
    by those sums; then that by entry (x, y) of E is share_x . member_y + member_x . share_y.
    E is symmetric, and made in tiles of its upper half, twice: for the sums and, unless kept, for the derivative.
    Without copies the columns of s are made once, after the others: a row's sums are complete with them.
    """

    def __init__(
        self, tables: Tensor, semantics: Tensor, own: Tensor, directions: Directions, margin: float, tau: float
    ) -> None:
        self.T, self.C, _ = tables.shape
        self.tau, self.own = tau, own.nonzero(as_tuple=True)
        self.weight, self.cross, self.intra = (
            x.to(tables) for x in (directions.weight, directions.cross, directions.intra)
        )
        self.everyone = torch.cat([tables, semantics[None]]).transpose(0, 1)  # (C,T+1,S)
        cosines = self.everyone[:, :-1] @ self.everyone.transpose(1, 2)
        self.positive = (cosines - margin) / tau  # (C,T,T+1)
        self.P, self.copied = len(self.own[0]), ~own
        self.rows = torch.cat([tables[self.own], semantics])
        self.member = torch.cat([self._one_hot(tables), F.pad(self.copied.T.to(tables), (0, 1), value=1.0)])
        self._find_classes()
        copies = bool(self.copied.any())
        self.meets_s_last = not copies and bool(directions.weight[:, -1].any())
        self.mutual = self.T > 1 or bool(directions.intra.any())
        self.width = len(self.rows) if copies else self.P
        self.tiles = [*self._tiles(0, self.P), *self._tiles(self.P, self.width)]
        self.buffer, self.factors = tables.new_empty(2, ROWS * COLUMNS)
        self.kept: list[Tensor] = []
        self.gradient = torch.zeros_like(self.rows[: self.P])

    def _one_hot(self, like: Tensor) -> Tensor:
        return F.one_hot(self.own[0], self.T + 1).to(like)

    def _find_classes(self) -> None:
        """The class of each distinct row (N,), and where a class is in each domain and in s (T+1,C), -1 for nowhere."""
        every = torch.arange(self.C, device=self.rows.device)
        self.classes = torch.cat([self.own[1], every])
        self.places = torch.full((self.T + 1, self.C), -1, device=self.rows.device)
        self.places[self.own] = torch.arange(self.P, device=self.rows.device)
        self.places[-1] = every + self.P

    def _tiles(self, first: int, last: int) -> Iterator[tuple[slice, slice]]:
        """Rows from first to last with the columns from their own on (or, where domains have no use for it, with s)."""
        for top in range(first, last, ROWS):
            for left in range(top if self.mutual else max(top, self.P), self.width, COLUMNS):
                yield slice(top, min(top + ROWS, last)), slice(left, min(left + COLUMNS, self.width))

    def run(self, wanted: bool) -> tuple[Tensor, Tensor]:
        """The loss, a scalar, and if wanted its derivative by the tables (T,C,S)."""
        sums = self._sum_negatives(KEPT_BYTES if wanted else 0)
        if self.meets_s_last:
            self._meet_semantics(sums, wanted)
        sums = self._by_anchor(sums)
        within = sums.diagonal(dim1=1, dim2=2)[..., None]
        denominator = self.positive.exp() + self.cross * sums + self.intra * within
        loss = (self.weight * (denominator.log() - self.positive)).sum() / self.C
        if not wanted:
            return loss, loss
        q = self.weight / (self.C * denominator)
        share = self.cross * q
        share.diagonal(dim1=1, dim2=2).copy_((self.intra * q).sum(-1))
        self._push_apart(self._by_row(share))
        self._pull_together(q * self.positive.exp() - self.weight / self.C)
        whole = self.rows.new_zeros(self.T, self.C, self.rows.shape[1])
        whole[self.own] = self.gradient.div_(self.tau)
        return loss, whole

    def _by_anchor(self, rows: Tensor) -> Tensor:
        """(C,T,T+1) from what belongs to the distinct rows (N,T+1)."""
        anchors = rows[self.P :, None].repeat(1, self.T, 1)
        anchors[self.own[1], self.own[0]] = rows[: self.P]
        return anchors

    def _by_row(self, anchors: Tensor) -> Tensor:
        """(N,T+1) from what belongs to the anchors (C,T,T+1): a row of s collects from its copies."""
        copies = (anchors * self.copied.T[..., None]).sum(1)
        return torch.cat([anchors[self.own[1], self.own[0]], copies])

    def _sum_negatives(self, room: int) -> Tensor:
        """E @ member, (N,T+1), keeping the first tiles as far as there is room for them, in bytes."""
        member = self.member.T.contiguous()  # products with so few columns are five times as quick lying down
        sums = torch.zeros_like(member)
        for rows, columns in self.tiles:
            size = (rows.stop - rows.start) * (columns.stop - columns.start)
            room -= size * sums.element_size()
            keep = room >= 0 and rows.start < self.P
            tile = self._exponentials(rows, columns, self.buffer.new_empty(size) if keep else self.buffer)
            if keep:
                self.kept.append(tile)
            sums[:, rows].addmm_(member[:, columns], tile.T)
            later, part = self._later(rows, columns, len(self.rows), tile)
            sums[:, later].addmm_(member[:, rows], part)
        return sums.T.contiguous()

    def _meet_semantics(self, sums: Tensor, wanted: bool) -> None:
        """The last column of the sums, and at once the derivative by those entries of E."""
        domain, c = self.own
        positive, within = self.positive[c, domain, -1].exp(), sums.gather(1, domain[:, None])[:, 0]
        weight, cross, intra = (x[domain, -1] for x in (self.weight, self.cross, self.intra))
        last = len(self.rows)
        strips = [slice(left, min(left + COLUMNS, last)) for left in range(self.P, last, COLUMNS)]
        buffers = self.rows.new_empty(len(strips), ROWS * COLUMNS)
        for top in range(0, self.P, ROWS):
            rows = slice(top, min(top + ROWS, self.P))
            tiles = [self._exponentials(rows, *strip) for strip in zip(strips, buffers, strict=True)]
            sums[rows, -1] = total = torch.stack([tile.sum(1) for tile in tiles]).sum(0)
            if wanted:
                denominator = positive[rows] + cross[rows] * total + intra[rows] * within[rows]
                factor = (cross[rows] * weight[rows] / (self.C * denominator))[:, None]
                for columns, tile in zip(strips, tiles, strict=True):
                    self.gradient[rows].addmm_(tile.mul_(factor), self.rows[columns])

    def _push_apart(self, share: Tensor) -> None:
        """Add the derivative by the own rows through E."""
        left, right = torch.cat([share, self.member], 1), torch.cat([self.member, share], 1)
        for number, (rows, columns) in enumerate(self.tiles):
            if rows.start >= self.P:
                break
            tile = self.kept[number] if number < len(self.kept) else self._exponentials(rows, columns, self.buffer)
            tile.mul_(torch.mm(left[rows], right[columns].T, out=self.factors[: tile.numel()].view_as(tile)))
            self.gradient[rows].addmm_(tile, self.rows[columns])
            later, part = self._later(rows, columns, self.P, tile)
            self.gradient[later].addmm_(part.T, self.rows[rows])

    @staticmethod
    def _later(rows: slice, columns: slice, end: int, tile: Tensor) -> tuple[slice, Tensor]:
        """The tile's columns after its rows and before the end: there the lower half of E is its transpose."""
        first, last = max(columns.start, rows.stop), max(min(columns.stop, end), columns.start, rows.stop)
        return slice(first, last), tile[:, first - columns.start : last - columns.start]

    def _pull_together(self, pull: Tensor) -> None:
        """Add the derivative by the own rows through the positives."""
        pull[..., :-1] += pull[..., :-1].transpose(1, 2).clone()
        self.gradient += (pull @ self.everyone)[self.own[1], self.own[0]]

    def _exponentials(self, rows: slice, columns: slice, out: Tensor) -> Tensor:
        shape = rows.stop - rows.start, columns.stop - columns.start
        tile = out[: shape[0] * shape[1]].view(shape)
        tile.addmm_(self.rows[rows], self.rows[columns].T, beta=0, alpha=1 / self.tau).exp_()
        place = self.places[:, self.classes[rows]] - columns.start
        domain, row = ((place >= 0) & (place < shape[1])).nonzero(as_tuple=True)
        tile[row, place[domain, row]] = 0
        return tile
