"""MixStyle: feature maps that keep their content and take on a mixed style (Zhou et al., ICLR 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor, nn

from ltds.core.config import Fraction, Settings
from ltds.core.distributions import beta
from ltds.core.errors import ConfigError

EPSILON = 1e-6  # beside the variance, under the root


class MixStyleSettings(Settings):
    """`p`: the probability of mixing after a stage in a forward pass, 0 for never; `alpha` of Beta(alpha, alpha).

    `stages` count from 1; `mix`: partners from the whole batch ("random") or from another domain ("crossdomain").
    """

    p: Fraction = 0.0
    alpha: PositiveFloat = 0.1
    stages: tuple[PositiveInt, ...] = (1, 2, 3)
    mix: Literal["random", "crossdomain"] = "random"

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> MixStyleSettings:
        fields = type(self).model_fields
        changed = [name for name in fields if getattr(self, name) != fields[name].default]
        if not self.p and changed:
            raise ValueError(f"{changed[0]} has no effect without MixStyle: set p=0.5 beside it, or leave it out")
        if not self.stages or len(set(self.stages)) < len(self.stages):
            raise ValueError(f"stages must name one stage or more, each once, but was {self.stages}")
        return self


def mix_styles(x: Tensor, partners: Tensor, share: Tensor) -> Tensor:
    """(N,C,H,W) maps x with the style l of their own and 1 - l of their partners': partners (N,), share l (N,).

    METHODS 2.6: (x - mu)/sigma (l sigma + (1-l) sigma_j) + l mu + (1-l) mu_j, with mu and sigma = sqrt(var + 1e-6)
    over the places of each map and channel, the variance unbiased, both constants for the gradient.
    """
    mu = x.detach().mean(dim=(2, 3), keepdim=True)
    sigma = (x.detach().var(dim=(2, 3), keepdim=True) + EPSILON).sqrt()
    own = share.to(x)[:, None, None, None]
    mixed_mu = own * mu + (1 - own) * mu[partners]
    mixed_sigma = own * sigma + (1 - own) * sigma[partners]
    return (x - mu) / sigma * mixed_sigma + mixed_mu


def draw_partners(domains: Tensor, mix: Literal["random", "crossdomain"], generator: torch.Generator) -> Tensor:
    """(N,) the partner of each sample: a permutation of the batch, or samples of the next domain on a random ring.

    With two domains of equal size the ring is the original's "crossdomain": each half is permuted and swapped.
    """
    if mix == "random":
        return torch.randperm(len(domains), generator=generator).to(domains.device)
    places = [(domains == d).nonzero().flatten() for d in torch.unique(domains)]
    ring = [places[i] for i in torch.randperm(len(places), generator=generator).tolist()]
    partners = torch.empty_like(domains)
    for own, other in zip(ring, ring[1:] + ring[:1], strict=True):
        order = torch.randperm(len(other), generator=generator)
        partners[own] = other[order[torch.arange(len(own)) % len(other)].to(other.device)]
    return partners


class MixStyle:
    """Mixes styles after some stages of a backbone, while training and inside `mixing` only."""

    def __init__(self, settings: MixStyleSettings, backbone: nn.Module) -> None:
        self.settings = settings
        stages = getattr(backbone, "stages", None)
        if stages is None:
            raise ConfigError(
                f"Expected a backbone with stages for MixStyle, but {type(backbone).__name__} has no `stages`. "
                "Choose a ResNet, or give yours a property `stages`: modules whose outputs are feature maps."
            )
        if max(settings.stages) > len(stages):
            raise ConfigError(
                f"Expected mixstyle.stages to be among 1 to {len(stages)}, the stages of {type(backbone).__name__}, "
                f"but got {settings.stages}. Name others with --set method.mixstyle.stages=[1]."
            )
        self.points: tuple[nn.Module, ...] = tuple(stages[i - 1] for i in sorted(settings.stages))

    @contextmanager
    def mixing(self, domains: Tensor, generator: torch.Generator) -> Iterator[None]:
        """Forward passes inside mix the styles of a batch whose samples have these domains (N,)."""
        if not (domains != domains[0]).any():
            raise ConfigError(
                "Expected a batch of two domains or more for MixStyle, but all of its images are of one. "
                "Train on more source domains, or add --set method.mixstyle.p=0."
            )

        def mix(stage: nn.Module, _: Any, x: Tensor) -> Tensor:
            if not stage.training or torch.rand((), generator=generator) >= self.settings.p:
                return x
            if x.ndim != 4 or x.shape[2] * x.shape[3] < 2:
                raise ConfigError(
                    f"Expected feature maps of two places or more for MixStyle, but a stage gave {tuple(x.shape)}. "
                    "Name earlier stages with --set method.mixstyle.stages=[1], or use larger images."
                )
            share = beta(self.settings.alpha, self.settings.alpha, (len(x),), generator)
            return mix_styles(x, draw_partners(domains, self.settings.mix, generator), share)

        hooks = [point.register_forward_hook(mix) for point in self.points]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
