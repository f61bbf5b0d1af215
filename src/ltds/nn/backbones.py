"""Backbones by name or by "package.module:Thing", and weights from public files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.errors import CheckpointError, ConfigError
from ltds.core.registry import find_or_import
from ltds.core.tensors import read_tensors
from ltds.nn.adapter import ResidualAdapter
from ltds.nn.efficientnet import VARIANTS, EfficientNetLite, imagenet_weights
from ltds.nn.fixed_batchnorm import fix_statistics
from ltds.nn.hugging_face import build_hugging_face, read_architecture
from ltds.nn.libraries import LibraryNetwork, build_timm, build_torchvision, library_of
from ltds.nn.public_weights import no_packaged_weights
from ltds.nn.resnet import BasicBlock, Bottleneck, ResNet, ResNetStem
from ltds.nn.small import TinyNet


class BackboneSettings(Settings):
    """The network that maps images, or precomputed features, to features."""

    name: str = Field(
        "resnet10",
        description="tiny, resnet10 to 50, efficientnet-lite0 to 2, timm:NAME, torchvision:NAME, hf:FOLDER, "
        "adapter (on features) or 'package.module:Thing'",
    )
    stem: ResNetStem = Field("imagenet", description="ResNets: first layers, for 224, 64 or 32 pixels")
    # Below 8 channels, torch's channels_last convolutions have corrupted memory on a CPU.
    width: int = Field(64, ge=8, description="ResNets: channels of the first stage, 8 or more")
    adapter_width: PositiveInt = Field(256, description="adapter: hidden units")
    weights: str = Field(
        "", description="file of weights, 'imagenet' for efficientnet-lite, or '' for random ones (hf: its folder's)"
    )
    architecture: str = Field("", description="hf: the network's config.json; read automatically from its folder")
    frozen: int = Field(
        0,
        ge=0,
        le=4,
        description="ResNets, efficientnet-lite: first stages (1 to 4) that do not learn, computed once",
    )
    batchnorm: Literal["train", "fixed"] = Field(
        "train", description="train: statistics of the batch; fixed: those that the pretrained network came with"
    )

    @model_validator(mode="before")
    @classmethod
    def _read_folder(cls, data: Any) -> Any:
        """A run keeps what its network is, so that its model can be built without the folder."""
        name = data.get("name") if isinstance(data, dict) else None
        if not isinstance(name, str) or library_of(name) != "hf" or data.get("architecture"):
            return data
        folder = Path(name.partition(":")[2]).resolve()
        return {**data, "name": f"hf:{folder}", "architecture": read_architecture(folder)}


ADAPTER = "adapter"

BACKBONES: dict[str, Callable[[BackboneSettings], nn.Module]] = {
    "tiny": lambda s: TinyNet(),
    "resnet10": lambda s: ResNet(BasicBlock, (1, 1, 1, 1), stem=s.stem, width=s.width),
    "resnet18": lambda s: ResNet(BasicBlock, (2, 2, 2, 2), stem=s.stem, width=s.width),
    "resnet34": lambda s: ResNet(BasicBlock, (3, 4, 6, 3), stem=s.stem, width=s.width),
    "resnet50": lambda s: ResNet(Bottleneck, (3, 4, 6, 3), stem=s.stem, width=s.width),
    **{name: lambda s: EfficientNetLite(s.name) for name in VARIANTS},
}


def build_backbone(settings: BackboneSettings, input_dim: int | None = None, *, pretrained: bool = True) -> nn.Module:
    """The network that the settings name, with the weights that they name.

    "package.module:Thing" is called without arguments and must return a module from images to features (N,D). If it
    has a parameter `pretrained`, it is called with `pretrained=False` for a network whose weights are loaded next.
    `input_dim`: the length of precomputed features, where they take the place of images. `pretrained=False` leaves the
    weights random: for a network whose weights are loaded next.
    """
    _refuse_unused(settings)
    _check_inputs(settings, input_dim)
    if settings.name == ADAPTER and input_dim is not None:
        return ResidualAdapter(input_dim, settings.adapter_width)
    backbone = _made(settings, pretrained)
    if not isinstance(backbone, nn.Module):
        raise ConfigError(
            f"Expected backbone '{settings.name}' to be a torch.nn.Module, but got a {type(backbone).__name__}. "
            "Name a class or a function that returns a module."
        )
    if pretrained and settings.weights:
        _load_named_weights(backbone, settings)
    if settings.batchnorm == "fixed" and not fix_statistics(backbone):
        raise ConfigError(
            f"Expected a backbone with BatchNorm for backbone.batchnorm=fixed, but '{settings.name}' has none. "
            "Leave it out.",
            settings=["backbone.batchnorm"],
        )
    return backbone


def has_random_weights(settings: BackboneSettings) -> bool:
    """Whether the network starts untrained. One of a user's, or from a folder, may bring its weights."""
    known = settings.name in BACKBONES or library_of(settings.name) in ("timm", "torchvision")
    return known and not settings.weights


def pretrained_folder(settings: BackboneSettings) -> Path | None:
    """The folder that the network takes its weights from: that of hf:FOLDER, unless other weights are named."""
    if library_of(settings.name) != "hf" or settings.weights:
        return None
    return Path(settings.name.partition(":")[2])


def least_numbers(settings: BackboneSettings, input_dim: int | None = None, stages: int = 4) -> int:
    """How many numbers the weights have at least, of the first stages or of all; 0 where that is not known.

    It takes no memory: a network from a file is compared with the file's weights before it is built.
    """
    if settings.name == ADAPTER and input_dim is not None:
        return 2 * input_dim * settings.adapter_width
    if _is_own_resnet(settings.name):
        return 9 * (settings.width << (stages - 1)) ** 2  # a 3x3 convolution of the last of these stages
    return 0


