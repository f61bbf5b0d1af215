"""Running means of features per domain and class, and their projection to the semantic space, without gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.core.devices import to_device
from ltds.core.host_copy import HostCopy
from ltds.stats.statistics import Statistics

PrototypeStart = Literal["first_visit", "zero"]


@dataclass(frozen=True)
class BlendedPrototypes:
    """The prototypes of the T domains of a batch, with that batch blended in.

    domains (T,), ascending indices into `Prototypes.value`; value v (T,C,D), where rows of the batch's classes are in
    the graph and the rest are constants; present M (T,C). slots (U,) and rows (U,D) are what `commit` writes: flat
    (domain, class) indices and new values. domains, present and slots are on the CPU: they decide the sizes of tensors,
    which the host must know.
    """

    domains: Tensor
    value: Tensor
    present: Tensor
    slots: Tensor
    rows: Tensor

    @property
    def projected(self) -> Tensor:
        """(T,C) the prototypes that are projected: a domain with fewer than two has no batch statistics."""
        return self.present & (self.present.sum(1, keepdim=True) >= 2)

    def detach(self) -> BlendedPrototypes:
        """The same prototypes outside any graph, for meta-test."""
        return replace(self, value=self.value.detach(), rows=self.rows.detach())


class Prototypes(Statistics):
    """Buffers value (K,C,D) and present (K,C). Only `commit` changes them.

    `shared` keeps one prototype per class over all domains (the paper's ablation k): K = 1. `epsilon` is added to the
    count of each mean, `start="zero"` blends the first batch with zeros (both: the released code).
    """

    value: Tensor
    present: Tensor

    def __init__(
        self,
        domains: int,
        classes: int,
        feature_dim: int,
        *,
        momentum: float = 0.5,
        start: PrototypeStart = "first_visit",
        in_graph: bool = True,
        epsilon: float = 0.0,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.momentum, self.start, self.in_graph, self.epsilon, self.shared = momentum, start, in_graph, epsilon, shared
        kept = 1 if shared else domains
        self.register_buffer("value", torch.zeros(kept, classes, feature_dim))
        self.register_buffer("present", torch.zeros(kept, classes, dtype=torch.bool))
        self._host_present = HostCopy()

    def blended(self, features: Tensor, labels: Tensor, domains: Tensor) -> BlendedPrototypes:
        """The prototypes with this batch blended in, not yet stored: features (N,D), labels (N,), domains (N,).

        Supplement, "Online Estimation": v_c <- .5 mean_{y_i = c} f(x_i) + .5 v_c (old) for each class c of the batch.
        Reading: the first time that a class comes its mean is stored, because there is no old value.
        Give labels and domains on the CPU: for those on a GPU the host has to wait.
        """
        C, device = self.present.shape[1], self.value.device
        labels, domains = labels.cpu(), domains.cpu()
        if self.shared:
            domains = torch.zeros_like(domains)
        visited = domains.unique()  # type: ignore[no-untyped-call]
        slots, row = (domains * C + labels).unique(return_inverse=True)  # type: ignore[no-untyped-call]
        local = torch.searchsorted(visited, slots // C) * C + slots % C
        rows = self._blended_rows(features, to_device(slots, device), to_device(row, device))
        value = self.value[to_device(visited, device)].flatten(0, 1).index_copy(0, to_device(local, device), rows)
        present = self._host_present.of(self.present)[visited].flatten().index_fill(0, local, True)
        shape = (len(visited), C)
        return BlendedPrototypes(visited, value.view(*shape, -1), present.view(shape), slots, rows)

    def _blended_rows(self, features: Tensor, slots: Tensor, row: Tensor) -> Tensor:
        """(U,D) the new prototypes at `slots` (U,): sample i belongs to the row[i]-th of them."""
        features = (features if self.in_graph else features.detach()).to(self.value.dtype)
        sums = features.new_zeros(len(slots), features.shape[1]).index_add(0, row, features)
        counts = features.new_zeros(len(slots)).index_add(0, row, features.new_ones(len(row)))
        mean = sums / (counts + self.epsilon)[:, None]
        old = self.value.flatten(0, 1)[slots]
        rows = torch.lerp(mean, old, self.momentum)
        if self.start == "first_visit":
            rows = torch.where(self.present.flatten()[slots, None], rows, mean)
        return rows

    @torch.no_grad()
    def commit(self, blended: BlendedPrototypes) -> None:
        """Store what the batch changed."""
        host_present, slots = self._host_present.of(self.present), to_device(blended.slots, self.value.device)
        self.value.flatten(0, 1)[slots] = blended.rows.to(self.value.dtype)
        self.present.flatten()[slots] = True
        host_present.flatten()[blended.slots] = True
        self._host_present.keep(self.present, host_present)


def completed_prototypes(
    prototypes: BlendedPrototypes, semantics: Tensor, to_semantic: Callable[[Tensor], Tensor]
) -> Tensor:
    """(T,C,S) s^: unit e(v) where a prototype is present, s elsewhere: semantics s (C,S), unit rows.

    s^n = e(v^n) . M^n + s . (1 - M^n). e runs once per domain, in order, over the present rows only, so that its
    BatchNorm never sees a filled row. A domain with fewer than two prototypes is all s (see `projected`).
    """
    projected = prototypes.projected.cpu()
    return torch.stack(
        [_filled(v, m, semantics, to_semantic) for v, m in zip(prototypes.value, projected, strict=True)]
    )


def _filled(value: Tensor, projected: Tensor, semantics: Tensor, to_semantic: Callable[[Tensor], Tensor]) -> Tensor:
    rows = projected.nonzero().squeeze(1)
    if len(rows) == 0:
        return semantics
    if len(rows) == len(projected):  # no copy of a full table
        return F.normalize(to_semantic(value), dim=-1).to(semantics.dtype)
    rows = to_device(rows, value.device)
    unit = F.normalize(to_semantic(value[rows]), dim=-1)
    return semantics.index_copy(0, rows, unit.to(semantics.dtype))
