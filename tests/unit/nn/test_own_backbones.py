"""Networks from outside the package: what they return is tried before training, and trying changes nothing."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ltds.core.errors import ConfigError
from ltds.data.manifest import Manifest
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.nn.feature_dim import feature_dim_of
from toy import recorded, toy_session


def layers(*more: nn.Module) -> nn.Sequential:
    pool = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(nn.Conv2d(3, 12, 4, 4), nn.BatchNorm2d(12), nn.ReLU(), *pool, *more)


def declared(network: nn.Module, dim: int) -> nn.Module:
    network.out_features = dim  # type: ignore[assignment]
    return network


class Odd(nn.Module):
    """Returns what `answer` makes of the features and the mode."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.layers, self.answer = layers(), answer

    def forward(self, images: Tensor) -> Any:
        return self.answer(self.layers(images), self.training)


REFUSED = {
    "wrong out_features": (declared(layers(), 99), r"to be 99, as its out_features says, but got 12\. Correct"),
    "declared map": (declared(nn.Sequential(nn.Conv2d(3, 12, 4, 4)), 12), r"but got \(2, 12, 4, 4\) for N=2"),
    "tuple in training": (Odd(lambda f, training: (f, f) if training else f), r"in training mode, but got a tuple"),
    "shorter in training": (
        Odd(lambda f, training: f[:, :5] if training else f),
        r"12 in evaluation and 5 in training",
    ),
    "half precision": (Odd(lambda f, training: f.half()), r"to be torch\.float32, but got torch\.float16\. .* \.float"),
    "one row": (Odd(lambda f, training: f[:1]), r"but got \(1, 12\) for N=2"),
}


@pytest.mark.parametrize(("network", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_a_network_returns_is_tried(network: nn.Module, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        feature_dim_of(network, 16)


def test_for_features_nothing_is_said_about_images() -> None:
    with pytest.raises(ConfigError, match=r"to take features \(N,6\) .* Change the backbone, or data\.features\.$"):
        feature_dim_of(layers(), 16, 6)


def test_trying_changes_neither_statistics_nor_random_numbers() -> None:
    network = layers(nn.Dropout())
    before, state = {k: v.clone() for k, v in network.state_dict().items()}, torch.random.get_rng_state()
    assert feature_dim_of(declared(network, 12), 16) == 12
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert network.training


WEIGHTS = Path("start.pt")


def with_weights(pretrained: bool = True) -> nn.Module:
    network = layers()
    if pretrained:
        network.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return network


def test_a_model_does_not_need_the_weights_that_it_started_from(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start = layers()
    torch.save(start.state_dict(), WEIGHTS)
    session = toy_session(toy, backbone={"name": "test_own_backbones:with_weights"}, schedule={"epochs": 1})
    assert torch.equal(session.method.backbone[0].weight, start[0].weight)  # type: ignore[index, union-attr]
    run = recorded(session, tmp_path / "run")
    train(session, run)
    WEIGHTS.unlink()
    assert load_model(run.path, trust=["test_own_backbones"]).predict([toy.root / toy.paths[0]])


def telling(pretrained: bool | None = None) -> nn.Module:
    network = layers()
    network.told = pretrained  # type: ignore[assignment]
    return network


def test_only_a_network_whose_weights_are_loaded_next_is_told_so() -> None:
    settings = BackboneSettings(name="test_own_backbones:telling")
    assert build_backbone(settings).told is None, "training leaves the choice to the function"
    assert build_backbone(settings, pretrained=False).told is False


class SmallResNet(nn.Module):
    """A user's network in a module whose name begins as those of ltds."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.out_features = layers(), 12

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


def test_a_module_named_as_a_resnet_is_not_one_of_ltds(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its model directory is read, although its weights are fewer than those of a ResNet of ltds."""
    module = types.ModuleType("resnet20")
    module.SmallResNet = SmallResNet  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "resnet20", module)
    session = toy_session(toy, backbone={"name": "resnet20:SmallResNet"})
    run = recorded(session, tmp_path / "run")
    train(session, run)
    model = load_model(run.path, trust=["resnet20"])
    model.export(tmp_path / "model")
    images = [toy.root / path for path in toy.paths[:3]]
    again = load_model(tmp_path / "model", trust=["resnet20"]).logits(images)
    torch.testing.assert_close(torch.from_numpy(again), torch.from_numpy(model.logits(images)))
    with pytest.raises(ConfigError, match=r"backbone\.width, which only the ResNets have"):
        build_backbone(BackboneSettings(name="resnet20:SmallResNet", width=8))
