"""The transforms against their slow twins, and what torchvision's definitions promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transforms_reference as twin
from torch import Tensor

from image_tensors import augmented, transformed
from ltds.core.errors import ConfigError
from ltds.core.pixels import IMAGENET_MEAN, IMAGENET_STD
from ltds.core.rng import generator
from ltds.data import transforms
from ltds.data.transforms import EvalTransform, TrainTransform, crop_boxes, jitter

LEVEL = 1 / 255 / 0.224  # one step of a byte, after normalisation


def pictures(*sizes: tuple[int, int]) -> list[Tensor]:
    """Smooth and noisy colour images (3,h,w), stored as the cache does: a view of (h,w,3) bytes."""
    rng = np.random.default_rng(7)
    images = []
    for h, w in sizes:
        y, x = np.mgrid[:h, :w]
        waves = [127 + 90 * np.sin(x / 5 + k) * np.cos(y / 7) for k in range(3)]
        pixels = (np.stack(waves, axis=2) + rng.integers(-30, 31, (h, w, 3))).clip(0, 255).astype(np.uint8)
        images.append(torch.from_numpy(pixels).permute(2, 0, 1))
    return images


def parts(row: np.ndarray) -> dict[str, object]:
    """A row of the table of draws, under the twin's names."""
    return {
        "area": row[:10],
        "ratio": row[10:20],
        "place": row[20:22],
        "flip": row[22],
        "strength": row[23:26],
        "order": row[26:29],
    }


def test_train_transform_agrees_with_its_slow_twin() -> None:
    images = pictures((40, 60), (60, 40), (24, 24), (17, 90), (90, 17), (33, 33), (12, 12), (50, 49))
    transform = TrainTransform(size=16)
    draws = transform.draw(len(images), generator(0, "test"))
    got = transformed(transform, images, draws).double().numpy()
    for image, row, pixels in zip(images, draws.numpy(), got, strict=True):
        want = twin.train(image.permute(1, 2, 0).numpy(), 16, parts(row))
        # torch rounds to bytes after each side, the twin once; jitter multiplies a step by at most 1.4^3.
        assert np.abs(pixels - want).max() <= 3.1 * LEVEL
        assert np.abs(pixels - want).mean() <= 0.5 * LEVEL


@pytest.mark.parametrize("size", [(40, 40), (16, 16), (40, 61), (61, 40), (9, 14), (16, 23)])
def test_eval_transform_agrees_with_its_slow_twin(size: tuple[int, int]) -> None:
    (image,) = pictures(size)
    got = EvalTransform(size=16)([image])[0].double().numpy()
    want = twin.evaluate(image.permute(1, 2, 0).numpy(), 16)
    assert np.abs(got - want).max() <= 1.01 * LEVEL


@pytest.mark.parametrize("size", [(40, 40), (16, 16), (9, 9)])
def test_train_without_chance_is_eval_for_square_images(size: tuple[int, int]) -> None:
    plain = TrainTransform(size=16, scale=(1, 1), ratio=(1, 1), flip=0, brightness=0, contrast=0, saturation=0)
    images = pictures(size, size)
    assert torch.equal(augmented(plain, images, generator(3, "test")), EvalTransform(size=16)(images))


def test_flip_one_mirrors_what_flip_zero_gives() -> None:
    images = pictures((30, 30), (20, 35))
    out = [
        augmented(
            TrainTransform(size=16, flip=flip, brightness=0, contrast=0, saturation=0), images, generator(1, "test")
        )
        for flip in (0, 1)
    ]
    assert torch.equal(out[0].flip(3), out[1])


def test_flip_happens_at_its_rate() -> None:
    draws = TrainTransform(size=8).draw(20_000, generator(0, "test"))
    assert abs((draws[:, 22] < 0.5).double().mean() - 0.5) < 0.015


def test_boxes_agree_with_the_twin_and_stay_inside() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 80, (2000, 2))
    area, shape, place = rng.random((2000, 10)), rng.random((2000, 10)), rng.random((2000, 2))
    boxes = crop_boxes(sizes, area, shape, place, (0.08, 1.0), (3 / 4, 4 / 3))
    for (h, w), u, v, p, box in zip(sizes.tolist(), area, shape, place, boxes.tolist(), strict=True):
        assert tuple(box) == twin.crop_box(h, w, u, v, p)
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 1).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= sizes).all()


