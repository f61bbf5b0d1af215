"""MixStyle: feature maps that keep their content and take on a mixed style (Zhou et al., ICLR 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from torch import Tensor, nn

from ltds.core.config import Fraction, Settings, refuse_idle
from ltds.core.distributions import beta
from ltds.core.errors import ConfigError
from ltds.core.ranks import own_rows, rows_of_all

PartnerChoice = Literal["random", "crossdomain"]

EPSILON = 1e-6  # added to the variance, under the root


class MixStyleSettings(Settings):
    """Whether, where and how styles are mixed."""

    p: Fraction = Field(0.0, description="probability of mixing after a stage in a forward pass; 0: MixStyle is off")
    alpha: PositiveFloat = Field(0.1, description="mixing weights are drawn from Beta(alpha, alpha)")
    stages: tuple[PositiveInt, ...] = Field((1, 2, 3), description="stages of the network to mix after, from 1")
    mix: PartnerChoice = Field("random", description="partners from the whole batch, or from another domain")

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> MixStyleSettings:
        if not self.p:
            refuse_idle(self, ["alpha", "stages", "mix"], "without MixStyle (p=0)")
        if not self.stages or len(set(self.stages)) < len(self.stages):
            got = f"but was {self.stages}"
            raise ValueError(f"stages must be one or more stages without repetition, {got}: list each of them once")
        return self


def mix_styles(x: Tensor, partners: Tensor, share: Tensor) -> Tensor:
    """(N,C,H,W) maps x with a style that is l theirs and 1 - l their partners': partners (N,), share l (N,).

    (x - mu)/sigma (l sigma + (1-l) sigma_j) + l mu + (1-l) mu_j, with mu and sigma = sqrt(var + 1e-6)
    over the positions of each map and channel, the variance unbiased, both constants for the gradient. Where ranks
    share the batch out, x has the rows of this rank, and N are the rows of all.
    """
    mu = x.detach().mean(dim=(2, 3), keepdim=True)
    sigma = (x.detach().var(dim=(2, 3), keepdim=True) + EPSILON).sqrt()
    kept, others = own_rows(share).to(x)[:, None, None, None], own_rows(partners).to(x.device)
    mixed_mu = kept * mu + (1 - kept) * rows_of_all(mu)[others]
    mixed_sigma = kept * sigma + (1 - kept) * rows_of_all(sigma)[others]
    return (x - mu) / sigma * mixed_sigma + mixed_mu


def draw_partners(domains: Tensor, mix: PartnerChoice, generator: torch.Generator) -> Tensor:
    """(N,) the partner of each sample: a permutation of the batch, or samples of the next domain on a random ring.

    With two domains of equal size the ring is the original's "crossdomain": each half is permuted and swapped.
    """
    if mix == "random":
        return torch.randperm(len(domains), generator=generator).to(domains.device)
    by_domain = [(domains == d).nonzero().flatten() for d in torch.unique(domains)]
    ring = [by_domain[i] for i in torch.randperm(len(by_domain), generator=generator).tolist()]
    partners = torch.empty_like(domains)
    for samples, other in zip(ring, ring[1:] + ring[:1], strict=True):
        order = torch.randperm(len(other), generator=generator)
        partners[samples] = other[order[torch.arange(len(samples)) % len(other)].to(other.device)]
    return partners


def require_learning_stages(settings: MixStyleSettings, frozen: int) -> None:
    """Refuse stages whose outputs are computed once. By default those of the stages that learn are mixed."""
    fixed = [stage for stage in settings.stages if stage <= frozen]
    default = settings.stages == MixStyleSettings.model_fields["stages"].default
    if fixed and not (default and len(fixed) < len(settings.stages)):
        raise ConfigError(
            f"Expected method.mixstyle.stages to be stages that learn, from {frozen + 1} on with "
            f"backbone.frozen={frozen}, but got {list(settings.stages)}: the outputs of frozen stages are computed "
            "once and cannot be mixed. Name later stages, lower backbone.frozen, or set method.mixstyle.p=0."
        )


class MixStyle:
    """Mixes styles after some stages of a backbone, only in training mode and inside `mixing`.

    Stages are counted in the whole network, even if its first ones are frozen and not part of the backbone.
    """

    def __init__(self, settings: MixStyleSettings, backbone: nn.Module) -> None:
        self.settings = settings
        self.frozen = int(getattr(backbone, "frozen_stages", 0))
        stages = getattr(backbone, "stages", None)
        if stages is None:
            raise ConfigError(
                f"Expected a backbone with stages for MixStyle, but {type(backbone).__name__} has no `stages`. "
                "Choose a ResNet, or give yours a property `stages`: modules whose outputs are feature maps."
            )
        first, last = self.frozen + 1, self.frozen + len(stages)
        if max(settings.stages) > last:
            network = "the network that learn" if self.frozen else type(backbone).__name__
            raise ConfigError(
                f"Expected mixstyle.stages to be among {first} to {last}, the stages of {network}, "
                f"but got {settings.stages}. Set method.mixstyle.stages=[{first}], for example."
            )
        self.points: tuple[nn.Module, ...] = tuple(stages[i - first] for i in sorted(settings.stages) if i >= first)

    @contextmanager
    def mixing(self, domains: Tensor, generator: torch.Generator) -> Iterator[None]:
        """Forward passes inside mix the styles of a batch whose samples have these domains (N,), on the host.

        There partners are drawn, and a GPU does not make it wait.
        """
        require_learning_stages(self.settings, self.frozen)  # here, so that models of earlier runs can be loaded
        if not (domains != domains[0]).any():
            raise ConfigError(
                "Expected a batch of two domains or more for MixStyle, but all of its images are of one. "
                "Train on more source domains, or set method.mixstyle.p=0."
            )

        def mix(stage: nn.Module, _: Any, x: Tensor) -> Tensor:
            if not stage.training or torch.rand((), generator=generator) >= self.settings.p:
                return x
            if x.ndim != 4 or x.shape[2] * x.shape[3] < 2:
                raise ConfigError(
                    f"Expected feature maps of two positions or more for MixStyle, but a stage gave {tuple(x.shape)}. "
                    "Set method.mixstyle.stages to earlier stages, such as [1], or use larger images."
                )
            share = beta(self.settings.alpha, self.settings.alpha, (len(domains),), generator)
            return mix_styles(x, draw_partners(domains, self.settings.mix, generator), share)

        hooks = [point.register_forward_hook(mix) for point in self.points]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
