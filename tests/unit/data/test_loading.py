"""The loader: pure in the step, prefetched without side effects, shards that make up the whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from image_tensors import augmented, cached_image
from ltds.core.errors import ConfigError, DataError
from ltds.core.ranks import Ranks
from ltds.core.rng import generator
from ltds.core.types import Batch
from ltds.data.cache import ImageCache
from ltds.data.inputs import ImageInputs
from ltds.data.loading import Loader, evaluation_batches, threads_worth_using
from ltds.data.manifest import Manifest
from ltds.data.sampling import ClassBalanced, DomainBalanced
from ltds.data.transforms import EvalTransform, TrainTransform

Dataset = Callable[..., Manifest]
SIZE, BATCH = 16, 6


def inputs(cache: ImageCache) -> ImageInputs:
    return ImageInputs(cache, TrainTransform(size=SIZE), EvalTransform(size=SIZE))


def loader(manifest: Manifest, held_out: str | None = "sketch", rank: int = 0, world: int = 1, seed: int = 0) -> Loader:
    task = manifest.task(held_out)
    rows = [manifest.rows("train", source) for source in task.sources]
    sampler = DomainBalanced(rows, BATCH, seed, task.sources)
    cache = ImageCache.open(manifest, SIZE, workers=1)
    return Loader(inputs(cache), manifest, task, sampler, seed, ranks=Ranks(rank, world))


def assert_same(one: Batch, other: Batch) -> None:
    for name in ("images", "labels", "domains", "rows"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


def threads_alive() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("ltds-prefetch")]


def test_batch_holds_the_rows_labels_and_source_indices(dataset: Dataset) -> None:
    manifest = dataset()
    batch = loader(manifest).batch(2)
    assert batch.images.shape == (2 * BATCH, 3, SIZE, SIZE)
    assert batch.images.dtype == torch.float32
    assert batch.images.is_contiguous()
    rows = batch.rows.numpy()
    np.testing.assert_array_equal(batch.labels, manifest.labels[rows])
    # Sources without 'sketch' are photo, paint: indices 0, 1, though paint is the manifest's domain 2.
    assert batch.domains.tolist() == [0] * BATCH + [1] * BATCH
    assert set(manifest.domain_ids[rows]) == {0, 2}
    assert set(manifest.split_ids[rows]) == {0}


def test_images_are_the_transform_of_the_cached_rows(dataset: Dataset) -> None:
    manifest = dataset()
    batch = loader(manifest, seed=3).batch(7)
    cache = ImageCache.open(manifest, SIZE)
    images = [cached_image(cache, int(row)) for row in batch.rows]
    assert torch.equal(batch.images, augmented(TrainTransform(size=SIZE), images, generator(3, "augment", 7)))


def test_steps_are_pure_and_differ(dataset: Dataset) -> None:
    manifest = dataset()
    one, other = loader(manifest), loader(manifest)
    other.batch(9)
    assert_same(one.batch(4), other.batch(4))
    assert not torch.equal(one.batch(4).images, one.batch(5).images)
    assert not torch.equal(one.batch(4).images, loader(manifest, seed=1).batch(4).images)


@pytest.mark.parametrize("prefetch", [0, 1, 2, 5])
def test_prefetched_batches_are_those_of_batch(dataset: Dataset, prefetch: int) -> None:
    source = loader(dataset())
    found = list(source.batches(3, 9, threads=prefetch))
    assert len(found) == 6
    for step, batch in enumerate(found, 3):
        assert_same(batch, source.batch(step))
    assert threads_alive() == []
    assert list(source.batches(4, 4, threads=prefetch)) == []


def test_leaving_early_leaves_no_thread(dataset: Dataset) -> None:
    batches = loader(dataset()).batches(0, 1000, threads=2)
    next(batches)
    assert threads_alive()
    del batches
    assert threads_alive() == []


@dataclass
class Failing:
    """A sampler that fails at step 3."""

    inner: DomainBalanced

    @property
    def groups(self) -> int:
        return self.inner.groups

    @property
    def batch(self) -> int:
        return self.inner.batch

    def __call__(self, step: int) -> np.ndarray:
        if step == 3:
            raise RuntimeError("step three")
        return self.inner(step)


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_prefetch_where_torch_leaves_them_a_core(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert threads_worth_using(torch.device("cpu")) == (2 if threads == 1 else 0)
        assert threads_worth_using(torch.device("meta")) == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_exception_reaches_the_caller_in_its_turn(dataset: Dataset, prefetch: int) -> None:
    manifest = dataset()
    task = manifest.task(None)
    inner = DomainBalanced([manifest.rows("train", s) for s in task.sources], BATCH, 0, task.sources)
    cache = ImageCache.open(manifest, SIZE)
    failing = Loader(inputs(cache), manifest, task, Failing(inner), 0)
    batches = failing.batches(0, 10, threads=prefetch)
    assert [len(next(batches)) for _ in range(3)] == [3 * BATCH] * 3
    with pytest.raises(RuntimeError, match="step three"):
        next(batches)
    assert threads_alive() == []


@pytest.mark.parametrize("world", [2, 3, 5])
def test_shards_together_are_the_whole(dataset: Dataset, world: int) -> None:
    manifest = dataset()
    whole = loader(manifest).batch(5)
    shards = [loader(manifest, rank=rank, world=world).batch(5) for rank in range(world)]
    sizes = [len(shard) for shard in shards]
    assert sum(sizes) == 2 * BATCH
    assert max(sizes) - min(sizes) <= 1
    for name in ("images", "labels", "domains", "rows"):
        assert torch.equal(torch.cat([getattr(shard, name) for shard in shards]), getattr(whole, name)), name


def test_the_whole_of_shards_is_known_on_the_host(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the meta device there are no values: the sampler knows the rows that the other ranks have loaded."""
    manifest = dataset()
    expected = loader(manifest).batch(5)
    monkeypatch.setattr(Ranks, "gathered", lambda self, rows, count: expected.images.to("meta"))
    ranked = loader(manifest, rank=1, world=3)
    whole = ranked.whole(ranked.batch(5), 5)
    assert whole.rows.device.type == "meta"
    np.testing.assert_array_equal(whole.host_labels, expected.labels)
    np.testing.assert_array_equal(whole.host_domains, expected.domains)
    assert [len(whole.of(domain)) for domain in (0, 1)] == [BATCH, BATCH]


