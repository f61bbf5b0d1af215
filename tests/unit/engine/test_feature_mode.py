"""Training on precomputed features: the same protocol, an adapter as the backbone, models that take vectors."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ltds.core.errors import ConfigError, DataError
from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.features import FeatureVectors, write_features
from ltds.data.manifest import Manifest
from ltds.engine.config import resolve
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.start import resume_run, train_new_run
from ltds.evaluation.table import PredictionTable
from ltds.nn.adapter import ResidualAdapter
from toy import recorded, toy_session

DIM = 12


def features_of_toy(toy: Manifest) -> np.ndarray:
    """A vector per image that tells its class, with noise."""
    rng = numpy_generator(0, "tests/features")
    centres = rng.normal(size=(len(toy.classes), DIM))
    return np.abs(centres[toy.labels] + 0.3 * rng.normal(size=(len(toy), DIM))).astype(np.float16)


@pytest.fixture
def file(toy: Manifest, tmp_path: Path) -> Path:
    path = tmp_path / "features.npz"
    write_features(path, features_of_toy(toy), toy.paths)
    return path


def config_of(toy: Manifest, file: Path, method: str, **groups: dict[str, object]):
    base = {
        "data": {"root": str(toy.root), "held_out": "wax", "features": str(file), "batch_size": 8},
        "schedule": {"epochs": 3, "steps_per_epoch": 2},
        "run": {"threads": 1, "device": "cpu"},
        "method": {"name": method},
    }
    return resolve(base, groups)


METHODS = ["agg", "crt", "tau-norm", "cumix", "remix", "epi-fcr", "daml", "mldg", "masf", "isda", "ltds", "ltds-paper"]
METHODS += ["boda", "boda-crt"]


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_method_trains_resumes_and_loads(toy: Manifest, tmp_path: Path, file: Path, method: str) -> None:
    from ltds.engine.assemble import assemble

    config = config_of(toy, file, method)
    assert config.backbone.name == "adapter"
    straight = RunDirectory(tmp_path / "straight")
    train_new_run(straight, config, toy)
    session = assemble(config, toy)
    broken = recorded(session, tmp_path / "broken")
    train(session, broken, stop_after=3)
    resume_run(broken)
    assert straight.best_checkpoint.read_bytes() == broken.best_checkpoint.read_bytes()
    table = PredictionTable.load(straight.predictions_file("test"))
    vectors = FeatureVectors.read(file, toy).values[table.rows]
    model = load_model(straight.path, device="cpu")
    np.testing.assert_array_equal(model.logits(vectors, batch_size=999), table.logits)
    assert model.predict(vectors[:2])[0].classes[0][0] in toy.classes


def test_vectors_are_divided_by_the_spread_of_the_training_vectors(toy: Manifest, file: Path) -> None:
    from ltds.engine.assemble import assemble

    session = assemble(config_of(toy, file, "agg"), toy)
    batch = session.batch(0)
    sources = np.concatenate([toy.rows("train", name) for name in ("ink", "oil")])
    spread = features_of_toy(toy)[sources].astype(np.float64).std()
    expected = features_of_toy(toy)[batch.rows.numpy()].astype(np.float64) / spread
    np.testing.assert_allclose(batch.images.numpy(), expected, rtol=1e-5)


def test_an_adapter_starts_as_the_features_themselves() -> None:
    x = torch.randn(3, 5).abs()
    assert torch.equal(ResidualAdapter(5, 7)(x), x)
    adapter = ResidualAdapter(5, 7)
    with torch.no_grad():
        adapter.up.weight.fill_(1.0)
    adapter.reset_parameters()
    assert torch.equal(adapter(x), x)


def test_paths_may_have_other_leading_folders(toy: Manifest, tmp_path: Path) -> None:
    values, file = features_of_toy(toy), tmp_path / "f.npz"
    order = np.random.default_rng(0).permutation(len(toy))
    write_features(file, values[order], ["/".join(toy.paths[i].split("/")[1:]) for i in order])
    np.testing.assert_array_equal(FeatureVectors.read(file, toy).values, values.astype(np.float32))


def test_images_of_two_folders_never_share_a_vector(toy: Manifest, tmp_path: Path) -> None:
    n, file = len(toy), tmp_path / "f.npz"
    paths = ("A/cat/1.jpg", "B/cat/1.jpg", *(f"A/dog/{i}.jpg" for i in range(n - 2)))
    write_features(file, features_of_toy(toy)[1:], [path[2:] for path in paths[1:]])
    with pytest.raises(DataError, match=f"none for 2 of {n} images, such as 'A/cat/1.jpg'"):
        FeatureVectors.read(file, replace(toy, paths=paths))
    write_features(file, features_of_toy(toy)[1:], ["cat/1.jpg", *(path[2:] for path in paths[2:])])
    with pytest.raises(DataError, match=f"none for 1 of {n} images, such as 'B/cat/1.jpg'"):
        FeatureVectors.read(file, replace(toy, paths=("cat/1.jpg", *paths[1:])))


def test_files_that_do_not_fit_are_refused_in_words(toy: Manifest, tmp_path: Path) -> None:
    values, file = features_of_toy(toy), tmp_path / "f.npz"
    with pytest.raises(DataError, match=r"nothing: it does not exist.*Expected layout: an .npz"):
        FeatureVectors.read(file, toy)
    write_features(file, values[:-1], toy.paths[:-1])
    with pytest.raises(DataError, match=rf"none for 1 of {len(toy)} images, such as '{toy.paths[-1]}'"):
        FeatureVectors.read(file, toy)
    broken = values.copy()
    broken[3, 2] = np.nan
    np.savez(file, features=broken, paths=np.array(toy.paths))
    with pytest.raises(DataError, match=f"NaN or infinity for '{toy.paths[3]}'"):
        FeatureVectors.read(file, toy)
    np.savez(file, features=values, paths=np.arange(len(values)))
    with pytest.raises(DataError, match=r"'paths' in .* texts"):
        FeatureVectors.read(file, toy)
    np.savez(file, features=values[:, 0], paths=np.array(toy.paths))
    with pytest.raises(DataError, match=r"'features' in .*\(N,D\) of floats"):
        FeatureVectors.read(file, toy)
    twice = (*toy.paths, toy.paths[5])
    write_features(file, np.concatenate([values, values[5:6]]), twice)
    np.testing.assert_array_equal(FeatureVectors.read(file, toy).values, values.astype(np.float32))
    write_features(file, np.concatenate([values, values[5:6] + 1]), twice)
    with pytest.raises(DataError, match=f"one for each path, but got two different ones for '{toy.paths[5]}'. Write"):
        FeatureVectors.read(file, toy)
    file.write_bytes(b"no archive")
    with pytest.raises(DataError, match="a file of features"):
        FeatureVectors.read(file, toy)


def test_only_files_that_can_be_read_are_written(toy: Manifest, tmp_path: Path) -> None:
    values, file = features_of_toy(toy), tmp_path / "f.npz"
    write_features(file, values, [Path(path) for path in toy.paths])
    np.testing.assert_array_equal(FeatureVectors.read(file, toy).values, values.astype(np.float32))
    file.unlink()
    for out, features, paths, said in (
        (file, values[:3], toy.paths, f"3 vectors for {len(toy)} paths"),
        (file, values[:, 0], toy.paths, rf"an array \(N,D\), but got an array \({len(toy)},\)"),
        (file, values[:, :0], toy.paths, rf"an array \({len(toy)}, 0\)"),
        (file, values, range(len(toy)), r"texts, but got 0 \(int\)"),
        (tmp_path / "f", values, toy.paths, r"named \*.npz, but got '.*f'"),
    ):
        with pytest.raises(DataError, match=said):
            write_features(out, features, paths)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("number", "said"), [(np.nan, "nan"), (-np.inf, "-inf"), (65_536.0, "65536"), (-1e9, "-1e[+]09")]
)
def test_features_that_half_precision_cannot_hold_are_not_written(
    toy: Manifest, tmp_path: Path, number: float, said: str
) -> None:
    values, file = features_of_toy(toy).astype(np.float64), tmp_path / "f.npz"
    values[3, 2] = number
    with pytest.raises(DataError, match=rf"from -65504 to 65504, but got {said} for '{toy.paths[3]}'\. Scale them"):
        write_features(file, values, toy.paths)
    assert not file.exists()


def test_features_are_written_to_a_path_that_is_a_text(toy: Manifest, tmp_path: Path) -> None:
    values = features_of_toy(toy)
    values[3, 2] = 65_504
    write_features(str(tmp_path / "f.npz"), values, toy.paths)
    np.testing.assert_array_equal(FeatureVectors.read(tmp_path / "f.npz", toy).values, values.astype(np.float32))


def test_settings_that_do_not_fit_features_are_refused(toy: Manifest, file: Path) -> None:
    from ltds.engine.assemble import assemble

    with pytest.raises(ConfigError, match="size has no effect on precomputed features"):
        config_of(toy, file, "agg", data={"size": 64})
    with pytest.raises(ConfigError, match=r"'resnet18' takes images. Use backbone.name=adapter"):
        assemble(config_of(toy, file, "agg", backbone={"name": "resnet18"}), toy)
    with pytest.raises(ConfigError, match=r"Expected data.features with backbone.name=adapter"):
        toy_session(toy, backbone={"name": "adapter"})
    with pytest.raises(ConfigError, match=r"backbone.adapter_width, which only the adapter"):
        toy_session(toy, backbone={"name": "tiny", "adapter_width": 8})


def test_other_features_make_another_run(toy: Manifest, tmp_path: Path, file: Path) -> None:
    from ltds.engine.assemble import assemble

    one = assemble(config_of(toy, file, "agg"), toy).identity
    other = tmp_path / "other.npz"
    write_features(other, features_of_toy(toy) + 1, toy.paths)
    assert assemble(config_of(toy, other, "agg"), toy).identity != one
    copy = tmp_path / "copy.npz"
    copy.write_bytes(file.read_bytes())
    assert assemble(config_of(toy, copy, "agg"), toy).identity == one, "the same vectors elsewhere are the same run"


def test_a_run_records_which_features_it_was_trained_on(toy: Manifest, tmp_path: Path, file: Path) -> None:
    """By their checksum, not by the name of a file, which may be overwritten later."""
    run = RunDirectory(tmp_path / "run")
    train_new_run(run, config_of(toy, file, "agg"), toy)
    assert run.read_environment()["files"] == {"data.features": hashlib.sha256(file.read_bytes()).hexdigest()}
