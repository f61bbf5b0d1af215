"""One batch, shared out: each rank runs the backbone on its rows, and all ranks get the features of all rows.

A method then computes its loss on the whole batch, in every rank alike, and needs no word about ranks. Two kinds of
values take part. Parameters, features and losses are the same in all ranks; inside the backbone each rank has its own
rows. Between the two stand four functions, each of which has another one as its derivative. So gradients are complete
in every rank whenever they are asked for: once a step, in an inner step, or of second order.

    entered   same -> own      the derivative is `summed`: each rank contributes the gradient of its rows
    summed    own  -> same     the derivative is `entered`
    scattered same -> own      the rows of this rank; the derivative is `gathered`
    gathered  own  -> same     the rows of all ranks; the derivative is `scattered`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ltds.core.ranks import Ranks, RowShare, sharing
from ltds.nn.networks import backbones_of
from ltds.nn.synced_batchnorm import synchronise

LEAST_ROWS = 2  # of each rank: BatchNorm needs two; a smaller batch is not shared out


class BackboneSharing:
    """Makes the backbones of a method share their batches out, inside of `active`."""

    def __init__(self, ranks: Ranks, method: nn.Module, *, sync_batchnorm: bool) -> None:
        self.ranks, self.method, self.sync_batchnorm = ranks, method, sync_batchnorm
        self.backbones = backbones_of(method)
        self._active, self._inside = False, False
        self._entered: dict[tuple[int, ...], tuple[tuple[Tensor, ...], dict[str, Tensor]]] = {}
        for backbone in self.backbones.values():
            backbone.forward = self._shared(backbone, backbone.forward)
            if sync_batchnorm:
                synchronise(backbone)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Inside, a call of a backbone runs on this rank's rows and returns the features of all."""
        self._active = True
        try:
            yield
        finally:
            self._active = False
            self._entered.clear()

    @torch.no_grad()
    def merge_step(self) -> None:
        """After the backward pass: what each rank computed for itself becomes the same in all.

        The gradients of backbones are complete already. Those of the rest were computed in every rank from the same
        features: their mean keeps ranks equal where a device does not repeat its rounding. Without synchronised
        BatchNorm the running statistics of a backbone are the mean of those of all ranks.
        """
        shared = {id(p) for backbone in self.backbones.values() for p in backbone.parameters()}
        rest = [p.grad for p in self.method.parameters() if p.grad is not None and id(p) not in shared]
        statistics = [b for module in self.backbones.values() for b in module.buffers() if b.is_floating_point()]
        self.ranks.average_([*rest, *(() if self.sync_batchnorm else statistics)])

    def agree(self) -> None:
        """Give every rank the buffers of the first, before they are saved or used for predictions."""
        self.ranks.copy_from_first_([b for b in self.method.buffers() if b.is_floating_point()])

    def _shared(self, backbone: nn.Module, forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def shared_forward(x: Tensor) -> Tensor:
            if not self._active or self._inside or len(x) < LEAST_ROWS * self.ranks.world:
                return forward(x)
            mine = _scattered(self.ranks, x)
            self._inside = True
            try:
                with sharing(RowShare(self.ranks, len(x))):
                    features: Tensor = functional_call(backbone, self._local(backbone), (mine,))
            finally:
                self._inside = False
            return _gathered(self.ranks, features, len(x))

        return shared_forward

    def _local(self, backbone: nn.Module) -> dict[str, Tensor]:
        """The parameters that the backbone has now (theta or theta'), entered once for all its calls in a step."""
        if not torch.is_grad_enabled():
            return {}
        named = {name: p for name, p in backbone.named_parameters() if p.requires_grad}
        if not named:
            return {}
        key = tuple(id(p) for p in named.values())
        if key not in self._entered:  # it keeps the originals, so that no other tensor can get their ids
            entered = dict(zip(named, _Entered.apply(self.ranks, *named.values()), strict=True))  # type: ignore[no-untyped-call]
            self._entered[key] = tuple(named.values()), entered
        return self._entered[key][1]


def _scattered(ranks: Ranks, x: Tensor) -> Tensor:
    if x.requires_grad and torch.is_grad_enabled():
        return _Scattered.apply(ranks, x)  # type: ignore[no-any-return, no-untyped-call]
    return x[ranks.share(len(x))]


def _gathered(ranks: Ranks, rows: Tensor, count: int) -> Tensor:
    if torch.is_grad_enabled():
        return _Gathered.apply(ranks, count, rows)  # type: ignore[no-any-return, no-untyped-call]
    return ranks.gathered(rows, count)


class _Entered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.ranks = ranks
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return None, *_Summed.apply(ctx.ranks, *gradients)  # type: ignore[no-untyped-call]


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.ranks = ranks
        return tuple(ranks.sums(tensors))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return None, *_Entered.apply(ctx.ranks, *gradients)  # type: ignore[no-untyped-call]


class _Scattered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, x: Tensor) -> Tensor:
        ctx.ranks, ctx.count = ranks, len(x)
        return x[ranks.share(len(x))].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return None, _Gathered.apply(ctx.ranks, ctx.count, *gradients)  # type: ignore[no-untyped-call]


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, count: int, rows: Tensor) -> Tensor:
        ctx.ranks = ranks
        return ranks.gathered(rows, count)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return None, None, _Scattered.apply(ctx.ranks, *gradients)  # type: ignore[no-untyped-call]
