"""Logit adjustment by class priors (Menon et al., ICLR 2021): in the loss, or after training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import torch
from pydantic import Field, PositiveFloat, model_validator
from torch import Tensor

from ltds.core.config import PositiveFraction, Settings, refuse_idle
from ltds.losses.calibrated import ShiftedCrossEntropy
from ltds.losses.classification import CountsNeeded, CountsTable, as_counts

ZeroCount = Literal["exclude", "one", "blend"]
CountsSource = Literal["domain", "pooled"]


def smoothed_counts(counts: Tensor, zero_count: ZeroCount, blend: float) -> Tensor:
    """(K,C) counts n_c^d that say what a class without images in a domain weighs there.

    "exclude": nothing. "one": one image. "blend": n~_c^d = (1-k) n_c^d + k N_d n_c / N, as a domain of N_d images
    would have if a share k of them came from the pool of all domains; a class that no domain has keeps 0.
    """
    if zero_count == "one":
        return counts.clamp(min=1)
    if zero_count == "blend":
        sizes, pooled = counts.sum(dim=1, keepdim=True), counts.sum(dim=0)
        return (1 - blend) * counts + blend * sizes * pooled / pooled.sum()
    return counts


def logit_adjustment(counts: Tensor, tau: float) -> Tensor:
    """tau log n, of the shape of `counts` (..., C): 0 for tau = 0, even where n = 0; -inf there otherwise.

    Counts work as well as priors: tau log N is the same for every class.
    """
    return tau * torch.log(counts) if tau else torch.zeros_like(counts)


def adjusted_after_training(logits: Tensor, counts: Tensor, tau: float) -> Tensor:
    """(N,C) z - tau log pi of a model that was trained with plain cross-entropy: logits (N,C), pooled counts (C,).

    A class without images has no prior: its logit stays unchanged.
    """
    prior = counts / counts.sum()
    return logits - tau * torch.where(counts > 0, prior, 1.0).log()


class LogitAdjustedLoss(ShiftedCrossEntropy):
    """Cross-entropy of z + tau log n, with the counts of the sample's domain or pooled over the sources."""

    class Config(Settings):
        tau: PositiveFloat = Field(1.0, description="factor on the log counts that are added to the logits")
        counts: CountsSource = Field("domain", description="counts of the sample's domain, or pooled")
        zero_count: ZeroCount = Field("exclude", description="weight of a class without images in a domain")
        blend: PositiveFraction = Field(0.1, description="share of pooled counts for zero_count=blend")

        @model_validator(mode="after")
        def _no_setting_without_effect(self) -> Self:
            if self.counts == "pooled" and self.zero_count == "blend":
                raise ValueError("zero_count=blend mixes a domain's counts with the pool: it needs counts=domain")
            if self.zero_count != "blend":
                refuse_idle(self, ["blend"], "without zero_count=blend")
            return self

    def __init__(
        self,
        domain_counts: CountsTable,
        *,
        tau: float = 1.0,
        counts: CountsSource = "domain",
        zero_count: ZeroCount = "exclude",
        blend: float = 0.1,
    ) -> None:
        table = as_counts(domain_counts)
        chosen = table if counts == "domain" else table.sum(dim=0).expand_as(table)
        super().__init__(logit_adjustment(smoothed_counts(chosen, zero_count, blend), tau))

    @classmethod
    def counts_needed(cls, settings: Mapping[str, Any]) -> CountsNeeded:
        return "pooled" if settings.get("counts") == "pooled" else "domain"
