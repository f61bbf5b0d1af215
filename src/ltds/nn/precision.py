"""The precision in which backbones compute, while everything around them stays float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from torch import nn

if TYPE_CHECKING:
    from ltds.nn.autocast import BackboneAutocast

Precision = Literal["float32", "bfloat16"]
_ATTRIBUTE = "_backbone_autocast"


def compute_in(precision: Precision, method: nn.Module) -> None:
    """Let the backbones of a method compute in this precision from now on."""
    before: BackboneAutocast | None = getattr(method, _ATTRIBUTE, None)
    if precision == "bfloat16" and before is None:
        from ltds.nn.autocast import BackboneAutocast

        setattr(method, _ATTRIBUTE, BackboneAutocast(method))
    elif precision == "float32" and before is not None:
        before.remove()
        delattr(method, _ATTRIBUTE)
