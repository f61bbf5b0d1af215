"""The nearest training images of an image: values against a slow search, from a run, an export and features."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

import ltds
from ltds.core.errors import CheckpointError, ConfigError, DataError, LtdsError, LtdsWarning
from ltds.core.progress import Advance
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine import indexing
from ltds.engine.indexing import model_checksum
from ltds.engine.loop import train
from ltds.engine.preprocessing import ImagePreprocessing
from ltds.engine.training_index import make_index
from toy import recorded, toy_session, write_dataset


@pytest.fixture(scope="module")
def run(toy: Manifest, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    session = toy_session(toy)
    run = recorded(session, tmp_path_factory.mktemp("nearest") / "run")
    train(session, run)
    return run


def test_the_nearest_are_those_of_a_slow_search(toy: Manifest, run: RunDirectory) -> None:
    model = ltds.load_model(run.path)
    images = [toy.root / toy.paths[row] for row in toy.rows("test")[:5]]
    answers = model.predict(images, nearest=4, batch_size=2)
    assert [a.classes for a in answers] == [a.classes for a in model.predict(images, batch_size=2)]
    assert all(a.nearest == () for a in model.predict(images))
    rows = [row for row in toy.rows("train") if toy.domains[toy.domain_ids[row]] != "wax"]
    known = model.features([toy.root / toy.paths[row] for row in rows]).astype(np.float64)
    for answer, feature in zip(answers, model.features(images).astype(np.float64), strict=True):
        length = np.linalg.norm(known, axis=1) * np.linalg.norm(feature)
        cosine = {toy.paths[row]: float(c) for row, c in zip(rows, known @ feature / length, strict=True)}
        best = sorted(cosine.values(), reverse=True)[:4]
        assert [near.similarity for near in answer.nearest] == pytest.approx(best, abs=2e-3)
        for near in answer.nearest:
            assert near.similarity == pytest.approx(cosine[near.path], abs=2e-3)
            _, split, domain, label, _ = near.path.split("/")
            assert (split, near.domain, near.label) == ("train", domain, label)


def test_the_bar_of_the_index_ends_at_its_end(
    toy: Manifest, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "BATCH", 5)
    steps: list[int] = []

    class Steps:
        @contextmanager
        def track(self, name: str, total: int, done: int = 0) -> Iterator[Advance]:
            yield lambda amount=1, note="": steps.append(amount)
            assert total % 5
            assert sum(steps) == total

    indexing.compute_index(ltds.load_model(run.path), toy, "checksum", Steps())
    assert steps


def test_a_training_image_is_nearest_to_itself_and_has_its_thumbnail(toy: Manifest, run: RunDirectory) -> None:
    model = ltds.load_model(run.path)
    row = int(toy.rows("train", "oil")[0])
    (answer,) = model.predict([toy.root / toy.paths[row]], nearest=1)
    (near,) = answer.nearest
    assert near.similarity == pytest.approx(1, abs=1e-3)
    content = model.training_index().thumbnail(near.row)
    assert content is not None
    with Image.open(io.BytesIO(content)) as small, Image.open(toy.root / near.path) as image:
        assert small.format == "JPEG"
        difference = np.asarray(small, dtype=float) - np.asarray(image.convert("RGB"), dtype=float)
    assert np.abs(difference).mean() < 20


def test_the_index_is_kept_and_made_again_for_other_weights(toy: Manifest, run: RunDirectory, tmp_path: Path) -> None:
    copied = tmp_path / "run"
    shutil.copytree(run.path, copied)
    (copied / "nearest.npz").unlink(missing_ok=True)
    first = ltds.load_model(copied).training_index()
    content = (copied / "nearest.npz").read_bytes()
    again = ltds.load_model(copied).training_index()
    assert (again.features == first.features).all()
    assert (copied / "nearest.npz").read_bytes() == content
    assert len(first) == sum(len(toy.rows("train", d)) for d in ("ink", "oil"))
    model = ltds.load_model(copied)
    assert model_checksum(model) == first.model_checksum
    assert isinstance(model.record.preprocessing, ImagePreprocessing)
    larger = replace(model.record.preprocessing, decoded_side=99)
    model.record = replace(model.record, preprocessing=larger)
    assert model_checksum(model) != first.model_checksum, "the same weights see other pixels"
    other = replace(first, model_checksum="other")
    other.save(copied / "nearest.npz")
    assert ltds.load_model(copied).training_index().model_checksum == first.model_checksum
    assert (copied / "nearest.npz").read_bytes() == content


def test_an_export_has_it_if_asked(toy: Manifest, run: RunDirectory, tmp_path: Path) -> None:
    image = [toy.root / toy.paths[0]]
    without = ltds.export(run.path, tmp_path / "without")
    assert "nearest.npz" not in without.files
    with pytest.raises(CheckpointError, match=r"exported without them.*the argument 'nearest' of ltds\.export"):
        ltds.load_model(tmp_path / "without").predict(image, nearest=1)
    done = ltds.export(run.path, tmp_path / "with", nearest=True)
    assert "nearest.npz" in done.files
    assert "small copies of all training images" in (tmp_path / "with" / "README.md").read_text()
    expected = ltds.load_model(run.path).predict(image, nearest=3)
    assert ltds.load_model(tmp_path / "with").predict(image, nearest=3) == expected
    assert ltds.predict(tmp_path / "without", image, nearest=3, data=toy).predicted[0].answer == expected[0]
    with pytest.raises(ConfigError, match="only with the format safetensors"):
        ltds.export(run.path, tmp_path / "onnx", to="onnx", nearest=True)


def test_a_moved_and_a_changed_dataset(toy: Manifest, tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data")
    session = toy_session(data)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    (tmp_path / "data").rename(tmp_path / "moved")
    image = [tmp_path / "moved" / data.paths[0]]
    with pytest.raises(CheckpointError, match=r"is not at .* any more") as refused:
        ltds.predict(run.path, image, nearest=1)
    assert refused.value.arguments == ("data",)
    lost = tmp_path / "moved" / data.paths[0]
    lost.write_bytes(b"damaged")
    found = ltds.predict(run.path, [tmp_path / "moved" / data.paths[1]], nearest=99, data=tmp_path / "moved")
    assert data.paths[0] not in {near.path for near in found.predicted[0].answer.nearest}
    (tmp_path / "run" / "nearest.npz").unlink()
    manifest = (tmp_path / "moved" / "manifest.csv").read_text().replace("ink,train", "ink,val", 1)
    (tmp_path / "moved" / "manifest.csv").write_text(manifest)
    header = json.loads((tmp_path / "moved" / "manifest.json").read_text())
    del header["checksum"]
    (tmp_path / "moved" / "manifest.json").write_text(json.dumps(header))
    with pytest.raises(DataError, match="other images, classes or splits"):
        ltds.predict(run.path, [tmp_path / "moved" / data.paths[1]], nearest=1, data=tmp_path / "moved")


def test_a_photo_taken_sideways_is_turned_once(tmp_path: Path) -> None:
    """Its orientation (EXIF) must not be applied again to the picture that is upright already."""
    data = write_dataset(tmp_path / "data")
    run = recorded(session := toy_session(data), tmp_path / "run")
    train(session, run)
    row = int(data.rows("train", "oil")[0])
    photo = tmp_path / "data" / data.paths[row]
    shades = np.linspace(0, 255, 16 * 24 * 3).reshape(24, 16, 3).astype(np.uint8)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    Image.fromarray(shades).save(photo, exif=exif)
    model = ltds.load_model(run.path)
    index = model.training_index()
    (feature,) = model.features([photo])
    (place,) = np.flatnonzero(index.paths == data.paths[row])
    np.testing.assert_allclose(index.features[place], feature / np.linalg.norm(feature), atol=2e-3)
    content = index.thumbnail(int(place))
    assert content is not None
    assert Image.open(io.BytesIO(content)).size == (24, 16)


def test_a_model_of_features_finds_vectors(toy: Manifest, tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(len(toy), 12)).astype(np.float32)
    file = tmp_path / "f.npz"
    ltds.write_features(file, vectors, toy.paths)
    quick = {"data.batch_size": 8, "schedule.epochs": 1, "schedule.steps_per_epoch": 2}
    run = ltds.train(toy, method="agg", held_out="wax", out=tmp_path / "run", features=file, settings=quick)
    row = int(toy.rows("train", "ink")[3])
    (answer,) = ltds.load_model(run.path).predict(vectors[[row]], nearest=2)
    assert answer.nearest[0].path == toy.paths[row]
    assert answer.nearest[0].similarity == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("damage", ["short", "dtype", "ends", "garbage", "dim"])
def test_damaged_files_are_refused_in_words(run: RunDirectory, toy: Manifest, tmp_path: Path, damage: str) -> None:
    model = ltds.load_model(run.path)
    model.training_index()
    copied = tmp_path / "run"
    shutil.copytree(run.path, copied)
    file = copied / "nearest.npz"
    with np.load(file) as archive:
        arrays = dict(archive)
    if damage == "short":
        arrays["paths"] = arrays["paths"][:-1]
    elif damage == "dtype":
        arrays["features"] = arrays["features"].astype(np.float64)
    elif damage == "ends":
        arrays["ends"][-1] += 5
    elif damage == "dim":
        arrays["features"] = arrays["features"][:, :3].copy()
    np.savez(file, **arrays)
    if damage == "garbage":
        file.write_bytes(b"PK garbage")
    with pytest.raises(LtdsError, match="Delete"):
        ltds.load_model(copied).predict([toy.root / toy.paths[0]], nearest=1)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device")])
def test_a_folder_that_cannot_be_written_is_no_obstacle(
    run: RunDirectory, toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    copied = tmp_path / "run"
    shutil.copytree(run.path, copied)
    (copied / "nearest.npz").unlink(missing_ok=True)

    def refuse(stream: object, **columns: object) -> None:
        raise error

    monkeypatch.setattr("ltds.engine.training_index.np.savez", refuse)  # root may write anywhere
    with pytest.warns(LtdsWarning, match="could not be kept"):
        (answer,) = ltds.load_model(copied).predict([toy.root / toy.paths[0]], nearest=1)
    assert len(answer.nearest) == 1


def test_ties_are_in_the_order_of_the_index_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.array([[1, 0], [2, 0], [0, 1], [0, 0]], np.float32)
    index = make_index(features, [(str(i), "c", "d") for i in range(4)], [b"", b"ab", b"", b"c"], "x")
    wanted = [["0", "1", "2"], ["2", "0", "1"], ["0", "1", "2"]]
    queries = np.array([[3, 0], [0, 5], [0, 0]], np.float32)
    assert [[n.path for n in found] for found in index.search(queries, 3)] == wanted
    assert [index.thumbnail(i) for i in range(4)] == [None, b"ab", None, b"c"]
    monkeypatch.setattr("ltds.engine.training_index.BLOCK", 1)
    assert [[n.path for n in found] for found in index.search(queries, 3)] == wanted
