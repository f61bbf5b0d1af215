"""A vision network from a folder in Hugging Face's layout (config.json, model.safetensors), by transformers.

Nothing is downloaded and no code of the folder is run.
"""

from __future__ import annotations

import importlib
import inspect
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ltds.core.errors import CheckpointError, ConfigError, LtdsWarning
from ltds.core.pixels import IMAGENET_MEAN, IMAGENET_STD
from ltds.core.quiet import silenced
from ltds.nn.libraries import LibraryNetwork, imported

CONFIG, WEIGHTS, PREPROCESSOR = "config.json", "model.safetensors", "preprocessor_config.json"
# What would make transformers import code, ask the network or change the precision.
UNWANTED = ("auto_map", "quantization_config", "attn_implementation", "dtype", "torch_dtype")


def read_architecture(folder: Path) -> str:
    """What the network is, as JSON without its weights: its configuration, and the normalisation of its images.

    ValueError for a folder that does not say so.
    """
    config = _read(folder / CONFIG)
    if config is None or not isinstance(config.get("model_type"), str):
        raise ValueError(
            f"expected a folder with a {CONFIG} that names a model_type, but got '{folder}': name another one"
        )
    config = {key: value for key, value in config.items() if key not in UNWANTED and not key.startswith("_")}
    images = _read(folder / PREPROCESSOR) or {}
    mean, std = images.get("image_mean", IMAGENET_MEAN), images.get("image_std", IMAGENET_STD)
    return json.dumps({"config": config, "mean": list(mean), "std": list(std)}, sort_keys=True)


def weights_file(folder: Path) -> Path | None:
    """The file of weights in the folder; None without one: then `build_hugging_face` leaves the weights random."""
    file = folder / WEIGHTS
    return file if file.is_file() else None


def build_hugging_face(architecture: str, folder: Path | None) -> LibraryNetwork:
    """The network that `read_architecture` described, with the weights in the folder, or random ones without one."""
    transformers = imported("transformers", "hf:FOLDER")
    try:
        content = json.loads(architecture)
        with _offline():
            config = _config(transformers, content["config"])
            model = transformers.AutoModel.from_config(config, trust_remote_code=False).float()
        mean, std = content["mean"], content["std"]
        if folder is not None:
            _load(model, folder)
        return LibraryNetwork(_Features(model), mean, std)
    except CheckpointError:
        raise
    except Exception as error:  # the folder may say anything
        raise ConfigError(
            f"Expected the folder of backbone.name=hf:FOLDER to describe a vision network that transformers "
            f"{transformers.__version__} knows, but got {type(error).__name__}: {error}"
        ) from error


class _Features(nn.Module):
    """The output of a vision network as vectors: its class token, or else the mean over positions."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        pooler = getattr(model, "pooler", None)
        if isinstance(pooler, nn.Module) and any(True for _ in pooler.parameters()):
            model.pooler = None  # type: ignore[assignment]  # files of weights often lack it: it would be random
        self.model = model
        names = [name.rpartition(".")[2] for name, _ in model.named_parameters()]
        self.has_class_token = any(name in ("cls_token", "class_embedding") for name in names)
        takes = inspect.signature(model.forward).parameters
        self.any_size: dict[str, Any] = (
            {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in takes else {}
        )

    def forward(self, images: Tensor) -> Tensor:
        hidden: Tensor = self.model(pixel_values=images, **self.any_size).last_hidden_state
        if hidden.ndim == 4:
            return hidden.mean(dim=(2, 3))
        return hidden[:, 0] if self.has_class_token else hidden.mean(dim=1)


@contextmanager
def _offline() -> Iterator[None]:
    """No request leaves the machine: a configuration may name a network of the hub as a part of its own."""
    constants: Any = importlib.import_module("huggingface_hub.constants")
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _config(transformers: Any, content: dict[str, Any]) -> Any:
    content = {key: value for key, value in content.items() if key not in UNWANTED and not key.startswith("_")}
    if "use_pretrained_backbone" in content:
        content["use_pretrained_backbone"] = False
    _refuse_parts(content)
    config = transformers.AutoConfig.for_model(str(content.pop("model_type")), **content)
    _refuse_parts(config.to_dict())  # some have them by default
    config = getattr(config, "vision_config", config)  # of a network for images and texts, the part for images
    config._attn_implementation = "eager"
    return config


def _refuse_parts(content: Any) -> None:
    """Refuse networks inside the network that would come from elsewhere. timm has ways of its own to download."""
    if isinstance(content, dict):
        kind, part = content.get("model_type"), content.get("backbone")
        if isinstance(kind, str) and kind.startswith("timm"):
            raise ValueError(f"a model of type '{kind}'; name it as timm:NAME instead")
        if isinstance(part, str) or content.get("use_timm_backbone"):
            raise ValueError(f"a network whose part '{part}' would have to be downloaded; name one without such parts")
        content = list(content.values())
    if isinstance(content, list):
        for value in content:
            _refuse_parts(value)


def _load(model: nn.Module, folder: Path) -> None:
    """The weights in the folder; those of a head that features do not need are left out."""
    if weights_file(folder) is None:
        others = sorted(file.name for file in folder.glob("*.bin"))
        if others:
            raise CheckpointError(
                f"Expected '{folder / WEIGHTS}', but got only {others[0]}, which could run code. Convert it: load it "
                "with transformers where you trust it, and save it with model.save_pretrained."
            )
        warnings.warn(
            f"'{folder}' has no {WEIGHTS}: the backbone starts from random weights.", LtdsWarning, stacklevel=2
        )
        return
    with silenced(imported("transformers", "hf:FOLDER")):  # it reports weights that features do not need
        loaded, report = type(model).from_pretrained(  # type: ignore[attr-defined]
            folder,
            config=model.config,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise CheckpointError(
            f"Expected '{folder / WEIGHTS}' to have all weights of its network, but {len(missing)} are missing, such "
            f"as {missing[:3]}. Restore the folder."
        )
    model.load_state_dict(loaded.float().state_dict())


def _read(file: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
