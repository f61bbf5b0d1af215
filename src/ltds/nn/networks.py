"""Networks with the same layers, one for each domain."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class DomainNetwork(nn.Module):
    """The backbone f and classifier h of one domain: h(f(x)) are its logits (N,C)."""

    def __init__(self, backbone: nn.Module, classifier: nn.Linear) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = classifier

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.backbone(images))
        return logits


def new_domain_network(backbone: nn.Module, classifier: nn.Linear) -> DomainNetwork:
    """A network with the layers of this pair: a reinitialised copy of the backbone, and a new classifier."""
    return DomainNetwork(reinitialised_copy(backbone), nn.Linear(classifier.in_features, classifier.out_features))


def reinitialised_copy(module: nn.Module) -> nn.Module:
    """A copy with new random weights (from the global RNG), drawn by the module's `reset_parameters`.

    Reading: pretrained weights are kept, so that all copies start equal, as in the original methods, where each network
    starts from the same ImageNet weights. A module is therefore copied unchanged if it was trained before, which its
    running statistics show, or if it has no `reset_parameters`: resetting the layers of a user's network one by one
    could undo earlier training that is not visible here.
    """
    twin = copy.deepcopy(module)
    reset = getattr(twin, "reset_parameters", None)
    if callable(reset) and not _was_trained(twin):
        reset()
    return twin


def _was_trained(module: nn.Module) -> bool:
    """Whether one of its BatchNorms has seen images: its running mean is not 0, or its running variance is not 1."""
    for layer in module.modules():
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None and layer.running_var is not None:
            start = torch.zeros_like(layer.running_mean), torch.ones_like(layer.running_var)
            if not (torch.equal(layer.running_mean, start[0]) and torch.equal(layer.running_var, start[1])):
                return True
    return False


def backbones_of(method: nn.Module) -> dict[str, nn.Module]:
    """The modules called "backbone", however deep, by their full names; none inside of another."""
    found: dict[str, nn.Module] = {}
    for name, module in method.named_modules():
        parts = name.split(".")
        if parts[-1] == "backbone" and "backbone" not in parts[:-1]:
            found[name] = module
    return found
