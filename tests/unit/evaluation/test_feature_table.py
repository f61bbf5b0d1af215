"""FeatureTable: what figures read of a model's features."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ltds.evaluation.features import SIZE, FeatureTable, drawn_rows, to_float16
from ltds.evaluation.thumbnails import load_thumbnails


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    ids = np.arange(3, dtype=np.int64)
    table = FeatureTable(
        to_float16(np.eye(3)), ids, ids + 1, ids + 2, {"embeddings": to_float16(np.full((2, 2), np.nan))}
    )
    table.save(tmp_path / "features.npz")
    back = FeatureTable.load(tmp_path / "features.npz")
    assert back is not None
    for name in ("features", "labels", "domains", "rows"):
        np.testing.assert_array_equal(getattr(back, name), getattr(table, name))
    assert list(back.diagnostics) == ["embeddings"]
    assert np.isnan(back.diagnostics["embeddings"]).all()


def test_what_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    assert FeatureTable.load(tmp_path / "missing.npz") is None
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 no")
    assert FeatureTable.load(tmp_path / "broken.npz") is None
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    assert FeatureTable.load(tmp_path / "other.npz") is None


def test_every_run_draws_the_same_images_and_no_more_than_asked_for() -> None:
    rows = np.arange(100, 5000, dtype=np.int64)
    drawn = drawn_rows(rows)
    assert len(set(drawn)) == SIZE
    assert set(drawn) <= set(rows)
    np.testing.assert_array_equal(drawn, drawn_rows(rows))
    assert sorted(drawn_rows(rows[:7])) == rows[:7].tolist()


def test_to_float16_keeps_what_is_too_large_finite() -> None:
    assert to_float16(np.array([1e9, -1e9, 0.5])).tolist() == [65504.0, -65504.0, 0.5]


def test_what_does_not_fit_together_is_no_table(tmp_path: Path) -> None:
    """A damaged or foreign file costs the figures that need it, and nothing else."""
    good = {
        "features": np.eye(3, dtype=np.float16),
        "labels": np.arange(3),
        "domains": np.zeros(3, np.int64),
        "rows": np.arange(3),
    }
    file = tmp_path / "features.npz"
    changes = [
        {"labels": np.arange(2)},
        {"labels": np.arange(3.0)},
        {"rows": np.array([-1, 0, 1])},
        {"features": np.eye(3, dtype=np.int64)},
        {"features": np.zeros(3, np.float16)},
        {"diagnostics.embeddings": np.array(["a"])},
    ]
    for change in changes:
        np.savez(file, **{**good, **change})
        assert FeatureTable.load(file) is None, change
    np.savez(file, **good)
    assert FeatureTable.load(file) is not None
    content = file.read_bytes()
    for place in range(0, len(content), 17):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        FeatureTable.load(file)  # raises nothing
        load_thumbnails(file)
