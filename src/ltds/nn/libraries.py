"""Networks of other libraries as backbones: timm:NAME, torchvision:NAME, hf:FOLDER. Imported only when named."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ltds.core.errors import ConfigError, did_you_mean
from ltds.core.pixels import IMAGENET_MEAN, IMAGENET_STD
from ltds.core.trust import LIBRARIES

NAME = re.compile(r"[A-Za-z0-9_.\-]+")


def library_of(name: str) -> str | None:
    """ "timm" of "timm:resnet18"; None for the name of another kind of backbone."""
    library, colon, _ = name.partition(":")
    return library if colon and library in LIBRARIES else None


class LibraryNetwork(nn.Module):
    """A network of a library without its classifier, on images normalised by ImageNet's mean and deviation.

    `mean` and `std` are those that it was trained with. `ignored`: how the names of its classifier's weights start,
    which files of weights contain, too.
    """

    scale: Tensor
    shift: Tensor

    def __init__(
        self, layers: nn.Module, mean: Sequence[float], std: Sequence[float], ignored: tuple[str, ...] = ()
    ) -> None:
        super().__init__()
        self.layers = layers
        self.ignored = ignored
        own_mean, own_std, trained_mean, trained_std = (
            torch.tensor([float(value) for value in values])[:, None, None]
            for values in (IMAGENET_MEAN, IMAGENET_STD, mean, std)
        )
        self.register_buffer("scale", own_std / trained_std, persistent=False)
        self.register_buffer("shift", (own_mean - trained_mean) / trained_std, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.layers(images * self.scale + self.shift)
        return features

    def reset_parameters(self) -> None:
        """Draw new weights from the layers' default distributions."""
        for module in self.layers.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()


def build_timm(name: str) -> LibraryNetwork:
    """timm's network of this name with random weights; it pools its output itself."""
    timm = imported("timm", f"timm:{name}")
    if not timm.is_model(_checked("timm", name).split(".")[0]):
        raise _unknown("timm", name, timm.list_models())
    layers = timm.create_model(name, pretrained=False, num_classes=0)
    config: dict[str, Any] = getattr(layers, "pretrained_cfg", None) or {}
    classifier = config.get("classifier") or ()
    ignored = (classifier,) if isinstance(classifier, str) else tuple(classifier)
    prefixes = tuple(f"{prefix}." for prefix in ignored)
    return LibraryNetwork(layers, config.get("mean", IMAGENET_MEAN), config.get("std", IMAGENET_STD), prefixes)


def build_torchvision(name: str) -> LibraryNetwork:
    """torchvision's network of this name with random weights, its last linear layer taken away."""
    models = imported("torchvision", f"torchvision:{name}").models
    if _checked("torchvision", name) not in models.list_models(module=models):
        raise _unknown("torchvision", name, models.list_models(module=models))
    layers = models.get_model(name, weights=None)
    linear = [path for path, module in layers.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise ConfigError(
            f"Expected torchvision's '{name}' to end in a linear layer, but it has none. Write a function that returns "
            "the network without its classifier, and name it as 'package.module:function'."
        )
    layers.set_submodule(linear[-1], nn.Identity())
    return LibraryNetwork(layers, IMAGENET_MEAN, IMAGENET_STD, (f"{linear[-1]}.",))


def imported(package: str, backbone: str) -> Any:
    """The package, or an error that says how to install it."""
    try:
        return importlib.import_module(package)
    except Exception as error:  # a package that does not fit the installed torch fails in any way
        raise ConfigError(
            f"Expected the package {package} for backbone '{backbone}', but importing it gave {type(error).__name__}: "
            f"{error}. Install it, in a version for the installed torch {torch.__version__}: pip install {package}"
        ) from error


def _checked(library: str, name: str) -> str:
    """The name, if it is one: "hf-hub:..." would be downloaded."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"Expected the name of a network of {library}, as in '{library}:resnet18', but got '{name}'.")
    return name


def _unknown(library: str, name: str, known: Sequence[str]) -> ConfigError:
    hint = did_you_mean(name, known).split("Choices:")[0]
    return ConfigError(f"Expected a network of {library}, but it has none that is called '{name}'. {hint}".rstrip())
