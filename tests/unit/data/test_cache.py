"""The cache holds what decode gives, is never half there, and notices when it no longer fits."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from image_tensors import cached_image
from ltds.core import parallel
from ltds.core.errors import ConfigError, DataError
from ltds.data import cache as cache_module
from ltds.data import parallel_decode
from ltds.data.cache import ImageCache, image_files_state
from ltds.data.decode import decode
from ltds.data.manifest import Manifest
from other_disks import fsync_of_writers

Dataset = Callable[..., Manifest]


class Bar:
    """A progress that remembers what it was told."""

    def __init__(self) -> None:
        self.tracked: list[tuple[str, int]] = []
        self.done = 0

    @contextmanager
    def track(self, title: str, total: int, done: int = 0) -> Iterator[Callable[..., None]]:
        self.tracked.append((title, total))

        def advance(amount: int = 1, note: str = "") -> None:
            self.done += amount

        yield advance


def folder(manifest: Manifest, size: int) -> Path:
    return manifest.root / ".cache" / f"{manifest.checksum[:16]}-{size}"


def assert_holds_the_images(cache: ImageCache, manifest: Manifest, size: int) -> None:
    assert len(cache) == len(manifest)
    for row, path in enumerate(manifest.paths):
        want = torch.from_numpy(decode(manifest.root / path, size)).permute(2, 0, 1)
        assert torch.equal(cached_image(cache, row), want)


def test_images_are_what_decode_gives_and_the_bar_tells_of_each(dataset: Dataset) -> None:
    manifest, bar = dataset(size=(20, 26)), Bar()
    cache = ImageCache.open(manifest, 16, workers=2, progress=bar)
    assert_holds_the_images(cache, manifest, 16)
    assert cached_image(cache, 0).shape == (3, 16, 20)
    assert (bar.tracked, bar.done) == ([("Decoding images", len(manifest))], len(manifest))
    assert os.listdir(manifest.root / ".cache") == [folder(manifest, 16).name], "nothing temporary is left"


def test_second_open_reads_no_image_file(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, bar = dataset(), Bar()
    first = ImageCache.open(manifest, 16)
    monkeypatch.setattr(parallel_decode, "decoded", None)
    second = ImageCache.open(manifest, 16, progress=bar)
    assert bar.tracked == []
    assert all(torch.equal(cached_image(first, r), cached_image(second, r)) for r in range(len(manifest)))


def test_one_cache_per_size(dataset: Dataset) -> None:
    manifest = dataset()
    assert cached_image(ImageCache.open(manifest, 8), 0).shape == (3, 8, 10)
    assert cached_image(ImageCache.open(manifest, 16), 0).shape == (3, 16, 20)
    assert len(os.listdir(manifest.root / ".cache")) == 2


def test_small_images_stay_as_they_are(dataset: Dataset) -> None:
    manifest = dataset(size=(9, 11))
    assert cached_image(ImageCache.open(manifest, 64), 0).shape == (3, 9, 11)


def test_a_changed_image_file_is_noticed(dataset: Dataset) -> None:
    manifest = dataset()
    file = manifest.root / manifest.paths[3]
    before = ImageCache.open(manifest, 16)
    old = cached_image(before, 3).clone()
    Image.new("RGB", (30, 30), (1, 2, 3)).save(file)
    after = ImageCache.open(manifest, 16)
    assert (cached_image(after, 3) == torch.tensor([1, 2, 3], dtype=torch.uint8)[:, None, None]).all()
    assert torch.equal(cached_image(before, 3), old), "who has opened the old cache keeps it"
    assert len(os.listdir(manifest.root / ".cache")) == 1


def test_a_touched_file_of_the_same_length_is_noticed(dataset: Dataset) -> None:
    manifest, bar = dataset(), Bar()
    ImageCache.open(manifest, 16)
    status = (manifest.root / manifest.paths[0]).stat()
    os.utime(manifest.root / manifest.paths[0], ns=(status.st_atime_ns, status.st_mtime_ns + 1000))
    ImageCache.open(manifest, 16, progress=bar)
    assert bar.done == len(manifest)


def test_caches_of_tiffs_alone_are_outdated_by_their_new_decoding(
    toy: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiffs = replace(toy, paths=tuple(path.replace(".png", ".TIF") for path in toy.paths))
    before = image_files_state(toy), image_files_state(tiffs)
    monkeypatch.setattr(cache_module, "TIFF_DECODING", b"")
    assert image_files_state(toy) == before[0]
    assert image_files_state(tiffs) != before[1]


@pytest.mark.parametrize("name", ["pixels-00000.u8", "index.npy", "source.txt"])
@pytest.mark.parametrize("damage", ["cut", "empty", "missing"])
def test_a_damaged_cache_is_built_again(dataset: Dataset, name: str, damage: str) -> None:
    manifest, bar = dataset(per_pair=1), Bar()
    ImageCache.open(manifest, 8)
    file = folder(manifest, 8) / name
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content[:-1] if damage == "cut" else b"")
    cache = ImageCache.open(manifest, 8, progress=bar)
    assert bar.done == len(manifest)
    assert_holds_the_images(cache, manifest, 8)
    assert file.read_bytes() == content


def test_all_bad_images_are_told_in_one_error_and_no_cache_is_left(dataset: Dataset) -> None:
    manifest = dataset()
    (manifest.root / manifest.paths[2]).write_bytes(b"")
    (manifest.root / manifest.paths[5]).unlink()
    whole = (manifest.root / manifest.paths[8]).read_bytes()
    (manifest.root / manifest.paths[8]).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError) as caught:
        ImageCache.open(manifest, 16, workers=2)
    title, *lines = str(caught.value).splitlines()
    assert title == f"3 of {len(manifest)} images of 'tiny' cannot be used:"
    assert [manifest.paths[r] in line for r, line in zip((2, 5, 8), lines, strict=True)] == [True] * 3
    assert "0 bytes" in lines[0]
    assert "does not exist" in lines[1]
    assert "complete, readable image" in lines[2]
    assert os.listdir(manifest.root / ".cache") == []


def test_of_many_bad_images_ten_are_shown(dataset: Dataset) -> None:
    manifest = dataset()
    for path in manifest.paths[:13]:
        (manifest.root / path).unlink()
    with pytest.raises(DataError) as caught:
        ImageCache.open(manifest, 16)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("13 of ")
    assert len(lines) == 12
    assert lines[-1] == "- ... and 3 more"


@pytest.mark.parametrize("worth", [0, 2**24])
def test_an_interrupted_build_leaves_nothing_no_thread_and_no_process(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch, worth: int
) -> None:
    manifest = dataset()
    monkeypatch.setattr(cache_module, "WORTH_PROCESSES", worth)
    monkeypatch.setattr(cache_module, "FEWEST_IMAGES", 5)
    started: list[subprocess.Popen[bytes]] = []
    start = parallel.start_worker

    def remembered() -> subprocess.Popen[bytes]:
        started.append(start())
        return started[-1]

    monkeypatch.setattr(parallel, "start_worker", remembered)

    class Stop(Bar):
        @contextmanager
        def track(self, title: str, total: int, done: int = 0) -> Iterator[Callable[..., None]]:
            def advance(amount: int = 1, note: str = "") -> None:
                raise KeyboardInterrupt

            yield advance

    with pytest.raises(KeyboardInterrupt):
        ImageCache.open(manifest, 16, workers=2, progress=Stop())
    assert os.listdir(manifest.root / ".cache") == []
    assert not [t for t in threading.enumerate() if t.name.startswith(("ltds-parallel", "ltds-flush"))]
    assert len(started) == (1 if worth == 0 else 0), "this process works too"
    assert all(process.returncode is not None for process in started)
    assert_holds_the_images(ImageCache.open(manifest, 16), manifest, 16)


def test_builders_at_once_do_not_harm_each_other(dataset: Dataset) -> None:
    manifest = dataset()
    start = threading.Barrier(4)
    caches: list[ImageCache] = []

    def build() -> None:
        start.wait()
        caches.append(ImageCache.open(manifest, 16, workers=1))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(caches) == 4
    for cache in caches:
        assert_holds_the_images(cache, manifest, 16)
    assert os.listdir(manifest.root / ".cache") == [folder(manifest, 16).name]


def test_a_builder_takes_the_cache_that_another_finished_meanwhile(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, write = dataset(), cache_module._write_pixels

    def finish_after_another(*args: Any) -> Any:
        monkeypatch.setattr(cache_module, "_write_pixels", write)
        ImageCache.open(manifest, 16)
        others.append(folder(manifest, 16).stat().st_ino)
        return write(*args)

    others: list[int] = []
    monkeypatch.setattr(cache_module, "_write_pixels", finish_after_another)
    assert_holds_the_images(ImageCache.open(manifest, 16), manifest, 16)
    assert [folder(manifest, 16).stat().st_ino] == others


def test_nobody_moves_a_new_cache_away_before_its_builder_has_opened_it(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, first_opens, second_moved = dataset(), threading.Event(), threading.Event()
    read, write, rename = cache_module._read, cache_module._write_pixels, os.rename
    first = threading.Thread(target=lambda: caches.append(ImageCache.open(manifest, 16)))
    second = threading.Thread(target=lambda: caches.append(ImageCache.open(manifest, 16)))
    caches: list[ImageCache] = []

    def slow_read(path: Path, *args: Any) -> Any:
        if threading.current_thread() is first and path.exists():
            first_opens.set()
            second_moved.wait(timeout=0.3)
        return read(path, *args)

    def write_later(*args: Any) -> Any:
        if threading.current_thread() is second:
            first_opens.wait()
        return write(*args)

    def slow_rename(old: Path, new: Path) -> None:
        rename(old, new)
        if threading.current_thread() is second and old == folder(manifest, 16):
            second_moved.set()
            time.sleep(0.3)

    monkeypatch.setattr(cache_module, "_read", slow_read)
    monkeypatch.setattr(cache_module, "_write_pixels", write_later)
    monkeypatch.setattr(os, "rename", slow_rename)
    for thread in (second, first):
        thread.start()
    for thread in (second, first):
        thread.join()
    assert len(caches) == 2
    for cache in caches:
        assert_holds_the_images(cache, manifest, 16)


def test_processes_make_what_this_one_makes(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "FEWEST_IMAGES", 2)
    manifest, bar = dataset(size=(20, 26)), Bar()
    ImageCache.open(manifest, 16)
    alone = {file.name: file.read_bytes() for file in folder(manifest, 16).iterdir()}
    shutil.rmtree(manifest.root / ".cache")
    monkeypatch.setattr(cache_module, "WORTH_PROCESSES", 0)
    cache = ImageCache.open(manifest, 16, workers=2, progress=bar)
    assert bar.done == len(manifest)
    assert {file.name: file.read_bytes() for file in folder(manifest, 16).iterdir()} == alone
    assert_holds_the_images(cache, manifest, 16)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_dataset_of_many_parts(dataset: Dataset, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(cache_module, "FEWEST_IMAGES", 5)
    monkeypatch.setattr(cache_module, "WORTH_PROCESSES", 0)
    manifest = dataset(size=(20, 26))
    assert len(manifest) % 5, "the last part is not full"
    cache = ImageCache.open(manifest, 16, workers=workers)
    assert_holds_the_images(cache, manifest, 16)
    assert len(list(folder(manifest, 16).glob("pixels-*.u8"))) == -(-len(manifest) // 5)
    (manifest.root / manifest.paths[2]).write_bytes(b"")
    (manifest.root / manifest.paths[8]).unlink()
    with pytest.raises(DataError) as caught:
        ImageCache.open(manifest, 16, workers=workers)
    title, *lines = str(caught.value).splitlines()
    assert title == f"2 of {len(manifest)} images of 'tiny' cannot be used:"
    assert [manifest.paths[r] in line for r, line in zip((2, 8), lines, strict=True)] == [True] * 2


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers for any dataset, in parts of five images."""
    monkeypatch.setattr(cache_module, "WORTH_PROCESSES", 0)
    monkeypatch.setattr(cache_module, "FEWEST_IMAGES", 5)


