"""From settings to a method: the one place that builds it, for training and for loading a trained model."""

from __future__ import annotations

from pathlib import Path
from traceback import FrameSummary, extract_tb

import torch
from torch import nn

from ltds.core.devices import to_layout
from ltds.core.errors import ConfigError, LtdsError, expected
from ltds.core.rng import reseed_global
from ltds.core.task import Task
from ltds.engine.config import RunConfig
from ltds.engine.fixed_state import require_storable_state
from ltds.methods.base import Method
from ltds.methods.entry import OUTSIDE
from ltds.methods.problem import Problem
from ltds.nn.backbones import build_backbone
from ltds.nn.feature_dim import feature_dim_of
from ltds.nn.stages import split_backbone
from ltds.semantics.embeddings import ClassEmbeddings


def build_method(
    config: RunConfig,
    task: Task,
    embeddings: ClassEmbeddings | None,
    device: torch.device | None = None,
    *,
    input_dim: int | None = None,
    pretrained: bool = True,
) -> Method:
    """The method with its first weights, a pure function of the settings, the task and the class embeddings.

    With frozen stages the method holds the later ones only: its inputs are what the frozen ones computed.
    `input_dim`: the length of precomputed features, where they take the place of images.
    `pretrained=False` draws the backbone's weights at random although the settings name a file: for a method whose
    trained weights are loaded next.
    """
    reseed_global(config.run.seed, "init")
    backbone = build_backbone(config.backbone, input_dim, pretrained=pretrained)
    if config.backbone.frozen:
        _, backbone = split_backbone(backbone, config.backbone.frozen)
    feature_dim = feature_dim_of(backbone, config.data.size, input_dim)
    problem = Problem(task=task, embeddings=embeddings, backbone=backbone, feature_dim=feature_dim)
    method = _built(config, problem)
    require_storable_state(method)
    device = device or torch.device("cpu")
    method.to(device)
    if not method.second_order:
        to_layout(method, device)
    return method


def _built(config: RunConfig, problem: Problem) -> Method:
    """The method of the settings; what goes wrong in a class of the user's is said with the class and the line."""
    entry = config.method_entry
    if entry.group != OUTSIDE:
        return entry.method(config.method, problem)
    try:
        method = entry.method(config.method, problem)
    except LtdsError:
        raise
    except Exception as error:  # the user's code may fail in any way
        line = next(f"{f.filename}, line {f.lineno}" for f in reversed(extract_tb(error.__traceback__)) if _is_own(f))
        remedy = "Correct its __init__. It must call super().__init__(config, problem) before it sets anything."
        got = f"{type(error).__name__}: {error} ({line})"
        raise ConfigError(expected(f"'{entry.name}'", "built as Class(config, problem)", got, remedy)) from error
    if not isinstance(getattr(method, "backbone", None), nn.Module):
        remedy = "Call super().__init__(config, problem) in its __init__, or set self.backbone = problem.backbone."
        raise ConfigError(expected(f"'{entry.name}'", "a module with a network 'backbone'", "none", remedy))
    return method


def _is_own(frame: FrameSummary) -> bool:
    """Whether a line is not inside torch, where most mistakes are only noticed."""
    return Path(nn.__file__).parents[1] not in Path(frame.filename).parents
