"""Features that ltds itself extracted: the file trains any method, and its models predict from images as well."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import ltds
from ltds.cli.features import features
from ltds.core.errors import ConfigError, DataError, LtdsWarning
from ltds.data.decode import decode_tensor
from ltds.data.features import FeatureVectors
from ltds.data.manifest import Manifest
from ltds.data.stylelist import StyledImage, write_style_list
from ltds.data.transforms import EvalTransform
from ltds.engine import extraction
from ltds.evaluation.table import PredictionTable
from ltds.nn.backbones import BackboneSettings
from ltds.nn.efficientnet import DEFAULT_VARIANT
from ltds.nn.frozen import FrozenNetwork
from ltds.nn.small import TinyNet
from toy import write_dataset

SETTINGS = {"data.batch_size": 8, "schedule.epochs": 2, "schedule.steps_per_epoch": 2, "run.threads": 1}


@pytest.fixture(scope="module")
def network() -> TinyNet:
    torch.manual_seed(5)
    return TinyNet().eval()


@pytest.fixture
def file(toy: Manifest, tmp_path: Path, network: TinyNet) -> Path:
    weights = tmp_path / "tiny.safetensors"
    save_file(network.state_dict(), weights)
    out = tmp_path / "tiny-16.npz"
    return ltds.extract_features(toy, backbone="tiny", weights=weights, size=16, out=out, device="cpu")


def test_every_image_has_the_features_that_the_network_gives_it(toy: Manifest, file: Path, network: TinyNet) -> None:
    vectors = FeatureVectors.read(file, toy)
    images = EvalTransform(16)([decode_tensor(toy.root / path, 18) for path in toy.paths])
    with torch.no_grad():
        np.testing.assert_allclose(vectors.values, network(images).numpy(), rtol=1e-3, atol=1e-5)
    made_with = vectors.provenance["network"]
    assert (made_with["backbone"]["name"], made_with["stages"]) == ("tiny", 0)
    assert vectors.provenance["images"]["transform"]["size"] == 16


def test_its_models_predict_from_images_and_from_vectors(toy: Manifest, tmp_path: Path, file: Path) -> None:
    out = tmp_path / "run"
    run = ltds.train(toy, features=file, method="ltds", held_out="wax", out=out, settings=SETTINGS, device="cpu")
    table = PredictionTable.load(run.predictions_file("test"))
    model = ltds.load_model(out, device="cpu")
    vectors = FeatureVectors.read(file, toy).values[table.rows]
    np.testing.assert_array_equal(model.logits(vectors, batch_size=999), table.logits)
    images = [toy.root / toy.paths[row] for row in table.rows]
    np.testing.assert_allclose(model.logits(images), table.logits, rtol=1e-3, atol=1e-3)
    for listed in (np.array(images[:3]), np.array([str(image) for image in images[:3]])):
        np.testing.assert_allclose(model.logits(listed), table.logits[:3], rtol=1e-3, atol=1e-3)
    assert model.predict(images[0])[0].classes[0][0] in toy.classes


def test_training_on_features_of_images_that_have_changed_warns(tmp_path: Path, network: TinyNet) -> None:
    data, weights, out = write_dataset(tmp_path / "data"), tmp_path / "tiny.safetensors", tmp_path / "f.npz"
    save_file(network.state_dict(), weights)
    ltds.extract_features(data, backbone="tiny", weights=weights, size=16, out=out, device="cpu")
    first = data.root / data.paths[0]

    def warned() -> bool:
        with warnings.catch_warnings(record=True) as said:
            extraction.warn_of_changed_images(out, data)
        return any("have changed since" in str(warning.message) for warning in said)

    assert not warned()
    first.write_bytes(first.read_bytes() + b" ")
    assert warned()
    with pytest.warns(LtdsWarning, match="compute the features again"):
        ltds.train(data, features=out, held_out="wax", out=tmp_path / "run", settings=SETTINGS, device="cpu")
    first.unlink()
    assert not warned(), "features can be used without images"


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.uint16, bool])
def test_an_array_of_pixels_is_not_taken_for_vectors(toy: Manifest, tmp_path: Path, file: Path, kind: type) -> None:
    ltds.train(toy, features=file, held_out="wax", out=tmp_path / "run", settings=SETTINGS, device="cpu")
    model = ltds.load_model(tmp_path / "run", device="cpu")
    grey = np.ones((9, 16), kind)  # as wide as a vector
    part = (
        rf"feature vectors \(N,16\) of floating type, but got {grey.dtype} \(9, 16\), .* PIL.Image.fromarray\(array\)"
    )
    for outputs in (model.predict, model.logits, model.features):
        with pytest.raises(DataError, match=part):
            outputs(grey)
    assert len(model.predict(grey.astype(np.float32))) == len(model.predict(grey.astype(np.float64))) == 9
    assert len(model.predict(Image.fromarray(grey.astype(np.uint8)))) == 1


def test_without_the_network_a_model_says_that_it_needs_vectors(toy: Manifest, tmp_path: Path, file: Path) -> None:
    file.with_suffix(".safetensors").unlink()
    out = tmp_path / "run"
    ltds.train(toy, features=file, held_out="wax", out=out, settings=SETTINGS, device="cpu")
    with pytest.raises(DataError, match=r"Expected feature vectors \(N,16\).*does not hold the network"):
        ltds.load_model(out, device="cpu").predict([toy.root / toy.paths[0]])


def test_other_weights_get_another_file(tmp_path: Path) -> None:
    toy, weights, files = write_dataset(tmp_path / "toy"), tmp_path / "tiny.safetensors", []
    for _ in range(2):
        save_file(TinyNet().state_dict(), weights)  # drawn at random
        files.append(ltds.extract_features(toy, backbone="tiny", weights=weights, size=16, device="cpu"))
    checksums = [FeatureVectors.read(file, toy).network["checksum"][:8] for file in files]
    assert [file.name for file in files] == [f"tiny-16-{checksum}.npz" for checksum in checksums]
    assert len(set(files)) == 2


def test_packaged_weights_need_no_checksum_in_the_name() -> None:
    network = FrozenNetwork(BackboneSettings(name="tiny"), 0)
    network.settings = BackboneSettings(name="efficientnet-lite0", weights="imagenet")
    assert extraction._file_name(network, 224) == "efficientnet-lite0-224.npz"


def test_the_nearest_images_are_those_that_the_models_own_network_finds(
    toy: Manifest, tmp_path: Path, file: Path
) -> None:
    out, weights = tmp_path / "run", tmp_path / "other.safetensors"
    ltds.train(toy, features=file, held_out="wax", out=out, settings=SETTINGS, device="cpu")
    before = ltds.load_model(out, device="cpu").training_index().features
    (out / "nearest.npz").unlink()
    save_file(TinyNet().state_dict(), weights)
    ltds.extract_features(toy, backbone="tiny", weights=weights, size=16, out=file, device="cpu")
    after = ltds.load_model(out, device="cpu").training_index().features
    np.testing.assert_allclose(after, before, atol=2e-2)


def test_a_network_without_weights_is_refused(toy: Manifest, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'resnet18' has random weights"):
        ltds.extract_features(toy, backbone="resnet18", size=16)
    weights = tmp_path / "tiny.safetensors"
    save_file(TinyNet().state_dict(), weights)
    with pytest.raises(ConfigError, match=r"named \*.npz"):
        ltds.extract_features(toy, backbone="tiny", weights=weights, size=16, out=tmp_path / "features.bin")


def test_a_place_without_permission_is_noticed_before_an_image_is_read(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "tiny.safetensors"
    save_file(TinyNet().state_dict(), weights)
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setattr(extraction, "_compute", lambda *parts: pytest.fail("images were read"))
    out = tmp_path / "taken" / "features.npz"
    with pytest.raises(DataError, match="to be a folder that can be written to"):
        ltds.extract_features(toy, backbone="tiny", weights=weights, size=16, out=out, device="cpu")


def test_styles_that_have_not_been_made_are_named_before_any_image_is_read(toy: Manifest, tmp_path: Path) -> None:
    weights = tmp_path / "tiny.safetensors"
    save_file(TinyNet().state_dict(), weights)
    write_style_list(tmp_path, [StyledImage("images/ink/0.png", "images/wax/0.png", "hayao")])
    with pytest.raises(DataError, match=r"but got missing ones: 1 of 'hayao'. Make them with 'ltds data stylize"):
        ltds.extract_features(replace(toy, root=tmp_path), backbone="tiny", weights=weights, size=16, device="cpu")


def test_the_command_has_the_same_default_network() -> None:
    """It is spelled out there, because commands do not load torch before they need it."""
    assert inspect.signature(features).parameters["backbone"].default == DEFAULT_VARIANT
