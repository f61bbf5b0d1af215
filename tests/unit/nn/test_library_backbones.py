"""Networks of other libraries: transformers for real; timm and torchvision by stand-ins of their interface."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import ltds
from ltds.core.config import parse
from ltds.core.errors import CheckpointError, ConfigError, LtdsWarning
from ltds.core.pixels import IMAGENET_MEAN, IMAGENET_STD
from ltds.core.runs import RunDirectory
from ltds.core.trust import modules_named
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.engine.start import resume_run
from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.nn.feature_dim import feature_dim_of
from ltds.nn.frozen import FrozenNetwork, require_weights
from ltds.nn.hugging_face import build_hugging_face
from toy import forget, recorded, toy_session

VIT = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "image_size": 16,
    "patch_size": 8,
}


def settings(name: str, **more: Any) -> BackboneSettings:
    return parse(BackboneSettings, {"name": name, **more})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny ViT as transformers saves one for classification, whose images are normalised by 0.5."""
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'ltds[text]'")
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("hf") / "tiny vit"
    transformers.ViTForImageClassification(transformers.ViTConfig(**VIT)).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}')
    return folder


def normalised(pixels: Tensor) -> Tensor:
    mean, std = (torch.tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
    return (pixels - mean) / std


def test_a_folder_gives_the_features_of_its_own_library(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers import ViTForImageClassification

    pixels = torch.rand(3, 3, 16, 16)
    capfd.readouterr()
    backbone = build_backbone(settings(f"hf:{folder}")).eval()
    assert capfd.readouterr() == ("", ""), "it loads without a word"
    original = ViTForImageClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        wanted = original.vit(pixel_values=(pixels - 0.5) / 0.5).last_hidden_state[:, 0]
        assert torch.allclose(backbone(normalised(pixels)), wanted, atol=1e-5)
    assert feature_dim_of(backbone, 16) == 16
    assert feature_dim_of(backbone, 32) == 16, "positions are interpolated for other sizes"
    assert not any("pooler" in name for name, _ in backbone.named_parameters())


def test_networks_without_a_class_token_and_for_texts_too(tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModel

    kinds: dict[str, dict[str, Any]] = {
        "resnet": {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "layer_type": "basic"},
        "swin": {
            "image_size": 16,
            "patch_size": 2,
            "embed_dim": 4,
            "depths": [1, 1],
            "num_heads": [1, 2],
            "window_size": 2,
        },
        "clip": {"vision_config": {**VIT, "model_type": "clip_vision_model"}},
    }
    for (kind, config), dim in zip(kinds.items(), (8, 8, 16), strict=True):
        made = AutoConfig.for_model(kind, **config)
        AutoModel.from_config(getattr(made, "vision_config", made)).save_pretrained(tmp_path / kind)
        (tmp_path / kind / "config.json").write_text(json.dumps({**made.to_dict(), "model_type": kind}))
        backbone = build_backbone(settings(f"hf:{tmp_path / kind}"))
        assert feature_dim_of(backbone, 16) == dim


def test_what_the_network_is_stays_with_the_settings(folder: Path) -> None:
    made = settings(f"hf:{folder}")
    assert json.loads(made.architecture)["config"]["hidden_size"] == 16
    elsewhere = made.model_copy(update={"name": "hf:gone"})
    network = build_backbone(elsewhere, pretrained=False)
    assert feature_dim_of(network, 16) == 16
    assert modules_named(made.model_dump()) == ()
    frozen = FrozenNetwork(made, 0)
    again = FrozenNetwork.from_dict({**frozen.to_dict(), "backbone": elsewhere.model_dump()}, pretrained=False)
    again.module.load_state_dict(frozen.module.state_dict())
    assert again.checksum == frozen.checksum


def test_folders_that_cannot_be_used(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ConfigError, match="expected a folder with a config"):
        settings(f"hf:{tmp_path}")
    bare = tmp_path / "bare"
    bare.mkdir()
    content = json.loads((folder / "config.json").read_text())
    (bare / "config.json").write_text(json.dumps({**content, "auto_map": {"AutoModel": "evil.py"}}))
    (bare / "evil.py").write_text("raise SystemExit('code of the folder was run')")
    with pytest.warns(LtdsWarning, match="random weights"):
        build_backbone(settings(f"hf:{bare}"))
    (bare / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(CheckpointError, match="could run code"):
        build_backbone(settings(f"hf:{bare}"))
    save_file({"vit.x": torch.zeros(1)}, bare / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match="are missing"):
        build_backbone(settings(f"hf:{bare}"))
    for kind, part in (("no_such_type", "no_such_type"), ("timm_wrapper", "timm:NAME")):
        (bare / "config.json").write_text(json.dumps({"model_type": kind}))
        with pytest.raises(ConfigError, match=part):
            build_backbone(settings(f"hf:{bare}"))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "upernet", "backbone": "someone/beacon"}, "part 'someone/beacon' would have to be downloaded"),
        ({"model_type": "upernet", "backbone_config": {"model_type": "timm_backbone"}}, "timm:NAME instead"),
        ({"model_type": "detr"}, "timm:NAME instead|would have to be downloaded"),  # depends on the version
        ({"model_type": "vitmatte", "deeper": [{"backbone": "someone/beacon"}]}, "would have to be downloaded"),
    ],
)
def test_no_network_is_asked_for_a_part(config: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(host: str, *_: Any, **__: Any) -> None:
        raise SystemExit(f"{host} was asked for")

    monkeypatch.setattr("socket.getaddrinfo", never)
    with pytest.raises(ConfigError, match=said):
        build_hugging_face(json.dumps({"config": config, "mean": [0, 0, 0], "std": [1, 1, 1]}), None)


def test_train_with_a_folder_and_use_the_model_without_it(folder: Path, toy: Manifest, tmp_path: Path) -> None:
    moved = tmp_path / "net"
    moved.symlink_to(folder)
    quick = {"data.size": 16, "data.batch_size": 8, "schedule.epochs": 1, "schedule.steps_per_epoch": 2}
    images = [toy.root / toy.paths[0]]
    out = tmp_path / "run"
    named = {**quick, "backbone.name": f"hf:{moved}", "optimizer.lr": 0.01}
    run = ltds.train(toy, method="agg", held_out="wax", out=out, settings=named)
    wanted = ltds.load_model(run.path).logits(images)
    ltds.export(run.path, tmp_path / "model")
    text = (tmp_path / "model" / "model.json").read_text()
    assert str(tmp_path) not in text
    assert str(folder) not in text
    assert (ltds.load_model(tmp_path / "model").logits(images) == wanted).all()
    assert ltds.export(run.path, tmp_path / "onnx", to="onnx").difference < 1e-4
    file = ltds.extract_features(toy, backbone=f"hf:{folder}", size=16, out=tmp_path / "features.npz")
    run = ltds.train(
        toy,
        method="agg",
        held_out="wax",
        out=tmp_path / "on features",
        features=file,
        settings={k: v for k, v in quick.items() if k != "data.size"},
    )
    assert len(ltds.load_model(run.path).predict(images)) == 1


class Small(nn.Module):
    """What timm and torchvision would return."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Sequential(nn.Dropout(0.0), nn.Linear(6, classes)) if classes else nn.Identity()
        self.pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25), "classifier": "head"}

    def forward(self, images: Tensor) -> Tensor:
        output: Tensor = self.head(self.body(images))
        return output


def stopped_run(toy: Manifest, folder: Path, path: Path, *, earlier: bool) -> RunDirectory:
    """A run on a folder that was stopped at its first checkpoint. `earlier`: by a version that looked at no weights."""
    session = toy_session(toy, backbone={"name": f"hf:{folder}"})
    if earlier:
        session = replace(session, identity=session.former_identities[0])
    run = recorded(session, path)
    train(session, run, stop_after=2)
    if earlier:
        forget(run, "files")
    return run


def test_a_run_goes_on_with_the_weights_that_the_folder_had(folder: Path, toy: Manifest, tmp_path: Path) -> None:
    used = shutil.copytree(folder, tmp_path / "vit")
    file = used / "model.safetensors"
    weights = file.read_bytes()
    run = stopped_run(toy, used, tmp_path / "run", earlier=False)
    refused = r"Expected the pretrained weights that '.*run' was started with, but '.*vit' holds others now, or none"
    file.write_bytes(bytes([*weights[:-1], weights[-1] ^ 1]))
    with pytest.raises(CheckpointError, match=refused):
        resume_run(run)
    file.unlink()
    with pytest.warns(LtdsWarning, match="random weights"), pytest.raises(CheckpointError, match=refused):
        resume_run(run)
    file.write_bytes(weights)
    resume_run(run)
    assert run.done


@pytest.mark.filterwarnings("ignore:.*random weights")
def test_a_run_of_an_earlier_version_goes_on_without_that_comparison(
    folder: Path, toy: Manifest, tmp_path: Path
) -> None:
    """All weights are in its checkpoint by then; nobody knows which ones the folder had."""
    used = shutil.copytree(folder, tmp_path / "vit")
    run = stopped_run(toy, used, tmp_path / "run", earlier=True)
    shutil.rmtree(used)
    resume_run(run)
    assert run.done
    image = toy.root / toy.paths[0]
    wanted = stopped_run(toy, folder, tmp_path / "whole", earlier=False)
    resume_run(wanted)
    assert (ltds.load_model(run.path).logits([image]) == ltds.load_model(wanted.path).logits([image])).all()


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    timm, torchvision = ModuleType("timm"), ModuleType("torchvision")
    timm.is_model = lambda name: name == "small_net"  # type: ignore[attr-defined]
    timm.list_models = lambda: ["small_net"]  # type: ignore[attr-defined]
    timm.create_model = lambda name, pretrained, num_classes: Small(num_classes)  # type: ignore[attr-defined]
    models = SimpleNamespace(list_models=lambda module: ["small_net"], get_model=lambda name, weights: Small(10))
    torchvision.models = models  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)


@pytest.mark.usefixtures("stand_ins")
def test_timm_and_torchvision_by_name(tmp_path: Path) -> None:
    torch.manual_seed(0)
    trained = Small(10)
    file = tmp_path / "weights.safetensors"
    save_file(trained.state_dict(), file)
    pixels = torch.rand(2, 3, 16, 16)
    for library, shown in (("timm", (pixels - 0.5) / 0.25), ("torchvision", normalised(pixels))):
        backbone = build_backbone(settings(f"{library}:small_net", weights=str(file)))
        assert feature_dim_of(backbone, 16) == 6
        assert torch.allclose(backbone(normalised(pixels)), trained.body(shown), atol=1e-5)
        with pytest.raises(ConfigError, match="Did you mean 'small_net'"):
            build_backbone(settings(f"{library}:smal_net"))
        with pytest.raises(ConfigError, match="the name of a network"):
            build_backbone(settings(f"{library}:hf-hub:someone/evil"))
        with pytest.raises(ConfigError, match="Where the internet can be reached"):
            build_backbone(settings(f"{library}:small_net", weights="imagenet"))
        with pytest.raises(ConfigError, match="has random weights"):
            require_weights(settings(f"{library}:small_net"))
        with pytest.raises(ConfigError, match="takes images"):
            build_backbone(settings(f"{library}:small_net"), input_dim=4)
        before = backbone.layers.body[0].weight.clone()
        backbone.reset_parameters()
        assert not torch.equal(before, backbone.layers.body[0].weight)


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_a_missing_library_is_said_with_its_remedy(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    with pytest.raises(ConfigError, match=f"pip install {library}"):
        build_backbone(settings(f"{library}:resnet18"))


@pytest.mark.parametrize(
    ("name", "part"),
    [("resnet18", "resnet18-f37072fd.pth"), ("resnet10", "No weights of it"), ("tiny", "No weights of it")],
)
def test_imagenet_weights_say_where_they_are(name: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        build_backbone(settings(name, weights="imagenet"))


def test_the_json_is_for_folders_only() -> None:
    with pytest.raises(ConfigError, match="architecture only with"):
        build_backbone(settings("tiny", architecture="{}"))
