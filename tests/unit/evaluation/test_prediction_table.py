from __future__ import annotations

import metrics_reference as slow
import numpy as np
import pytest

from ltds.core.errors import CheckpointError, DataError
from ltds.evaluation.table import PredictionTable


def table(n=6, classes=4):
    rng = np.random.default_rng(7)
    logits = rng.normal(size=(n, classes)).astype(np.float32)
    return PredictionTable(logits, rng.integers(0, classes, n), rng.integers(0, 2, n), np.arange(n) + 100)


def same(one, two):
    return all(
        np.array_equal(getattr(one, c), getattr(two, c)) and getattr(one, c).dtype == getattr(two, c).dtype
        for c in ("logits", "labels", "domains", "rows")
    )


def test_saved_and_loaded_is_the_same(tmp_path):
    file = tmp_path / "predictions" / "test.npz"
    table().save(file)
    assert same(PredictionTable.load(file), table())
    assert [f.name for f in file.parent.iterdir()] == ["test.npz"]


def test_a_missing_or_foreign_file_is_a_checkpoint_error(tmp_path):
    file = tmp_path / "test.npz"
    with pytest.raises(CheckpointError, match=r"complete table of predictions.*resume the run"):
        PredictionTable.load(file)
    for content in (b"", b"PK\x03\x04", b"not an archive"):
        file.write_bytes(content)
        with pytest.raises(CheckpointError):
            PredictionTable.load(file)
    with file.open("wb") as stream:
        np.save(stream, np.arange(3))
    with pytest.raises(CheckpointError):
        PredictionTable.load(file)


def test_a_file_without_a_column_or_with_objects_is_a_checkpoint_error(tmp_path):
    file = tmp_path / "test.npz"
    t = table()
    np.savez(file, logits=t.logits, labels=t.labels, domains=t.domains)
    with pytest.raises(CheckpointError, match="rows"):
        PredictionTable.load(file)
    np.savez(file, logits=t.logits, labels=t.labels, domains=t.domains, rows=np.array([object()] * 6))
    with pytest.raises(CheckpointError):
        PredictionTable.load(file)
    np.savez(file, logits=t.logits, labels=t.labels[:-1], domains=t.domains, rows=t.rows)
    with pytest.raises(CheckpointError, match="labels"):
        PredictionTable.load(file)


def test_damage_anywhere_is_noticed_or_harmless(tmp_path):
    """Cut short at any length, or with any byte changed, a file never gives other numbers."""
    file, whole = tmp_path / "test.npz", table(n=3, classes=2)
    whole.save(file)
    content = file.read_bytes()
    for length in range(0, len(content), 17):
        file.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            PredictionTable.load(file)
    for place in range(0, len(content), 3):
        for flipped in (1, 0x10, 0x80):
            file.write_bytes(content[:place] + bytes([content[place] ^ flipped]) + content[place + 1 :])
            try:
                loaded = PredictionTable.load(file)
            except CheckpointError:
                continue
            assert same(loaded, whole), (place, flipped)


@pytest.mark.parametrize(
    ("shape", "problem"), [("(2000, 1)", r"more in 'logits\.npy' than an array"), ("(1000, 4)", "Bad CRC-32")]
)
def test_a_changed_shape_is_noticed(tmp_path, shape, problem):
    """With another shape in its header an array still reads, and to other numbers: numpy alone does not notice."""
    file = tmp_path / "test.npz"
    table(n=2000, classes=2).save(file)
    file.write_bytes(file.read_bytes().replace(b"(2000, 2)", shape.encode()))
    if shape == "(2000, 1)":
        with np.load(file) as columns:
            assert columns["logits"].shape == (2000, 1)
    with pytest.raises(CheckpointError, match=problem):
        PredictionTable.load(file)


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "test.npz"
    table().save(file)

    def fail(stream, **columns):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(KeyboardInterrupt):
        table(n=9).save(file)
    monkeypatch.undo()
    assert same(PredictionTable.load(file), table())


def test_probabilities_are_a_float64_softmax_of_any_size_of_logit():
    logits = np.array([[1e4, 0, -1e4], [-1e4, -1e4, -1e4], [0.5, -np.inf, 2.0]], dtype=np.float32)
    p = PredictionTable(logits, np.zeros(3, np.int64), np.zeros(3, np.int64), np.arange(3)).probabilities
    assert p.dtype == np.float64
    np.testing.assert_allclose(p[:2], [[1, 0, 0], [1 / 3, 1 / 3, 1 / 3]])
    np.testing.assert_allclose(p[2], slow.softmax([0.5, -np.inf, 2.0]))
    np.testing.assert_allclose(table().probabilities, [slow.softmax(r) for r in table().logits.tolist()], rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": np.zeros(5, np.int64)}, r"logits \(N,C\)"),
        ({"logits": np.zeros(6, np.float32)}, r"logits \(N,C\)"),
        ({"labels": np.zeros((6, 4), np.int64)}, r"logits \(N,C\)"),
        ({"logits": np.zeros((6, 4))}, "float32"),
        ({"domains": np.zeros(6)}, "int64"),
        ({"logits": np.full((6, 4), np.nan, np.float32)}, "finite"),
        ({"logits": np.full((6, 4), np.inf, np.float32)}, "finite"),
        ({"logits": np.full((6, 4), -np.inf, np.float32)}, "finite"),
        ({"rows": np.array([1, 2, 3, 4, 5, 5])}, "each image once, but got 1 repeated"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change, words):
    columns = {c: getattr(table(), c) for c in ("logits", "labels", "domains", "rows")}
    with pytest.raises(DataError, match=words):
        PredictionTable(**(columns | change))
