"""BatchNorm with fixed statistics: the same function in training and in use, in copies and inside inner steps."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ltds.core.errors import ConfigError
from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.nn.fixed_batchnorm import fix_statistics
from ltds.nn.inner_step import call_with
from ltds.nn.small import TinyNet
from ltds.nn.stages import split_backbone


def trained_file(folder: Path, width: int = 8) -> Path:
    """Weights of a ResNet-10 whose statistics are those of some images."""
    torch.manual_seed(0)
    network = build_backbone(BackboneSettings(stem="small", width=width)).train()
    for _ in range(3):
        network(torch.randn(4, 3, 16, 16) * 2 + 1)
    save_file(network.state_dict(), folder / "resnet.safetensors")
    return folder / "resnet.safetensors"


def fixed(folder: Path) -> nn.Module:
    return build_backbone(BackboneSettings(stem="small", width=8, weights=str(trained_file(folder)), batchnorm="fixed"))


def test_training_computes_what_evaluation_computes(tmp_path: Path) -> None:
    network, images = fixed(tmp_path), torch.randn(5, 3, 16, 16)
    expected = network.eval()(images)
    before = {name: value.clone() for name, value in network.named_buffers()}
    assert torch.equal(network.train()(images), expected)
    # An image's features do not depend on the others of its batch, up to the rounding of other shapes.
    torch.testing.assert_close(network(images[:2]), expected[:2])
    assert all(torch.equal(value, before[name]) for name, value in network.named_buffers())
    plain = build_backbone(BackboneSettings(stem="small", width=8, weights=str(trained_file(tmp_path)))).train()
    assert not torch.allclose(plain(images), expected)


def test_scale_and_shift_learn(tmp_path: Path) -> None:
    network = fixed(tmp_path).train()
    network(torch.randn(3, 3, 16, 16)).sum().backward()
    assert network.bn1.weight.grad.abs().sum() > 0
    assert network.bn1.bias.grad.abs().sum() > 0


def test_copies_and_inner_steps_keep_them(tmp_path: Path) -> None:
    network, images = fixed(tmp_path), torch.randn(3, 3, 16, 16)
    expected = network.eval()(images)
    twin = copy.deepcopy(network).train()
    assert torch.equal(twin(images), expected)
    weights = {name: p * 1.5 for name, p in network.named_parameters()}
    before = network.bn1.running_mean.clone()
    inner = call_with(network.train(), weights, images, update_statistics=True)
    assert torch.equal(network.bn1.running_mean, before)
    assert torch.equal(inner, call_with(network.eval(), weights, images, update_statistics=False))


def test_later_stages_keep_them(tmp_path: Path) -> None:
    network, images = fixed(tmp_path), torch.randn(3, 3, 16, 16)
    expected = network.eval()(images)
    first, later = split_backbone(network, 2)
    assert torch.equal(later.train()(first(images)), expected)


def test_other_kinds_and_their_number() -> None:
    network = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm3d(2), nn.Linear(2, 2), nn.LayerNorm(2))
    assert fix_statistics(network) == 2
    assert [layer.training for layer in network.train()] == [False, False, True, True]
    assert fix_statistics(nn.Sequential(nn.Linear(2, 2))) == 0


def test_without_pretrained_weights_or_without_batchnorm_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"pretrained weights .* but 'resnet10' has random ones"):
        build_backbone(BackboneSettings(batchnorm="fixed"))
    with pytest.raises(ConfigError, match=r"no backbone.batchnorm with backbone.name=adapter"):
        build_backbone(BackboneSettings(name="adapter", batchnorm="fixed"), input_dim=4)
    save_file(TinyNet().state_dict(), tmp_path / "tiny.safetensors")
    network = build_backbone(
        BackboneSettings(name="tiny", weights=str(tmp_path / "tiny.safetensors"), batchnorm="fixed")
    )
    assert not any(layer.training for layer in network.train().modules() if isinstance(layer, nn.BatchNorm2d))


def test_an_own_network_without_batchnorm_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "plain_net.py").write_text(
        "from torch import nn\ndef make():\n    return nn.Sequential(nn.Flatten(), nn.Linear(12, 4))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"a backbone with BatchNorm .* but 'plain_net:make' has none"):
        build_backbone(BackboneSettings(name="plain_net:make", batchnorm="fixed"))
