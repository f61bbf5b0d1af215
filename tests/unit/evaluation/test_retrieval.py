"""The images of the retrieval figure, and their thumbnails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import ExifTags, Image

from ltds.core.task import Task
from ltds.evaluation.features import FeatureTable, to_float16
from ltds.evaluation.retrieval import nearest_rows, retrieval_examples
from ltds.evaluation.thumbnails import load_thumbnails, make_thumbnails, save_thumbnails, thumbnail


def test_nearest_images_by_cosine() -> None:
    points = np.array([[1.0, 0], [5, 0.1], [0, 1], [1, 1], [0, 0]], dtype=np.float16)
    assert nearest_rows(points, 0).tolist() == [1, 3, 2, 4]
    assert nearest_rows(np.repeat(points, 2, axis=0), 0).tolist() == [1, 2, 3, 6, 7]
    assert nearest_rows(points[:2], 0).tolist() == [1]


def test_queries_are_of_a_head_a_middle_and_a_tail_class() -> None:
    counts = np.array([[5, 90, 20, 0]], dtype=np.int64)
    task = Task("toy", ("a", "b", "c", "open"), ("photo", "sketch"), "sketch", counts)
    labels, domains = np.array([3, 0, 1, 2, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    points = to_float16(np.eye(4)[labels])
    table = FeatureTable(points, labels, domains, np.arange(10, 16), {"projected": points})
    examples = retrieval_examples(table, task)
    assert [table.labels[e.query] for e in examples] == [1, 2, 0], "most frequent class first, open classes never"
    assert [e.query for e in examples] == [5, 3, 4], "in the held-out domain if there is such an image"
    assert examples[0].neighbours[0] == 2
    assert retrieval_examples(FeatureTable(points, labels, domains, table.rows), task) == [], "no semantic space"


def test_thumbnails_come_back_as_they_were(tmp_path: Path) -> None:
    Image.new("RGB", (200, 100), (7, 0, 0)).save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes(b"broken")
    assert thumbnail(tmp_path / "broken.png") is None
    images = make_thumbnails([(12, tmp_path / "a.png"), (5, tmp_path / "broken.png"), (6, tmp_path / "missing.png")])
    save_thumbnails(tmp_path / "thumbnails.npz", images)
    back = load_thumbnails(tmp_path / "thumbnails.npz")
    assert list(back) == [12]
    assert (back[12].shape, back[12].dtype, back[12][0, 0].tolist()) == ((48, 96, 3), np.uint8, [7, 0, 0])


def test_thumbnails_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    assert load_thumbnails(tmp_path / "missing.npz") == {}
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 no")
    assert load_thumbnails(tmp_path / "broken.npz") == {}
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    assert load_thumbnails(tmp_path / "other.npz") == {}


def test_thumbnails_show_images_as_the_network_sees_them(tmp_path: Path) -> None:
    """Upright, X-rays of 16 bits in greys instead of all white, transparent pixels white."""
    upright = np.zeros((40, 80, 3), np.uint8)
    upright[:, 40:] = 255
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6  # the camera was turned: the file holds the picture on its side
    Image.fromarray(np.rot90(upright).copy()).save(tmp_path / "sideways.png", exif=exif)
    shown = thumbnail(tmp_path / "sideways.png")
    assert shown is not None
    np.testing.assert_array_equal(shown, upright)

    grey = np.full((50, 50), 0x8000, np.uint16)
    grey[0, 0] = 0xFFFF
    Image.fromarray(grey).save(tmp_path / "xray.png")
    Image.new("RGBA", (50, 50), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    for name, expected in (("xray.png", 127), ("clear.png", 255)):
        shown = thumbnail(tmp_path / name)
        assert shown is not None
        assert shown.shape == (50, 50, 3)
        assert abs(float(shown[25, 25].mean()) - expected) <= 1, name