def _is_own_resnet(name: str) -> bool:
    """Whether it is one of ltds; "resnet20:cifar" is a user's."""
    return name in BACKBONES and name.startswith("resnet")


def _made(settings: BackboneSettings, pretrained: bool) -> object:
    """The network with random weights; one from a folder with those of the folder."""
    library, name = library_of(settings.name), settings.name.partition(":")[2]
    if library == "timm":
        return build_timm(name)
    if library == "torchvision":
        return build_torchvision(name)
    if library == "hf":
        return build_hugging_face(settings.architecture, pretrained_folder(settings) if pretrained else None)
    make: Callable[..., object] = find_or_import("backbone", settings.name, BACKBONES)
    return make(settings) if settings.name in BACKBONES else _made_by_user(settings.name, make, pretrained)


def _load_named_weights(backbone: nn.Module, settings: BackboneSettings) -> None:
    if settings.weights == "imagenet" and isinstance(backbone, EfficientNetLite):
        load_weights(backbone.layers, imagenet_weights(settings.name))
    elif settings.weights == "imagenet" and not Path("imagenet").exists():
        raise no_packaged_weights(settings.name)
    elif isinstance(backbone, LibraryNetwork):
        load_weights(backbone.layers, Path(settings.weights), backbone.ignored)
    else:
        load_weights(backbone, Path(settings.weights))


def _made_by_user(name: str, make: Callable[..., object], pretrained: bool) -> object:
    """What the user's function makes; one with a parameter `pretrained` is told where its weights are not needed."""
    try:
        spared = not pretrained and "pretrained" in inspect.signature(make).parameters
        return make(pretrained=False) if spared else make()
    except Exception as error:  # the user's code may fail in any way
        raise ConfigError(
            f"Expected '{name}' to make a backbone when called without arguments, but got {type(error).__name__}: "
            f"{error}. Name a function without arguments that returns the module."
        ) from error


def _check_inputs(settings: BackboneSettings, input_dim: int | None) -> None:
    """An adapter needs features, and a network for images cannot take them."""
    if settings.name == ADAPTER and input_dim is None:
        raise ConfigError(
            "Expected data.features with backbone.name=adapter, which works on precomputed features, but got none. "
            "Name a file of features, or another backbone."
        )
    if input_dim is not None and (settings.name in BACKBONES or library_of(settings.name)):
        raise ConfigError(
            f"Expected a backbone for features, but '{settings.name}' takes images. Use backbone.name=adapter."
        )


def load_weights(backbone: nn.Module, file: Path, ignored: tuple[str, ...] = ("fc.", "_fc.")) -> None:
    """Load a state dict with the backbone's key names; entries of a classifier, which start with `ignored`, are not.

    Files are read as tensors only (safetensors, or torch's weights-only mode): they cannot execute code.
    """
    state = {key: value for key, value in _read_tensors(file).items() if not key.startswith(ignored)}
    wanted = backbone.state_dict()
    missing = sorted(k for k in wanted.keys() - state.keys() if not k.endswith("num_batches_tracked"))
    unknown = sorted(state.keys() - wanted.keys())
    shapes = sorted(k for k in wanted.keys() & state.keys() if wanted[k].shape != state[k].shape)
    if missing or unknown or shapes:
        raise CheckpointError(
            f"Expected '{file}' to fit the backbone, but got {len(missing)} missing entries {missing[:3]}, "
            f"{len(unknown)} unknown ones {unknown[:3]} and {len(shapes)} of another shape {shapes[:3]}. "
            "Check backbone.name, backbone.width and backbone.stem (public ResNet files have stem 'imagenet')."
        )
    backbone.load_state_dict(state, strict=False)


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        state = read_tensors(file)
    except Exception as error:  # each format raises other errors; all mean the same to the user
        raise CheckpointError(
            f"Expected '{file}' to be a file of weights (.safetensors, or .pth with tensors only), but got: {error}"
        ) from error
    state = state.get("state_dict", state) if isinstance(state, dict) else state
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise CheckpointError(f"Expected '{file}' to hold a dict of tensors, but got a {type(state).__name__}.")
    return state


def _refuse_unused(settings: BackboneSettings) -> None:
    """Settings that belong to another kind of network have no effect."""
    owners = {"stem": "the ResNets", "width": "the ResNets", "adapter_width": "the adapter"}
    kind = "the ResNets" if _is_own_resnet(settings.name) else "the adapter" if settings.name == ADAPTER else ""
    defaults = BackboneSettings()
    for name, owner in owners.items():
        if owner != kind and getattr(settings, name) != getattr(defaults, name):
            raise ConfigError(
                f"Expected only settings that backbone '{settings.name}' uses, but got backbone.{name}, which only "
                f"{owner} have. Leave it out, or choose another backbone.name."
            )
    if settings.batchnorm == "fixed" and kind == "the adapter":
        raise ConfigError("Expected no backbone.batchnorm with backbone.name=adapter, which has none. Leave it out.")
    if settings.batchnorm == "fixed" and has_random_weights(settings):
        raise ConfigError(
            f"Expected pretrained weights for backbone.batchnorm=fixed, but '{settings.name}' has random ones, whose "
            "statistics say nothing. Name backbone.weights, or leave it out.",
            settings=["backbone.batchnorm", "backbone.weights"],
        )
    if settings.architecture and library_of(settings.name) != "hf":
        raise ConfigError(
            f"Expected backbone.architecture only with backbone.name=hf:FOLDER, but got '{settings.name}'. "
            "Leave it out."
        )
    if kind == "the adapter" and settings.weights:
        raise ConfigError("Expected no backbone.weights with backbone.name=adapter, but got a file. Leave it out.")
