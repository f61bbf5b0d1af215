"""A cache that somebody shortens while a run reads it: a sentence and a run that can be resumed, not SIGBUS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from image_tensors import cached_image
from ltds.core.errors import DataError
from ltds.core.runs import RunDirectory
from ltds.data.cache import ImageCache
from ltds.data.read_at import ArrayOnDisk, OpenFile
from ltds.engine.loop import train
from ltds.engine.start import resume_run
from resuming import assert_same_outcome
from toy import recorded, toy_session, write_dataset

# In a process of its own: with a memory map it would end by SIGBUS.
TRAIN_AND_CUT = """
import os, sys
from pathlib import Path
from ltds.core.errors import DataError
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from toy import recorded, toy_session
data, folder = map(Path, sys.argv[1:])
session = toy_session(Manifest.read(data))
run = recorded(session, folder)
train(session, run, stop_after=3)
for file in data.glob(".cache/*/pixels-*.u8"):
    os.truncate(file, 100)
try:
    train(session, run)
except DataError as error:
    print(error)
"""


def test_a_run_whose_cache_is_cut_says_so_and_resumes_exactly(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data")
    session = toy_session(data)
    straight = recorded(session, tmp_path / "straight")
    train(session, straight)
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); {TRAIN_AND_CUT}"
    words = [sys.executable, "-c", code, str(data.root), str(tmp_path / "cut")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "pixels-00000.u8' to be read up to byte" in done.stdout
    assert "but got a file that now has 100 bytes" in done.stdout
    assert "resume it" in done.stdout
    cut = RunDirectory(tmp_path / "cut")
    resume_run(cut)
    assert_same_outcome(straight, cut)


def test_reading_where_there_is_no_positioned_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    data = write_dataset(tmp_path / "data")
    cache = ImageCache.open(data, 16)
    before = [cached_image(cache, row) for row in range(len(data))]
    monkeypatch.delattr("os.preadv")
    assert all((cached_image(cache, row) == image).all() for row, image in enumerate(before))


def test_rows_of_an_array_on_disk(tmp_path: Path) -> None:
    values = np.arange(60, dtype=np.float16).reshape(5, 3, 4)
    np.save(tmp_path / "a.npy", values)
    found = ArrayOnDisk(tmp_path / "a.npy")
    assert (len(found), found.shape) == (5, (5, 3, 4))
    np.testing.assert_array_equal(found[np.array([4, 0, 4])], values[[4, 0, 4]])
    with (tmp_path / "a.npy").open("r+b") as file:
        file.truncate(200)
    np.testing.assert_array_equal(found[np.array([1])], values[[1]])
    with pytest.raises(DataError, match=r"a\.npy' to be read up to byte 248, but got a file that now has 200 bytes"):
        found[np.array([4])]
    with pytest.raises(ValueError, match="not a complete array"):
        ArrayOnDisk(tmp_path / "a.npy")


def test_a_disk_that_fails_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="Is a directory"):  # what a read of a folder says
        OpenFile(tmp_path / "folder").read(0, (3,), np.dtype(np.uint8))
