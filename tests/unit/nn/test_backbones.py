"""Backbones: sizes, key names, stems, weights from files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ltds.core.errors import CheckpointError, ConfigError
from ltds.core.pixels import IMAGENET_MEAN, IMAGENET_STD
from ltds.nn.backbones import BackboneSettings, build_backbone, load_weights
from ltds.nn.efficientnet import imagenet_weights
from ltds.nn.feature_dim import feature_dim_of
from ltds.nn.networks import reinitialised_copy
from ltds.nn.stages import split_backbone


def parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


# Trainable parameters without the classifier: counted by hand for ResNet-10, else the published totals less fc.
@pytest.mark.parametrize(
    ("name", "expected", "features"),
    [
        ("resnet10", 4_905_792, 512),
        ("resnet18", 11_689_512 - 513_000, 512),
        ("resnet34", 21_797_672 - 513_000, 512),
        ("resnet50", 25_557_032 - 2_049_000, 2048),
        ("efficientnet-lite0", 4_652_008 - 1_281_000, 1280),
        ("efficientnet-lite1", 5_416_680 - 1_281_000, 1280),
        ("efficientnet-lite2", 6_092_072 - 1_281_000, 1280),
    ],
)
def test_sizes(name: str, expected: int, features: int) -> None:
    backbone = build_backbone(BackboneSettings(name=name))
    assert parameters(backbone) == expected
    assert feature_dim_of(backbone, 64) == features


@pytest.mark.parametrize(("stem", "side"), [("imagenet", 16), ("medium", 32), ("small", 64)])
def test_the_stem_divides_the_side(stem: str, side: int) -> None:
    backbone = build_backbone(BackboneSettings(stem=stem, width=8))
    shapes: list[torch.Size] = []
    backbone.layer1.register_forward_hook(lambda m, i, out: shapes.append(out.shape))
    features = backbone(torch.randn(2, 3, 64, 64))
    assert shapes[0][-1] == side
    assert features.shape == (2, 64)
    assert features.min() >= 0


def test_keys_are_torchvision_s() -> None:
    keys = build_backbone(BackboneSettings(name="resnet18")).state_dict().keys()
    for key in ("conv1.weight", "bn1.running_mean", "layer1.0.conv1.weight", "layer2.0.downsample.0.weight"):
        assert key in keys
    assert "layer2.1.bn2.bias" in keys
    assert "layer1.0.downsample.0.weight" not in keys
    assert "layer1.0.downsample.1.weight" in build_backbone(BackboneSettings(name="resnet50")).state_dict()


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_weights_of_a_public_file_load_without_its_classifier(tmp_path: Path, suffix: str) -> None:
    source = build_backbone(BackboneSettings(width=8))
    state = {**source.state_dict(), "fc.weight": torch.zeros(10, 64), "fc.bias": torch.zeros(10)}
    file = tmp_path / f"weights{suffix}"
    if suffix == ".pth":
        torch.save(state, file)
    else:
        save_file(state, file)
    loaded = build_backbone(BackboneSettings(width=8, weights=str(file)))
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(loaded.eval()(images), source.eval()(images))


def test_weights_of_another_width_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "weights.pth"
    torch.save(build_backbone(BackboneSettings(width=8)).state_dict(), file)
    with pytest.raises(CheckpointError, match=r"of another shape .*Check backbone.name, backbone.width"):
        load_weights(build_backbone(BackboneSettings(width=16)), file)


def test_a_file_that_would_execute_code_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "executed",))  # type: ignore[return-value]

    file = tmp_path / "weights.pth"
    torch.save({"conv1.weight": Evil()}, file)
    with pytest.raises(CheckpointError, match="to be a file of weights"):
        load_weights(build_backbone(BackboneSettings(width=8)), file)
    assert not (tmp_path / "executed").exists()


def make_flat() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 5))


def make_map() -> nn.Module:
    return nn.Conv2d(3, 4, 3)


def test_a_user_s_own_backbone_by_import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    assert feature_dim_of(build_backbone(BackboneSettings(name="test_backbones:make_flat")), 8) == 5
    with pytest.raises(ConfigError, match=r"features \(N,D\) in evaluation mode, but got \(2, 4, 6, 6\)"):
        feature_dim_of(build_backbone(BackboneSettings(name="test_backbones:make_map")), 8)
    with pytest.raises(ConfigError, match=r"to be a torch.nn.Module, but got a BackboneSettings"):
        build_backbone(BackboneSettings(name="ltds.nn.backbones:BackboneSettings"))


def test_a_setting_without_effect_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"backbone.width, which only the ResNets have"):
        build_backbone(BackboneSettings(name="tiny", width=32))


def test_efficientnet_makes_of_our_batches_what_its_package_makes_of_its_own() -> None:
    """The package's network on images normalised and loaded as the package does it, in evaluation mode."""
    package = pytest.importorskip("efficientnet_lite_pytorch", reason="needs ltds[efficientnet]")
    original = package.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(imagenet_weights())).eval()
    backbone = build_backbone(BackboneSettings(name="efficientnet-lite0", weights="imagenet")).eval()
    pixels = torch.rand(2, 3, 224, 224)
    mean, std = (torch.tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
    theirs = original.extract_features((pixels - 127 / 255) / (128 / 255)).mean(dim=(2, 3))
    assert torch.allclose(backbone((pixels - mean) / std), theirs, atol=1e-4)
    assert theirs.std() > 0.1  # not blank: the tolerance above means something


def test_efficientnet_s_stages_halve_the_side() -> None:
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs ltds[efficientnet]")
    backbone = build_backbone(BackboneSettings(name="efficientnet-lite0"))
    sides: list[int] = []
    for stage in backbone.stages:
        stage.register_forward_hook(lambda m, i, out: sides.append(out.shape[-1]))
    assert backbone(torch.randn(2, 3, 100, 100)).min() >= 0
    assert sides == [25, 13, 7, 4]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltds.nn.efficientnet.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"efficientnet_lite_pytorch .*pip install 'ltds\[efficientnet\]'"):
        build_backbone(BackboneSettings(name="efficientnet-lite0"))


def test_efficientnet_is_drawn_anew_unless_it_was_trained() -> None:
    pytest.importorskip("efficientnet_lite_pytorch", reason="needs ltds[efficientnet]")
    for weights, same in (("", False), ("imagenet", True)):
        backbone = build_backbone(BackboneSettings(name="efficientnet-lite0", weights=weights))
        pairs = zip(backbone.parameters(), reinitialised_copy(backbone).parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs) == same


@pytest.mark.parametrize("name", ["efficientnet-lite1", "efficientnet-lite2"])
def test_larger_efficientnets_have_their_weights_and_stages(name: str) -> None:
    backbone = build_backbone(BackboneSettings(name=name, weights="imagenet")).eval()
    images = torch.randn(1, 3, 64, 64)
    sides = []
    for stage in backbone.stages:
        stage.register_forward_hook(lambda m, i, out: sides.append(out.shape[-1]))
    with torch.no_grad():
        wanted = backbone(images)
        assert sides == [16, 8, 4, 2]
        first, later = split_backbone(backbone, 3)
        assert torch.allclose(later(first(images)), wanted, atol=1e-5)
    assert imagenet_weights(name).is_file()
    assert wanted.std() > 0.01, "not what random weights give"
