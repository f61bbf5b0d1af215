"""Backbones in two parts: together they are the whole, and the first part never changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ltds.core.errors import CheckpointError, ConfigError
from ltds.core.tensors import packed
from ltds.nn.backbones import BACKBONES, BackboneSettings, build_backbone
from ltds.nn.frozen import FrozenNetwork
from ltds.nn.resnet import BasicBlock, Bottleneck, ResNet
from ltds.nn.small import TinyNet
from ltds.nn.stages import split_backbone

NETWORKS = {
    "basic": lambda: ResNet(BasicBlock, (1, 2, 1, 1), stem="small", width=4),
    "bottleneck": lambda: ResNet(Bottleneck, (1, 1, 2, 1), stem="imagenet", width=4),
    "efficientnet": lambda: build_backbone(BackboneSettings(name="efficientnet-lite0")),
}


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_parts_together_are_the_whole(name: str, stages: int) -> None:
    if name == "efficientnet":
        pytest.importorskip("efficientnet_lite_pytorch")
    torch.manual_seed(0)
    backbone, images = NETWORKS[name]().eval(), torch.randn(2, 3, 33, 33)
    whole = backbone(images)
    first, later = split_backbone(backbone, stages)
    assert torch.equal(later(first(images)), whole)
    assert later.out_features == whole.shape[1]
    assert len(later.stages) == 4 - stages
    weights = {id(p) for p in backbone.parameters()}
    assert {id(p) for p in first.parameters()} | {id(p) for p in later.parameters()} == weights
    assert not any(p.requires_grad for p in first.parameters())
    assert all(p.requires_grad for p in later.parameters())


def test_where_nothing_is_left_to_learn_the_first_part_gives_features() -> None:
    first, later = split_backbone(NETWORKS["basic"](), 4)
    assert first(torch.randn(2, 3, 16, 16)).shape == (2, 32)
    assert not list(later.parameters())


def test_a_backbone_without_parts_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"can be divided into stages.*backbone.frozen=2, but got a TinyNet"):
        split_backbone(TinyNet(), 2)


def test_a_frozen_network_is_saved_and_loaded_with_its_weights(tmp_path: Path) -> None:
    torch.manual_seed(1)
    file, saved = tmp_path / "tiny.safetensors", tmp_path / "frozen.safetensors"
    save_file(TinyNet().state_dict(), file)
    network = FrozenNetwork(BackboneSettings(name="tiny", weights=str(file)), 0)
    network.save(saved)
    images = torch.randn(2, 3, 16, 16)
    loaded = FrozenNetwork.load(network.to_dict(), saved)
    assert torch.equal(loaded(images), network(images))
    save_file(TinyNet().state_dict(), saved)
    with pytest.raises(CheckpointError, match="other weights"):
        FrozenNetwork.load(network.to_dict(), saved)
    saved.write_bytes(b"no tensors")
    with pytest.raises(CheckpointError, match="frozen weights that this run was trained with"):
        FrozenNetwork.load(network.to_dict(), saved)


def test_a_frozen_network_may_have_tied_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tied(TinyNet):
        def __init__(self) -> None:
            super().__init__()
            self.again = self.body[1]

    monkeypatch.setitem(BACKBONES, "tied", lambda settings: Tied())
    file, saved = tmp_path / "tied.safetensors", tmp_path / "frozen.safetensors"
    save_file(packed(Tied().state_dict()), file)
    network = FrozenNetwork(BackboneSettings(name="tied", weights=str(file)), 0)
    network.save(saved)
    images = torch.randn(2, 3, 16, 16)
    assert torch.equal(FrozenNetwork.load(network.to_dict(), saved)(images), network(images))


@pytest.mark.parametrize("stages", [0, 1, 4])
def test_a_description_of_a_network_too_large_for_its_weights_is_refused(tmp_path: Path, stages: int) -> None:
    """Before it is built: this one would take petabytes."""
    file, saved = tmp_path / "resnet.safetensors", tmp_path / "frozen.safetensors"
    settings = BackboneSettings(name="resnet10", width=8, weights=str(file))
    save_file(build_backbone(settings, pretrained=False).state_dict(), file)
    network = FrozenNetwork(settings, stages)
    network.save(saved)
    assert FrozenNetwork.load(network.to_dict(), saved).checksum == network.checksum
    content = network.to_dict()
    content["backbone"]["width"] = 10**6
    with pytest.raises(CheckpointError, match="but got: too few weights for a resnet10 of this width"):
        FrozenNetwork.load(content, saved)


def test_a_description_cannot_name_code_to_run() -> None:
    content = {"backbone": {"name": "os.path:abspath"}, "stages": 0, "checksum": ""}
    with pytest.raises(ConfigError, match=r"but got 'os.path:abspath'"):
        FrozenNetwork.from_dict(content, pretrained=False)
