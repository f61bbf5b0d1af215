"""An image outside of a dataset is preprocessed exactly as the cache and the evaluation do it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from image_tensors import cached_image
from ltds.data.cache import ImageCache
from ltds.data.decode import decode_tensor
from ltds.data.manifest import Manifest
from ltds.data.transforms import EvalTransform

SIDE = 48
SIZES = [(30, 40), (48, 48), (60, 47), (200, 150), (417, 333), (1000, 640)]


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """JPEG and PNG, smaller and larger than the side, one turned by its EXIF orientation, one transparent."""
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    paths = []
    for i, (width, height) in enumerate(SIZES):
        coarse = Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        image = coarse.resize((width, height), Image.Resampling.BICUBIC)
        exif = Image.Exif()
        exif[0x0112] = 6 if i == 4 else 1
        for ending, options in (("jpg", {"quality": 91, "exif": exif}), ("png", {})):
            paths.append(f"{i}.{ending}")
            image.save(root / paths[-1], **options)
    layer = Image.new("RGBA", (70, 60), (200, 30, 60, 90))
    layer.save(root / "transparent.png")
    paths.append("transparent.png")
    zeros = np.zeros(len(paths), np.int64)
    return Manifest(root, "mixed", ("a",), ("d",), tuple(paths), zeros, zeros, zeros)


def unread(file: Path) -> Image.Image:
    return Image.open(file)


def from_memory(file: Path) -> Image.Image:
    return Image.open(io.BytesIO(file.read_bytes()))


@pytest.mark.parametrize("source", [Path, str, Path.read_bytes, unread, from_memory])
def test_the_same_bits_as_the_cache(manifest: Manifest, source) -> None:
    cache = ImageCache.open(manifest, SIDE)
    for row, path in enumerate(manifest.paths):
        found = decode_tensor(source(manifest.root / path), SIDE)
        assert found.dtype == torch.uint8
        assert torch.equal(found, cached_image(cache, row)), path
        assert min(found.shape[1:]) <= SIDE


def test_an_image_that_was_read_before_is_taken_as_it_is(manifest: Manifest) -> None:
    cache = ImageCache.open(manifest, SIDE)
    for row, path in enumerate(manifest.paths):
        image = Image.open(manifest.root / path)
        image.load()
        found = decode_tensor(image, SIDE)
        assert found.shape == cached_image(cache, row).shape
        if path.endswith("png"):
            assert torch.equal(found, cached_image(cache, row)), path
        else:
            assert (found.int() - cached_image(cache, row).int()).abs().float().mean() < 2
    changed = Image.open(manifest.root / manifest.paths[0])
    changed.paste((1, 2, 3), (0, 0, *changed.size))
    assert decode_tensor(changed, SIDE)[:, 0, 0].tolist() == [1, 2, 3]


def test_the_caller_s_image_stays_as_it_is(manifest: Manifest) -> None:
    file = manifest.root / manifest.paths[-2]
    image = Image.open(file)
    decode_tensor(image, 8)
    assert image.size == Image.open(file).size
    assert np.array_equal(np.asarray(image), np.asarray(Image.open(file)))


def test_a_transform_survives_json() -> None:
    transform = EvalTransform(size=20, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    constants = json.loads(json.dumps(transform.to_dict()))
    assert constants.keys() == {"size", "resize", "mean", "std"}
    again = EvalTransform.from_dict(constants)
    assert again == transform
    image = torch.randint(0, 256, (3, 33, 41), dtype=torch.uint8)
    assert torch.equal(again([image]), transform([image]))
    with pytest.raises(ValueError, match="only known resize rule"):
        EvalTransform.from_dict({**constants, "resize": "stretch"})
    with pytest.raises(ValueError, match="3 numbers, but got 2 and 3"):
        EvalTransform.from_dict({**constants, "mean": [0.1, 0.2]})