def test_batch_that_cannot_be_shared_out(dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match=r"run\.ranks to be at most the 12 images of a step, but got 13\. Use run"):
        loader(dataset(), world=13)


def test_batches_of_mixed_domains_know_them(dataset: Dataset) -> None:
    manifest = dataset()
    task = manifest.task("photo")
    rows = np.concatenate([manifest.rows("train", s) for s in task.sources])
    sampler = ClassBalanced(rows, manifest.labels[rows], 10, 0)
    cache = ImageCache.open(manifest, SIZE)
    batch = Loader(inputs(cache), manifest, task, sampler, 0).batch(0)
    np.testing.assert_array_equal(batch.domains + 1, manifest.domain_ids[batch.rows.numpy()])


def test_a_cache_of_another_manifest_is_refused(dataset: Dataset) -> None:
    manifest, other = dataset(), dataset(per_pair=5, name="other")
    cache = ImageCache.open(other, SIZE)
    task = manifest.task(None)
    sampler = DomainBalanced([manifest.rows("train")], 4, 0, ("all",))
    with pytest.raises(DataError, match="Expected the image cache to be the one of manifest 'tiny'"):
        Loader(inputs(cache), manifest, task, sampler, 0)
    with pytest.raises(DataError, match="Expected the image cache to be the one of manifest 'tiny'"):
        evaluation_batches(inputs(cache), manifest, manifest.rows("test"))


def test_evaluation_batches_keep_the_order_of_rows(dataset: Dataset) -> None:
    manifest = dataset()
    cache, transform = ImageCache.open(manifest, SIZE), EvalTransform(size=SIZE)
    rows = np.random.default_rng(0).permutation(len(manifest))[:11]
    found = list(evaluation_batches(inputs(cache), manifest, rows, batch_size=4))
    assert [len(part) for _, part in found] == [4, 4, 3]
    np.testing.assert_array_equal(np.concatenate([part for _, part in found]), rows)
    images = torch.cat([pixels for pixels, _ in found])
    assert torch.equal(images, transform([cached_image(cache, row) for row in rows]))
    assert list(evaluation_batches(inputs(cache), manifest, rows[:0])) == []
    assert threads_alive() == []
