"""Networks of the same shape, one for each domain."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class DomainNetwork(nn.Module):
    """A domain's own backbone f and classifier h: h(f(x)) are its logits (N,C)."""

    def __init__(self, backbone: nn.Module, classifier: nn.Linear) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = classifier

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.backbone(images))
        return logits


def new_domain_network(backbone: nn.Module, classifier: nn.Linear) -> DomainNetwork:
    """A network of the shape of this pair: a fresh copy of the backbone, a classifier with weights of its own."""
    return DomainNetwork(reinitialised_copy(backbone), nn.Linear(classifier.in_features, classifier.out_features))


def reinitialised_copy(module: nn.Module) -> nn.Module:
    """A copy with weights drawn anew (from the global RNG) by the law of the module's own initialisation.

    Reading: weights that somebody gave are kept, all copies then begin alike, as in the originals, where each network
    begins from the same ImageNet weights. So a module is copied as it is where it was trained before, which moved
    running statistics tell, and where it does not say how to draw its weights: to reset the layers of a user's network
    one by one could undo a training of which nothing is known here. It says so with a method `reset_parameters`.
    """
    twin = copy.deepcopy(module)
    draw = getattr(twin, "reset_parameters", None)
    if _was_trained(twin):
        return twin
    if callable(draw):
        draw()
    return twin


def _was_trained(module: nn.Module) -> bool:
    """Whether a BatchNorm in it has seen images: its running mean is not 0, or its running variance not 1."""
    for layer in module.modules():
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None and layer.running_var is not None:
            start = torch.zeros_like(layer.running_mean), torch.ones_like(layer.running_var)
            if not (torch.equal(layer.running_mean, start[0]) and torch.equal(layer.running_var, start[1])):
                return True
    return False
