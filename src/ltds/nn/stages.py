"""A backbone in two parts: its first stages, which stay as they are, and the later ones, which learn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from ltds.core.errors import ConfigError


@runtime_checkable
class Divisible(Protocol):
    """A backbone that can be divided after each of its stages."""

    def split(self, stages: int) -> tuple[nn.Module, LaterStages]:
        """The layers up to the end of the first `stages` stages, and those after them; both share the weights."""
        ...


class LaterStages(nn.Sequential):
    """What follows the first stages of a backbone: their outputs to features (N,D), D = out_features.

    `frozen_stages`: how many come before.
    """

    frozen_stages: int = 0

    def __init__(self, layers: Mapping[str, nn.Module], stage_names: Sequence[str], out_features: int) -> None:
        super().__init__(OrderedDict(layers))
        self.out_features = out_features
        self._stage_names = tuple(stage_names)

    @property
    def stages(self) -> tuple[nn.Module, ...]:
        """The stages that are left, early to late."""
        return tuple(self.get_submodule(name) for name in self._stage_names)


class SpatialMean(nn.Module):
    """Feature maps (N,C,H,W) to their means (N,C)."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.mean(dim=(2, 3))


def split_layers(
    layers: Mapping[str, nn.Module], stage_ends: Sequence[str], stages: int, out_features: int
) -> tuple[nn.Module, LaterStages]:
    """`layers`, in the order of the forward pass, divided after the stage with this number, counted from 1.

    Layers without weights at the end (a mean over positions) go to the first part where nothing is left to learn.
    """
    names = list(layers)
    cut = names.index(stage_ends[stages - 1]) + 1
    if not any(True for name in names[cut:] for _ in layers[name].parameters()):
        cut = len(names)
    first = nn.Sequential(OrderedDict((name, layers[name]) for name in names[:cut]))
    return first, LaterStages({name: layers[name] for name in names[cut:]}, stage_ends[stages:], out_features)


def split_backbone(backbone: nn.Module, stages: int) -> tuple[nn.Module, LaterStages]:
    """The first stages, in evaluation mode and without gradients, and the later ones."""
    if not isinstance(backbone, Divisible):
        raise ConfigError(
            f"Expected a backbone that can be divided into stages (a ResNet, efficientnet-lite) with backbone.frozen="
            f"{stages}, but got a {type(backbone).__name__}. Choose another backbone.name, or set backbone.frozen=0."
        )
    first, later = backbone.split(stages)
    later.frozen_stages = stages
    return first.eval().requires_grad_(False), later
