"""D, the length of a backbone's features; and whether a network from elsewhere returns features at all."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ltds.core.errors import ConfigError, expected

PACKAGE = "ltds"


def feature_dim_of(backbone: nn.Module, size: int, input_dim: int | None = None) -> int:
    """D: the backbone's `out_features`, or the length of what it returns for blank images, or vectors, of this size.

    A network from elsewhere is tried in any case, as it is used for evaluation and as it is used in training: it may
    return something else there. Its statistics and the random numbers of the run stay as they are.
    """
    declared = getattr(backbone, "out_features", None)
    if isinstance(declared, int) and type(backbone).__module__.partition(".")[0] == PACKAGE:
        return declared
    blank = torch.zeros((2, 3, size, size) if input_dim is None else (2, input_dim))
    was_training = backbone.training
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        dim = _tried(backbone.eval(), blank, "evaluation")
        kept = [(buffer, buffer.clone()) for buffer in backbone.buffers()]  # the first pass has made lazy ones
        trained = _tried(backbone.train(), blank, "training")
        for buffer, value in kept:
            buffer.copy_(value)
    backbone.train(was_training)
    declares = isinstance(declared, int)
    if trained != dim or (declares and declared != dim):
        rule = f"{declared}, as its out_features says" if declares else f"{dim} in both modes, as in evaluation"
        got = dim if trained == dim else f"{dim} in evaluation and {trained} in training"
        remedy = "Correct out_features, or leave it out." if declares else "Return the same features in training."
        raise ConfigError(expected("the length D of the backbone's features", rule, got, remedy))
    return dim


def _tried(backbone: nn.Module, blank: Tensor, mode: str) -> int:
    """The length of the features of blank inputs; raises unless they are features."""
    images = blank.ndim == 4
    inputs = f"{'images' if images else 'features'} (N,{','.join(str(side) for side in blank.shape[1:])})"
    try:
        features = backbone(blank)
    except Exception as error:  # the user's code may fail in any way
        got = f"{type(error).__name__}: {error}"
        remedy = "Change data.size, or the backbone." if images else "Change the backbone, or data.features."
        raise ConfigError(f"Expected the backbone to take {inputs} in {mode} mode, but got {got}. {remedy}") from error
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != len(blank):
        got = str(tuple(features.shape)) if isinstance(features, Tensor) else f"a {type(features).__name__}"
        raise ConfigError(
            f"Expected the backbone to map {inputs} to features (N,D) in {mode} mode, but got {got} for N=2. "
            "Remove its classifier and other outputs, then pool and flatten."
        )
    if features.dtype != blank.dtype:
        remedy = "End its forward with .float(); run.precision chooses what it computes in."
        raise ConfigError(expected("the backbone's features", str(blank.dtype), str(features.dtype), remedy))
    return features.shape[1]
