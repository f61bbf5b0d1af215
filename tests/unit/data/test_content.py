"""The fingerprint of image files: the same for copies, another for other images, cheap for many."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ltds.core.errors import DataError
from ltds.core.rng import numpy_generator
from ltds.data import content
from ltds.data.content import BLOCK, fingerprint, full_content, sampled_content
from ltds.data.manifest import Manifest
from toy import write_dataset


@pytest.fixture
def data(tmp_path: Path) -> Manifest:
    return write_dataset(tmp_path / "data")


def brighter(manifest: Manifest, row: int) -> None:
    """Another image under the same name."""
    file = manifest.root / manifest.paths[row]
    pixels = np.asarray(Image.open(file))
    Image.fromarray(np.minimum(pixels, 254) + np.uint8(1)).save(file)


def test_copying_touching_and_moving_change_nothing(data: Manifest, tmp_path: Path) -> None:
    sampled, full = sampled_content(data), full_content(data)
    assert sampled is not None
    assert sampled != full
    shutil.copytree(data.root, tmp_path / "copy", copy_function=shutil.copyfile)  # other times
    copy = Manifest.read(tmp_path / "copy")
    assert (sampled_content(copy), full_content(copy), copy.identity) == (sampled, full, data.identity)
    os.utime(copy.root / copy.paths[0], (1, 1))
    moved = Manifest.read(copy.root.rename(tmp_path / "moved"))
    assert (sampled_content(moved), full_content(moved)) == (sampled, full)


@pytest.mark.parametrize("size", [0, 1, BLOCK, 10 * BLOCK])
def test_a_fingerprint_is_of_the_content_alone(tmp_path: Path, size: int) -> None:
    content = numpy_generator(0, "tests/content").bytes(size)
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "b").write_bytes(content)
    (tmp_path / "longer").write_bytes(content + b"0")
    first = fingerprint(tmp_path / "a")
    assert 0 <= first == fingerprint(tmp_path / "b") < 2**64
    others = {fingerprint(tmp_path / "longer")}
    for place in {0, size // 2, size - 1} if size else ():
        (tmp_path / "other").write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        others.add(fingerprint(tmp_path / "other"))
    assert first not in others
    assert len(others) == (4 if size > 2 else size + 1)


@pytest.mark.parametrize("size", [0, 1, 5, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 5 * BLOCK + 3])
def test_a_fingerprint_is_the_same_number_in_every_version(tmp_path: Path, size: int) -> None:
    content = numpy_generator(0, "tests/content").bytes(size)
    (tmp_path / "a").write_bytes(content)
    parts = [content[start : start + BLOCK] for start in (0, size // 2, max(0, size - BLOCK))]
    hashed = str(size).encode() + b"".join(b" %d " % len(part) + part for part in parts)
    assert fingerprint(tmp_path / "a") == int.from_bytes(hashlib.sha256(hashed).digest()[:8], "little")


def test_other_images_under_the_same_names_are_another_dataset(data: Manifest) -> None:
    before = sampled_content(data), full_content(data)
    brighter(data, 7)
    assert Manifest.read(data.root).identity == data.identity, "names and rows are the same"
    assert sampled_content(data) != before[0]
    assert full_content(data) != before[1]


def test_a_change_outside_the_sample_is_noticed_by_its_size_or_by_reading_all(
    data: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "SAMPLE", 3)
    sampled = {content.address(0, "content", i) % len(data) for i in range(3)}
    row = next(row for row in range(len(data)) if row not in sampled)
    file = data.root / data.paths[row]
    before, whole = (sampled_content(data), full_content(data)), file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert sampled_content(data) == before[0]
    assert full_content(data) != before[1]
    file.write_bytes(whole + b"!")
    assert sampled_content(data) != before[0]


def test_only_the_sample_is_opened(data: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(content, "SAMPLE", 10)
    monkeypatch.setattr(content, "_beginning", lambda file: opened.append(file) or b"")
    sampled_content(data)
    assert len(set(opened)) == len(opened) <= 10 < len(data)


def test_drawn_images_are_compared_by_their_pixels(data: Manifest) -> None:
    """Another version of the PNG library writes other bytes."""
    drawn = replace(data, provenance={"renderer": 1})
    before = sampled_content(drawn)
    for path in data.paths:
        with Image.open(data.root / path) as image:
            image.load()
        image.save(data.root / path, compress_level=0)
    assert sampled_content(drawn) == before
    brighter(data, 7)
    assert sampled_content(drawn) != before


def test_missing_images_have_no_fingerprint(data: Manifest) -> None:
    (data.root / data.paths[0]).unlink()
    assert sampled_content(data) is None
    with pytest.raises(DataError, match=r"image 'images/train/ink/ant/0\.png' to be a file that can be read"):
        full_content(data)
