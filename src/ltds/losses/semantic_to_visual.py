"""From the semantic space back to the visual one: the paper's L_S2Z, Eq. (5)."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.losses.class_sample import ClassSample
from ltds.losses.kernels.linear import linear_cross_entropy
from ltds.losses.semantic_alignment import Directions, weighted_contrast

CycleForm = Literal["s2s", "z2s"]


def semantic_to_visual_loss(
    visual: Tensor,
    weight: Tensor,
    bias: Tensor,
    cycled: Tensor,
    semantics: Tensor,
    *,
    margin: float,
    temperature: float,
    weights: tuple[float, float] = (1.0, 1.0),
    cycle: CycleForm = "s2s",
    fused: bool | None = None,
    sample: ClassSample | None = None,
) -> Tensor:
    """L_S2Z, a scalar, the mean over T domains: visual v^ = d(s^) (T,C,D), cycled e(v^) (T,C,S) of any length.

    Eq. (5): L_s2z(n) = mean_c CE(h(v^n_c), c) + L_s2s(u(e(v^n)), s), for the classifier h of weight (C,D) and bias (C,)
    and semantics s (C,S). Each class comes once, so there are no counts. `weights` scale the two terms (released code:
    .5, .5); `cycle="z2s"` leaves the intra-domain negatives out, as that code does. For `fused` see
    `semantic_alignment.py`; with `sample`, C is everywhere the number of its classes.
    """
    classes = torch.arange(visual.shape[1], device=visual.device)
    labels = classes.repeat(len(visual))
    classification = linear_cross_entropy(visual.flatten(0, 1), weight, bias, labels, fused=fused, sample=sample)
    directions = Directions.to_semantics(len(visual), intra=cycle == "s2s")
    unit = F.normalize(cycled, dim=-1)
    loop = weighted_contrast(unit, semantics, directions, margin, temperature, fused, sample=sample)
    return weights[0] * classification + weights[1] * loop
