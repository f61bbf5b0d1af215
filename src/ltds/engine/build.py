"""From settings to a method: the one place that builds it, for training and for loading a trained model."""

from __future__ import annotations

import torch

from ltds.core.rng import reseed_global
from ltds.core.task import Task
from ltds.engine.config import RunConfig
from ltds.methods.base import Method
from ltds.methods.problem import Problem
from ltds.nn.backbones import build_backbone, feature_dim_of
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
    method = config.method_entry.method(config.method, problem)
    method.to(device or torch.device("cpu"))
    if not method.second_order:  # convolutions follow the layout of their weights: 0.67 to 0.9 of the time on a CPU
        method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return method
