"""What holds for any sampler, crop, jitter and shard, whatever the numbers."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from image_tensors import augmented, transformed
from ltds.core.rng import generator
from ltds.data.build.longtail import longtail_counts
from ltds.data.sampling import PER_CLASS, ClassBalanced, DomainBalanced
from ltds.data.transforms import EvalTransform, TrainTransform, crop_boxes

SEEDS = st.integers(0, 2**31)
few = settings(max_examples=30, deadline=None)


def picture(height: int, width: int, seed: int) -> torch.Tensor:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return torch.from_numpy(pixels).permute(2, 0, 1)


@few
@given(sizes=st.lists(st.integers(3, 40), min_size=1, max_size=4), batch=st.integers(1, 3), seed=SEEDS)
def test_no_row_comes_twice_within_a_pass(sizes: list[int], batch: int, seed: int) -> None:
    rows = [np.arange(1000 * k, 1000 * k + n) for k, n in enumerate(sizes)]
    sampler = DomainBalanced(rows, batch, seed, [str(k) for k in range(len(sizes))])
    for k, n in enumerate(sizes):
        steps = n // batch
        for first in (0, steps, 7 * steps):
            draws = np.concatenate([sampler(first + s)[k * batch : (k + 1) * batch] for s in range(steps)])
            assert len(set(draws)) == len(draws) == steps * batch
            assert set(draws) <= set(rows[k])


@few
@given(order=st.permutations(range(12)), seed=SEEDS, labels=st.lists(st.integers(0, 5), min_size=5, max_size=30))
def test_any_order_of_calls_gives_the_same_steps(order: list[int], seed: int, labels: list[int]) -> None:
    rows = np.arange(len(labels))

    def samplers() -> list[ClassBalanced | DomainBalanced]:
        return [
            ClassBalanced(rows, np.array(labels), 7, seed),
            DomainBalanced([rows, rows + 100], 3, seed, ("a", "b")),
        ]

    for one, other in zip(samplers(), samplers(), strict=True):
        shuffled = {step: one(step) for step in order}
        for step in range(12):
            np.testing.assert_array_equal(shuffled[step], other(step))


@few
@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any),
    batch=st.integers(1, 16),
    seed=SEEDS,
)
def test_classes_with_images_come_equally_often(counts: list[int], batch: int, seed: int) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    sampler = ClassBalanced(np.arange(len(labels)), labels, batch, seed)
    draws = np.concatenate([sampler(step) for step in range(30)])
    found = np.bincount(labels[draws], minlength=len(counts))
    present = np.array(counts) > 0
    assert (found[~present] == 0).all()
    assert found[present].max() - found[present].min() <= PER_CLASS, "a round gives each class as many images"
    for c in np.flatnonzero(present):
        images = np.bincount(draws, minlength=len(labels))[labels == c]
        assert images.max() - images.min() <= 1, "a class's own cycle shows each image once before any again"


@few
@given(seed=SEEDS, labels=st.lists(st.integers(0, 3), min_size=4, max_size=20), shift=st.integers(1, 50))
def test_row_ids_are_only_names(seed: int, labels: list[int], shift: int) -> None:
    rows = np.arange(len(labels))
    one = ClassBalanced(rows, np.array(labels), 5, seed)
    other = ClassBalanced(rows + shift, np.array(labels), 5, seed)
    for step in range(5):
        np.testing.assert_array_equal(one(step) + shift, other(step))


@few
@given(size=st.tuples(st.integers(1, 400), st.integers(1, 400)), seed=SEEDS)
def test_crops_lie_inside_the_image(size: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws = rng.random((50, 10)), rng.random((50, 10)), rng.random((50, 2))
    boxes = crop_boxes(np.array([size] * 50), *draws, (0.08, 1.0), (3 / 4, 4 / 3))
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] > 0).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= np.array(size)).all()


@few
@given(
    sizes=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=6),
    out=st.integers(1, 20),
    strength=st.floats(0, 3),
    seed=SEEDS,
)
def test_values_stay_those_of_an_image(sizes: list[tuple[int, int]], out: int, strength: float, seed: int) -> None:
    images = [picture(h, w, seed + k) for k, (h, w) in enumerate(sizes)]
    plain = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
    train = TrainTransform(out, brightness=strength, contrast=strength, saturation=strength, **plain)
    for result in (augmented(train, images, generator(seed, "test")), EvalTransform(out, **plain)(images)):
        assert result.shape == (len(sizes), 3, out, out)
        assert result.dtype == torch.float32
        assert 0 <= result.min() <= result.max() <= 1 + 1e-6


@few
@given(count=st.integers(1, 30), out=st.integers(1, 80), seed=SEEDS, data=st.data())
def test_any_part_of_a_batch_equals_that_part_of_the_whole(
    count: int, out: int, seed: int, data: st.DataObject
) -> None:
    images = [picture(20 + k % 5, 24, seed + k) for k in range(count)]
    transform = TrainTransform(out)
    draws = transform.draw(count, generator(seed, "test"))
    own = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=5, unique=True))
    part = transformed(transform, [images[i] for i in own], draws[own])
    assert torch.equal(part, transformed(transform, images, draws)[own])


@few
@given(level=st.integers(0, 255), size=st.tuples(st.integers(1, 40), st.integers(1, 40)), seed=SEEDS)
def test_a_grey_image_without_structure_only_changes_in_brightness(
    level: int, size: tuple[int, int], seed: int
) -> None:
    flat = torch.full((3, *size), level, dtype=torch.uint8)
    plain = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
    out = augmented(TrainTransform(8, brightness=0, **plain), [flat], generator(seed, "test"))
    # The grey weights sum to 0.9999, as torchvision's do, so that contrast and saturation darken by a hair.
    assert (out - level / 255).abs().max() < 2e-4


@few
@given(classes=st.integers(2, 200), low=st.integers(1, 50), more=st.integers(0, 2000))
def test_longtail_counts_fall_from_one_end_to_the_other(classes: int, low: int, more: int) -> None:
    counts = longtail_counts(classes, low + more, low)
    assert (counts[0], counts[-1]) == (low + more, low)
    assert (np.diff(counts) <= 0).all()
