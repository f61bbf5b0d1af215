"""What a run notes of the images that it has seen: their fingerprints, those of its source domains alone."""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from ltds.data.content import fingerprint
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.engine.seen_images import seen_fingerprints
from toy import recorded, toy_session


def test_two_runs_on_one_dataset_note_their_own_images(toy: Manifest, tmp_path: Path) -> None:
    shutil.copytree(toy.root, tmp_path / "data", ignore=shutil.ignore_patterns(".cache"))
    manifest = replace(toy, root=tmp_path / "data")
    for held_out in ("wax", "ink"):  # the second finds what the first has stored
        session = toy_session(manifest, data={"held_out": held_out})
        run = recorded(session, tmp_path / held_out)
        train(session, run)
        rows = [row for split in ("train", "val") for row in session.rows(split)]
        numbers = np.unique(np.array([fingerprint(manifest.root / manifest.paths[row]) for row in rows], np.uint64))
        expected = io.BytesIO()
        np.save(expected, numbers)
        assert (run.path / "seen.npy").read_bytes() == expected.getvalue()
        assert len(numbers) < len(manifest)
    assert len(list((tmp_path / "data" / ".cache").glob("fingerprints-*.npy"))) == 1


def test_without_images_nothing_is_noted(toy: Manifest, tmp_path: Path) -> None:
    assert seen_fingerprints(replace(toy, root=tmp_path), toy.task("wax")) is None
    assert list(tmp_path.iterdir()) == []
