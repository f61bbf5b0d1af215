"""Backbones translated by torch.compile, where the settings ask for it."""

from __future__ import annotations

from ltds.core.errors import ConfigError
from ltds.core.ranks import Ranks
from ltds.methods.base import Method
from ltds.nn.networks import backbones_of


def compile_backbones(method: Method, ranks: Ranks, backend: str = "inductor") -> None:
    """Have torch translate each backbone at its first call; names and values of weights stay as they are."""
    if not ranks.alone:
        raise ConfigError(
            f"Expected run.compile only in a run of one rank, but got {ranks.world} ranks, between which a compiled "
            "network cannot be shared out. Use run.ranks=1, or leave it out.",
            settings=["run.ranks=1"],
        )
    if method.second_order:
        raise ConfigError(
            "Expected run.compile with a method of first order, but got one that differentiates a gradient, which "
            "compiled networks do not allow. Leave run.compile out, or set method.gradient_order=first, where the "
            "method has this setting.",
            settings=["run.compile=false"],
        )
    for backbone in backbones_of(method).values():
        backbone.compile(backend=backend)
