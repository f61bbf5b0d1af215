"""Whether the time allows training the last stage of a pretrained network, rather than a small network on features."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from ltds.core.devices import to_layout
from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.nn.stages import split_backbone
from ltds.planning.run_plan import Choice

SIZE, FROZEN, VARIANTS = 160, 3, 4  # as in configs/pacs-odg/stages.toml, where they were measured
IMAGES = 24  # that are measured: a batch of one domain


@dataclass(frozen=True)
class StageWork:
    """Images that the frozen stages compute once, and that the last stage learns from or predicts, in all runs."""

    frozen: int
    learned: int
    predicted: int


@dataclass(frozen=True)
class StagePace:
    """Seconds of an image in the frozen stages, in a training step of the last stage, and in its prediction."""

    frozen: float
    learned: float
    predicted: float

    def seconds(self, work: StageWork) -> float:
        return work.frozen * self.frozen + work.learned * self.learned + work.predicted * self.predicted


def stage_choice(name: str) -> Choice:
    settings = {
        "backbone.name": name,
        "backbone.weights": "imagenet",
        "backbone.frozen": FROZEN,
    }
    why = "no GPU here, but time: the first stages are computed once, the last one learns, which beats fixed features"
    return Choice("network", settings, f"{name}, last stage", why)


def measure_stages(name: str) -> StagePace:
    """The pace of this machine, from a few images."""
    frozen, later = split_backbone(build_backbone(BackboneSettings(name=name, weights="imagenet")), FROZEN)
    for part in (frozen, later):
        to_layout(part, torch.device("cpu"))  # as in training
    images = torch.zeros(IMAGES, 3, SIZE, SIZE)
    frozen.eval()
    with torch.no_grad():
        maps = frozen(images)
        once = seconds_per_image(lambda: frozen(images), IMAGES)
        predicted = seconds_per_image(lambda: later.eval()(maps), IMAGES)
    learned = seconds_per_image(lambda: _learn(later.train(), maps), IMAGES)
    return StagePace(once, learned, predicted)


def _learn(network: nn.Module, maps: torch.Tensor) -> None:
    network(maps).sum().backward()


def seconds_per_image(call: Callable[[], object], images: int) -> float:
    """How long the call takes for each of its images."""
    call()  # the first one is slower
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) / images