def test_boxes_fall_back_to_the_centre_when_ten_tries_fail() -> None:
    full = np.ones((1, 10))  # the whole area: never fits but at the image's own shape
    boxes = [
        crop_boxes(np.array([size]), full, full / 2, np.zeros((1, 2)), (1.0, 1.0), (3 / 4, 4 / 3))[0].tolist()
        for size in ((30, 90), (90, 30), (30, 36))
    ]
    assert boxes == [[0, 25, 30, 40], [25, 0, 40, 30], [0, 0, 30, 36]]


def test_box_areas_and_ratios_are_spread_as_defined() -> None:
    rng = np.random.default_rng(1)
    count = 20_000
    sizes = np.full((count, 2), 1000)
    draws = rng.random((count, 10)), rng.random((count, 10)), rng.random((count, 2))
    boxes = crop_boxes(sizes, *draws, (0.08, 0.5), (3 / 4, 4 / 3))  # up to half the area every shape fits
    area = boxes[:, 2] * boxes[:, 3] / 1e6
    ratio = np.log(boxes[:, 3] / boxes[:, 2])
    np.testing.assert_allclose(np.quantile(area, [0, 0.25, 0.5, 0.75, 1]), np.linspace(0.08, 0.5, 5), atol=0.006)
    limit = np.log(4 / 3)
    np.testing.assert_allclose(np.quantile(ratio, [0, 0.25, 0.5, 0.75, 1]), np.linspace(-limit, limit, 5), atol=0.01)


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
def test_jitter_agrees_with_the_twin_in_every_order(order: list[int]) -> None:
    pixels = torch.stack(pictures((8, 9), (8, 9))).float()
    factors = torch.tensor([[1.4, 0.6, 1.3], [0.7, 1.4, 0.6]])
    got = jitter(pixels.clone(), factors, order)
    for image, f, result in zip(pixels, factors.tolist(), got, strict=True):
        want = twin.jitter(image.permute(1, 2, 0).numpy(), f, order)
        np.testing.assert_allclose(result.permute(1, 2, 0).numpy(), want, atol=2e-4)


def test_each_jitter_alone() -> None:
    pixel = torch.tensor([[100.0, 200.0], [50.0, 100.0], [10.0, 0.0]]).view(1, 3, 1, 2)
    grey = [0.2989 * 100 + 0.587 * 50 + 0.114 * 10, 0.2989 * 200 + 0.587 * 100]

    def alone(*factors: float) -> list[list[float]]:
        return jitter(pixel.clone(), torch.tensor([factors]), (0, 1, 2))[0, :, 0].tolist()

    np.testing.assert_allclose(alone(1.4, 1, 1), [[140, 255], [70, 140], [14, 0]], rtol=1e-5)
    mean = sum(grey) / 2
    np.testing.assert_allclose(alone(1, 0, 1), [[mean, mean]] * 3, rtol=1e-5)
    np.testing.assert_allclose(alone(1, 1, 0), [grey] * 3, rtol=1e-5)


def test_all_six_orders_come_equally_often() -> None:
    order = TrainTransform(size=8).draw(12_000, generator(2, "test"))[:, 26:29].argsort(dim=1)
    codes = (order * torch.tensor([9, 3, 1])).sum(1).bincount()
    found = codes[codes > 0]
    assert len(found) == 6
    assert (found - 2000).abs().max() < 200


def test_an_image_does_not_depend_on_its_neighbours_in_the_batch() -> None:
    images = pictures(*[(20 + k % 7, 30) for k in range(40)])
    transform = TrainTransform(size=15)
    draws = transform.draw(40, generator(5, "test"))
    whole = transformed(transform, images, draws)
    own = torch.tensor([3, 17, 22, 39])
    assert torch.equal(transformed(transform, [images[i] for i in own], draws[own]), whole[own])


def test_values_at_large_size_do_not_depend_on_the_number_of_threads() -> None:
    images = pictures((230, 250))
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(augmented(TrainTransform(size=224), images, generator(0, "test")))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)


