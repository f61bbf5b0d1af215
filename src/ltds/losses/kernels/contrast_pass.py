"""One evaluation of the contrast of Eq. (4) and its gradient, tile by tile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ltds.core.devices import to_device
from ltds.losses.kernels import tiles as tiling
from ltds.losses.kernels.distinct_rows import DistinctRows
from ltds.losses.kernels.strata import Strata
from ltds.losses.kernels.tiles import Tiles, mirrored

if TYPE_CHECKING:
    from ltds.losses.class_sample import ClassSample
    from ltds.losses.semantic_alignment import Directions

KEPT_BYTES = 24 * 2**20
"""Memory for tiles kept between the sums and the derivative: reading one is faster than computing it again."""


class ContrastPass:
    """One evaluation of the contrast over the distinct rows and the matrix E between them (see `Tiles`).

    E @ member (N,T+1) are the sums over negatives of every anchor, by domain. With Z the denominators and
    q = weight / (C Z), let share (N,T+1) be the derivative of the loss by those sums; then the derivative by entry
    (x, y) of E is share_x . member_y + member_x . share_y.
    Tiles of E are computed twice: for the sums and, unless kept, for the derivative. Without copies the columns of s
    are computed once, after the others: they complete the sums of a row.
    With a sample of classes there are two columns for each table in `member`, the sums and `share` (see `Strata`).
    """

    def __init__(
        self,
        tables: Tensor,
        semantics: Tensor,
        projected: Tensor,
        directions: Directions,
        margin: float,
        tau: float,
        sample: ClassSample | None = None,
    ) -> None:
        self.tau, self.distinct = tau, DistinctRows(tables, semantics, projected)
        self.P, self.C = self.distinct.P, self.distinct.C
        classes = to_device(self.distinct.classes, tables.device)
        self.strata = None if sample is None else Strata(sample, classes, tables.dtype)
        self.rows, member = self.distinct.rows, self.distinct.member
        self.member = member if self.strata is None else self.strata.split(member)
        self.weight, self.cross, self.intra = (
            to_device(x.to(tables.dtype), tables.device)
            for x in (directions.weight, directions.cross, directions.intra)
        )
        if sample is not None:
            self.weight = self.weight * sample.anchor_weights.to(tables)[:, None, None]
        self.everyone = torch.cat([tables, semantics[None]]).transpose(0, 1)  # (C,T+1,S)
        cosines = self.everyone[:, :-1] @ self.everyone.transpose(1, 2)
        self.positive = (cosines - margin) / tau  # (C,T,T+1)
        self.meets_s_last = not self.distinct.has_copies and bool(directions.weight[:, -1].any())
        self.tiles = Tiles(self.distinct, tau, mutual=len(tables) > 1 or bool(directions.intra.any()))
        self.buffer, self.factors = tables.new_empty(2, tiling.ROWS * tiling.COLUMNS)
        self.kept: list[Tensor] = []
        self.gradient = torch.zeros_like(self.rows[: self.P])

    def run(self, wanted: bool) -> tuple[Tensor, Tensor]:
        """The loss, a scalar, and if wanted its derivative by the tables (T,C,S)."""
        sums = self._sum_negatives(KEPT_BYTES if wanted else 0)
        sums = sums if self.strata is None else self.strata.joined(sums)
        if self.meets_s_last:
            self._meet_semantics(sums, wanted)
        sums = self.distinct.by_anchor(sums)
        within = sums.diagonal(dim1=1, dim2=2)[..., None]
        denominator = self.positive.exp() + self.cross * sums + self.intra * within
        loss = (self.weight * (denominator.log() - self.positive)).sum() / self.C
        if not wanted:
            return loss, loss
        q = self.weight / (self.C * denominator)
        share = self.cross * q
        share.diagonal(dim1=1, dim2=2).copy_((self.intra * q).sum(-1))
        share = self.distinct.by_row(share)
        self._push_apart(share if self.strata is None else self.strata.spread(share))
        self._pull_together(q * self.positive.exp() - self.weight / self.C)
        whole = self.rows.new_zeros(self.distinct.T, self.C, self.rows.shape[1])
        whole[self.distinct.domain, self.distinct.label] = self.gradient.div_(self.tau)
        return loss, whole

    def _sum_negatives(self, room: int) -> Tensor:
        """E @ member, (N,T+1) or (N,2T+2), keeping the first tiles as long as they fit into `room` bytes."""
        member = self.member.T.contiguous()  # products with so few columns are five times faster transposed
        sums = torch.zeros_like(member)
        for rows, columns in self.tiles.grid:
            size = (rows.stop - rows.start) * (columns.stop - columns.start)
            room -= size * sums.element_size()
            keep = room >= 0 and rows.start < self.P
            tile = self.tiles.exponentials(rows, columns, self.buffer.new_empty(size) if keep else self.buffer)
            if keep:
                self.kept.append(tile)
            sums[:, rows].addmm_(member[:, columns], tile.T)
            later, transposed = mirrored(rows, columns, len(self.rows), tile)
            sums[:, later].addmm_(member[:, rows], transposed)
        return sums.T.contiguous()

    def _meet_semantics(self, sums: Tensor, wanted: bool) -> None:
        """The last column of the sums, and at once the derivative by those entries of E."""
        domain, c = self.distinct.domain, self.distinct.label
        positive, within = self.positive[c, domain, -1].exp(), sums.gather(1, domain[:, None])[:, 0]
        cross, intra = (x[domain, -1] for x in (self.cross, self.intra))
        weight = self.weight.expand_as(self.positive)[c, domain, -1]
        height, width, last = tiling.ROWS, tiling.COLUMNS, len(self.rows)
        strips = [slice(left, min(left + width, last)) for left in range(self.P, last, width)]
        buffers = self.rows.new_empty(len(strips), height * width)
        for top in range(0, self.P, height):
            rows = slice(top, min(top + height, self.P))
            tiles = [self.tiles.exponentials(rows, *strip) for strip in zip(strips, buffers, strict=True)]
            if self.strata is not None:
                for columns, tile in zip(strips, tiles, strict=True):
                    self.strata.weigh(tile, rows, columns)
            sums[rows, -1] = total = torch.stack([tile.sum(1) for tile in tiles]).sum(0)
            if wanted:
                denominator = positive[rows] + cross[rows] * total + intra[rows] * within[rows]
                factor = (cross[rows] * weight[rows] / (self.C * denominator))[:, None]
                for columns, tile in zip(strips, tiles, strict=True):
                    self.gradient[rows].addmm_(tile.mul_(factor), self.rows[columns])

    def _push_apart(self, share: Tensor) -> None:
        """Add the derivative by the projected rows through E."""
        left, right = torch.cat([share, self.member], 1), torch.cat([self.member, share], 1)
        for number, (rows, columns) in enumerate(self.tiles.grid):
            if rows.start >= self.P:
                break
            kept = number < len(self.kept)
            tile = self.kept[number] if kept else self.tiles.exponentials(rows, columns, self.buffer)
            tile.mul_(torch.mm(left[rows], right[columns].T, out=self.factors[: tile.numel()].view_as(tile)))
            self.gradient[rows].addmm_(tile, self.rows[columns])
            later, transposed = mirrored(rows, columns, self.P, tile)
            self.gradient[later].addmm_(transposed.T, self.rows[rows])

    def _pull_together(self, pull: Tensor) -> None:
        """Add the derivative by the projected rows through the positives."""
        pull[..., :-1] += pull[..., :-1].transpose(1, 2).clone()
        self.gradient += (pull @ self.everyone)[self.distinct.label, self.distinct.domain]
