"""Styles: ways to redraw an image, by name. Classical ones need no weights; the others need a file of weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ltds.core.errors import ConfigError, expected
from ltds.core.registry import find
from ltds.data.styles import cartoongan, classical, cyclegan

Style = Callable[[Tensor], Tensor]
"""(N,3,h,w) RGB in [0,1], of any size, to the same."""


@dataclass(frozen=True)
class Filter:
    """A style that needs no weights. Raise `version` when its results change: older files then no longer match."""

    apply: Style
    version: int = 1


@dataclass(frozen=True)
class Learned:
    """A style whose generator is loaded from a file; `origin` says where to get the file."""

    load: Callable[[Path, torch.device], Style]
    origin: str
    version: int = 1


STYLES: dict[str, Filter | Learned] = {
    "hayao": Learned(cartoongan.load, cartoongan.ORIGIN),
    "shinkai": Learned(cartoongan.load, cartoongan.ORIGIN),
    "vangogh": Learned(cyclegan.load, cyclegan.ORIGIN),
    "ukiyoe": Learned(cyclegan.load, cyclegan.ORIGIN),
    "classical:cartoon": Filter(classical.cartoon),
    "classical:pencil": Filter(classical.pencil),
    "classical:oil": Filter(classical.oil),
    "classical:poster": Filter(classical.poster),
    "classical:watercolour": Filter(classical.watercolour),
    "classical:woodcut": Filter(classical.woodcut),
}


def load_style(name: str, weights: Path | None, device: torch.device) -> Style:
    """The style of this name, its generator on the device."""
    style = find("style", name, STYLES)
    if isinstance(style, Filter):
        if weights is not None:
            remedy = "Give no weights for it."
            raise ConfigError(expected(f"the style '{name}'", "given no weights", f"'{weights}'", remedy))
        return style.apply
    if weights is None:
        remedy = f"Give the file as argument 'weights'; it comes from {style.origin}."
        raise ConfigError(expected(f"the style '{name}'", "given its weights", "none", remedy))
    return style.load(weights, device)
