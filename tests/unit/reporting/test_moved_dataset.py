"""A report reads run directories only: the dataset may be gone."""

from __future__ import annotations

import shutil
from pathlib import Path

from ltds.engine.loop import train
from ltds.evaluation.thumbnails import load_thumbnails
from ltds.reporting import report
from toy import recorded, toy_session, write_dataset


def test_the_retrieval_figure_is_drawn_after_the_dataset_was_deleted(tmp_path: Path) -> None:
    manifest = write_dataset(tmp_path / "data")
    session = toy_session(manifest, "ltds")
    run = recorded(session, tmp_path / "run")
    train(session, run)
    images = load_thumbnails(run.thumbnails_file)
    assert set(images) <= set(manifest.rows("test").tolist())
    assert 3 <= len(images) <= 18, "three queries with five neighbours each"
    assert run.thumbnails_file.stat().st_size < 500_000
    shutil.rmtree(manifest.root)
    written = report(run.path, figures=tmp_path / "figures", figure_format="svg")
    (figure,) = (file for file in written if "nearest-images" in file.name)
    assert figure.read_text().count("<image ") == 18, "every query and neighbour is shown"