@pytest.mark.usefixtures("eager")
def test_what_a_dead_helper_leaves_is_decoded_here(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, bar, start = dataset(), Bar(), parallel.start_worker

    def doomed() -> subprocess.Popen[bytes]:
        helper = start()
        helper.kill()
        return helper

    monkeypatch.setattr(parallel, "start_worker", doomed)
    assert_holds_the_images(ImageCache.open(manifest, 16, workers=3, progress=bar), manifest, 16)
    assert bar.done == len(manifest)


@pytest.mark.usefixtures("eager")
def test_without_helpers_this_process_does_all(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, started, start = dataset(), [], parallel.start_worker

    def one_only() -> subprocess.Popen[bytes]:
        if started:
            raise BlockingIOError("no more processes")
        started.append(start())
        return started[0]

    monkeypatch.setattr(parallel, "start_worker", one_only)
    assert_holds_the_images(ImageCache.open(manifest, 16, workers=4), manifest, 16)
    assert started[0].returncode is not None


@pytest.mark.usefixtures("eager")
def test_what_only_this_process_can_read_is_read_here(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its script may have registered a plugin, or raised Pillow's limits; a worker knows nothing of that."""
    manifest, bar = dataset(), Bar()
    for path in manifest.paths:
        (manifest.root / path).write_bytes(b"of a kind of its own")
    monkeypatch.setattr(parallel_decode, "decoded", lambda path, size: Image.new("RGB", (size, size), (1, 2, 3)))
    cache = ImageCache.open(manifest, 4, workers=3, progress=bar)
    for row in range(len(manifest)):
        assert cached_image(cache, row).permute(1, 2, 0).tolist() == [[[1, 2, 3]] * 4] * 4
    assert bar.done == len(manifest)


def test_what_a_worker_cannot_write_is_told(dataset: Dataset, tmp_path: Path) -> None:
    manifest = dataset()
    image = str(manifest.root / manifest.paths[0])
    jobs = [parallel_decode.DecodeJob([image], 8, str(tmp_path / "no" / "pixels")) for _ in range(4)]
    with pytest.raises(FileNotFoundError, match="pixels"):
        parallel_decode.decode_in_parallel(jobs, 2, lambda amount=1, note="": None)


def test_too_many_open_files_are_no_damaged_cache(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = dataset()
    ImageCache.open(manifest, 16)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("ltds.data.read_at.os.open", full)
    with pytest.raises(DataError, match=r"Too many open files.*ulimit -n"):
        ImageCache.open(manifest, 16)


def test_few_files_for_any_number_of_images() -> None:
    assert [-(-rows // cache_module._images_per_file(rows)) for rows in (1, 32, 33, 500, 10_000, 1_300_000)] == [
        1,
        1,
        2,
        16,
        64,
        64,
    ]


def test_a_folder_that_cannot_be_written_to(dataset: Dataset) -> None:
    manifest = dataset()
    (manifest.root / ".cache").write_text("in the way")
    with pytest.raises(
        DataError, match=r"\.cache' to be a folder that can be written to, .* but got .*Free some space or"
    ):
        ImageCache.open(manifest, 16)


def test_size_must_be_positive(dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match="Expected the image size to be at least 1 pixel, but got 0"):
        ImageCache.open(dataset(), 0)


def test_images_stay_in_memory_as_far_as_there_is_room(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = dataset()
    cache = ImageCache.open(manifest, 16)
    first = cache.pixels([0, 1])
    again = cache.pixels([1, 0])
    assert again[0] is first[1]
    assert again[1] is first[0]
    monkeypatch.setattr("ltds.data.cache.KEPT", first[0].nbytes)
    small = ImageCache.open(manifest, 16)
    once, twice = small.pixels([0, 1]), small.pixels([0, 1])
    assert once[0] is twice[0]
    assert once[1] is not twice[1]
    assert np.array_equal(once[1], twice[1])
    assert np.array_equal(once[1], first[1])


def test_pixels_are_flushed_on_windows_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", fsync_of_writers)
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    jobs = [parallel_decode.DecodeJob([str(tmp_path / "a.png")], 8, str(tmp_path / "pixels"))]
    (done,) = parallel_decode.decode_in_parallel(jobs, 1, lambda amount=1, note="": None)
    assert done.shapes == [(8, 8)]
