"""Features that were computed before: used again while they are current and as good as the time allows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import save_file

import ltds
from ltds.data.features import FeatureVectors, write_features
from ltds.data.manifest import Manifest
from ltds.nn.small import TinyNet
from ltds.planning import network
from toy import write_dataset

PACE = 0.01  # seconds for an image of 224 pixels


@pytest.fixture
def dataset(tmp_path: Path) -> Manifest:
    return write_dataset(tmp_path / "toy")


@pytest.fixture
def computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes at which features were computed, by a small network instead of the pretrained one."""
    weights, sizes = tmp_path / "tiny.safetensors", []
    save_file(TinyNet().state_dict(), weights)

    def extract(manifest: Manifest, *, backbone: str, size: int, **arguments: Any) -> Path:
        sizes.append(size)
        file = ltds.extract_features(manifest, backbone="tiny", weights=weights, size=size, **arguments)
        say_network(file, manifest, network.PLANNED_BACKBONE, "imagenet")
        return file

    monkeypatch.setattr(network, "pretrained_is_installed", lambda: True)
    monkeypatch.setattr(network, "extract_features", extract)
    monkeypatch.setattr(network, "_seconds_per_image", lambda: PACE)
    return sizes


def say_network(file: Path, manifest: Manifest, name: str, weights: str) -> None:
    """Write into the file that another network has computed its features."""
    vectors = FeatureVectors.read(file, manifest)
    backbone = {**vectors.network["backbone"], "name": name, "weights": weights}
    provenance = {**vectors.provenance, "network": {**vectors.network, "backbone": backbone}}
    write_features(file, vectors.values, manifest.paths, provenance)


def used(manifest: Manifest, size: int, *, spare: float = 1.3, repeatable: bool = False) -> str:
    """The name of the features that are chosen, with a budget that allows this size and none above it."""
    budget = spare * PACE * len(manifest) * (size / 224) ** 2 / network.SHARE
    choice = network.choose_network(manifest, {}, budget, on_cpu=True, repeatable=repeatable).choice
    assert choice is not None
    file = Path(choice.settings["data.features"])
    assert choice.shown == f"efficientnet-lite0, frozen, {file.stem.rsplit('-')[-1]} px"
    return file.name


def test_features_are_computed_again_only_for_a_longer_budget(dataset: Manifest, computed: list[int]) -> None:
    assert used(dataset, 96) == used(dataset, 96) == "efficientnet-lite0-96.npz"
    assert computed == [96]
    assert used(dataset, 128, spare=1.1) == "efficientnet-lite0-96.npz", "if it fits only just, the pace may be wrong"
    assert used(dataset, 160) == "efficientnet-lite0-160.npz"
    assert used(dataset, 96) == "efficientnet-lite0-160.npz", "better ones are there already"
    assert computed == [96, 160]


def test_features_of_replaced_images_are_computed_again(dataset: Manifest, computed: list[int]) -> None:
    file = dataset.root / "features" / used(dataset, 96)
    before = FeatureVectors.read(file, dataset).values
    first, second = (dataset.root / path for path in (dataset.paths[0], dataset.paths[-1]))
    first.write_bytes(second.read_bytes())
    used(dataset, 96)
    assert computed == [96, 96]
    after = FeatureVectors.read(file, dataset).values
    np.testing.assert_array_equal(after[0], before[-1])
    np.testing.assert_array_equal(after[1:], before[1:])


def test_features_that_do_not_say_which_images_they_are_of_are_computed_again(
    dataset: Manifest, computed: list[int]
) -> None:
    file = dataset.root / "features" / "efficientnet-lite0-96.npz"
    write_features(file, np.ones((len(dataset), 4), np.float32), dataset.paths, {"images": {}})
    used(dataset, 96)
    assert computed == [96]
    assert FeatureVectors.read(file, dataset).dim == 16


@pytest.mark.parametrize(("name", "weights"), [("efficientnet-lite0", "/mine.safetensors"), ("resnet18", "imagenet")])
def test_features_of_another_network_are_no_imagenet_features(
    dataset: Manifest, computed: list[int], name: str, weights: str
) -> None:
    file = dataset.root / "features" / used(dataset, 96)
    say_network(file, dataset, name, weights)
    used(dataset, 96)
    assert computed == [96, 96]


def test_a_comparison_keeps_its_features_when_it_is_continued(dataset: Manifest, computed: list[int]) -> None:
    used(dataset, 96)  # a run with little time must not decide for the comparison
    assert used(dataset, 128, repeatable=True) == "efficientnet-lite0-128.npz"
    assert used(dataset, 224) == "efficientnet-lite0-224.npz"
    for size in (96, 224):  # the pace is measured differently each time
        assert used(dataset, size, repeatable=True) == "efficientnet-lite0-128.npz"
    assert computed == [96, 128, 224]
    os.utime(dataset.root / dataset.paths[0], ns=(1, 1))  # as if it had been replaced
    assert used(dataset, 160, repeatable=True) == "efficientnet-lite0-160.npz"
    assert used(dataset, 224, repeatable=True) == "efficientnet-lite0-160.npz"