def test_settings_each_change_the_outcome() -> None:
    images = pictures((30, 40), (40, 30))
    base = augmented(TrainTransform(size=16), images, generator(0, "test"))
    changed = {
        "scale": (0.5, 1.0),
        "ratio": (1.0, 1.1),
        "flip": 1.0,
        "brightness": 0.1,
        "contrast": 0.1,
        "saturation": 0.1,
        "mean": (0.5, 0.5, 0.5),
        "std": (1.0, 1.0, 1.0),
    }
    for name, value in changed.items():
        other = augmented(TrainTransform(size=16, **{name: value}), images, generator(0, "test"))
        assert not torch.equal(other, base), name


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"size": 0}, "Expected size to be at least 1 pixel, but got 0"),
        ({"size": 100_000}, "Expected size to be at most 4096 pixels, but got 100000"),
        ({"size": 8, "scale": (0.9, 0.1)}, "Expected scale to be 0 < low <= high"),
        ({"size": 8, "scale": (0.1, 1.5)}, "Expected scale to be shares of the image, at most 1"),
        ({"size": 8, "ratio": (0.0, 1.0)}, "Expected ratio to be 0 < low <= high"),
        ({"size": 8, "flip": 1.5}, r"Expected flip to be a probability in 0\.\.1, but got 1\.5"),
        ({"size": 8, "contrast": -0.1}, "Expected contrast to be at least 0"),
        ({"size": 8, "std": (0.0, 1.0, 1.0)}, "Expected std to be positive"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        TrainTransform(**settings)


def test_images_together_are_bit_for_bit_those_that_torch_resizes_alone() -> None:
    """As it was before: each crop a channels-last tensor of its own, then flipped, jittered and normalised."""
    images = pictures(*[(37, 37)] * 30, (32, 32), (40, 61), (61, 40), (32, 50), (5, 90))
    transform = TrainTransform(size=32)
    random = transform.draw(len(images), generator(0, "test"))
    random[30, :2], random[30, 10:12] = 1, 0.5  # the whole image, which is not resized
    table = random.numpy()
    sizes = np.array([image.shape[1:] for image in images])
    boxes = crop_boxes(sizes, table[:, :10], table[:, 10:20], table[:, 20:22], transform.scale, transform.ratio)
    factors = 0.6 + random[:, 23:26] * 0.8
    assert boxes[30].tolist() == [0, 0, 32, 32]
    got = transformed(transform, images, random)
    for i, (image, (top, left, height, width)) in enumerate(zip(images, boxes.tolist(), strict=True)):
        alone = resized(image[:, top : top + height, left : left + width], 32, 32)
        pixels = alone.flip(3) if table[i, 22] < 0.5 else alone
        order = table[i, 26:29].argsort().tolist()
        want = jitter(pixels.contiguous().float(), factors[i : i + 1].float(), order)
        assert torch.equal(got[i : i + 1], normalised(want)), i


def test_evaluation_together_is_bit_for_bit_that_of_images_alone() -> None:
    images = pictures((37, 37), (40, 61), (37, 37), (32, 32), (61, 40), (40, 61), (9, 14), (37, 37))
    got = EvalTransform(size=32)(images)
    for image, found in zip(images, got, strict=True):
        height, width = (int(32 * side / min(image.shape[1:])) for side in image.shape[1:])
        top, left = round((height - 32) / 2), round((width - 32) / 2)
        whole = resized(image, height, width)
        assert torch.equal(found[None], normalised(whole[:, :, top : top + 32, left : left + 32].float()))


def resized(image: Tensor, height: int, width: int) -> Tensor:
    """(1,3,height,width) bytes."""
    source = image[None].contiguous(memory_format=torch.channels_last)
    return F.interpolate(source, size=(height, width), mode="bilinear", antialias=True)


def normalised(pixels: Tensor) -> Tensor:
    mean, std = TrainTransform(1).mean, TrainTransform(1).std
    scale = torch.tensor([1 / (255 * s) for s in std])[:, None, None]
    return pixels * scale - torch.tensor([m / s for m, s in zip(mean, std, strict=True)])[:, None, None]


def whole_then_cropped(image: Tensor, size: int) -> Tensor:
    """(3,size,size) the definition: the whole image resized, then its centre cut."""
    short = min(image.shape[1:])
    height, width = (int(size * side / short) for side in image.shape[1:])
    resized = F.interpolate(image[None], (height, width), mode="bilinear", antialias=True)[0]
    top, left = round((height - size) / 2), round((width - size) / 2)
    pixels = resized[:, top : top + size, left : left + size].float() / 255
    mean, std = (torch.tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
    return (pixels - mean) / std


@pytest.mark.parametrize("size", [(1, 2000), (2001, 1), (3, 700), (1500, 20), (20, 161), (9, 72), (31, 40)])
def test_long_images_are_cut_before_they_are_resized(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[tuple[int, int]] = []
    resize = transforms._ANTIALIASED

    def watched(images: Tensor, size: tuple[int, int], *rest: object) -> Tensor:
        sizes.append(size)
        return resize(images, size, *rest)

    monkeypatch.setattr(transforms, "_ANTIALIASED", watched)
    (image,) = pictures(size)
    (got,) = EvalTransform(size=32)([image])
    assert max(max(found) for found in sizes) <= 9 * 32 + 1
    assert (got - whole_then_cropped(image, 32)).abs().max() <= 1.01 * LEVEL
