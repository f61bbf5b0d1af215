"""The distinct rows of T prototype tables that may share rows with the semantics s."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.core.devices import to_device


class DistinctRows:
    """N = P + C rows: the P projected rows of all domains, then the C rows of s. Rows copied from s come once.

    rows (N,S); classes (N,), the class of each row; member (N,T+1), which tables a row belongs to: a projected row to
    its domain, a row of s to s (the last column) and to each domain that copies it; position (T+1,C), where a class is
    among the rows of each domain and of s, -1 for nowhere.
    classes and position are on the CPU, and `projected` should be: it decides the sizes of tensors, and the host has to
    wait for one on a GPU.
    """

    def __init__(self, tables: Tensor, semantics: Tensor, projected: Tensor) -> None:
        self.T, self.C, _ = tables.shape
        projected = projected.cpu()
        domain, label = projected.nonzero(as_tuple=True)  # of the P projected rows
        self.P, self.has_copies = len(domain), len(domain) < projected.numel()
        every = torch.arange(self.C)
        self.classes = torch.cat([label, every])
        self.position = torch.full((self.T + 1, self.C), -1)
        self.position[domain, label] = torch.arange(self.P)
        self.position[-1] = every + self.P
        of_domains = F.one_hot(domain, self.T + 1).to(tables.dtype)
        member = torch.cat([of_domains, F.pad((~projected).T.to(tables.dtype), (0, 1), value=1.0)])
        self.domain, self.label, self.copied, self.member = (
            to_device(x, tables.device) for x in (domain, label, ~projected, member)
        )
        self.rows = torch.cat([tables[self.domain, self.label], semantics])

    def by_anchor(self, values: Tensor) -> Tensor:
        """(C,T,T+1) from values of the distinct rows (N,T+1)."""
        anchors = values[self.P :, None].repeat(1, self.T, 1)
        anchors[self.label, self.domain] = values[: self.P]
        return anchors

    def by_row(self, anchors: Tensor) -> Tensor:
        """(N,T+1) from values of the anchors (C,T,T+1): a row of s sums the values of its copies."""
        copies = (anchors * self.copied.T[..., None]).sum(1)
        return torch.cat([anchors[self.label, self.domain], copies])
