"""Runs and reports notice images that were replaced by others of the same names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.runner import run_cells
from ltds.core.errors import CheckpointError
from ltds.data.content import sampled_content
from ltds.data.manifest import Manifest
from ltds.engine.start import resume_run
from ltds.reporting.collection import collect
from resuming import assert_same_outcome
from toy import forget, toy_config, trained, write_dataset


@pytest.fixture
def data(tmp_path: Path) -> Manifest:
    return write_dataset(tmp_path / "data")


def replace_images(manifest: Manifest) -> None:
    for path in manifest.paths:
        with Image.open(manifest.root / path) as image:
            pixels = np.asarray(image)
        Image.fromarray(255 - pixels).save(manifest.root / path)


def test_a_run_goes_on_with_a_copy_but_not_with_other_images(data: Manifest, tmp_path: Path) -> None:
    straight, run = trained(data, tmp_path / "straight"), trained(data, tmp_path / "run", stop_after=3)
    assert run.read_environment()["content"] == sampled_content(data)
    for path in data.paths:
        os.utime(data.root / path, (1, 1))  # as copying does
    resume_run(run)
    assert_same_outcome(straight, run)

    other = trained(data, tmp_path / "other", stop_after=3)
    replace_images(data)
    with pytest.raises(CheckpointError, match=r"'.*data' has others under the same names\. Restore the images"):
        resume_run(other)
    forget(other, "content")
    resume_run(other)
    assert other.done


def test_a_benchmark_does_not_put_other_images_beside_its_finished_runs(data: Manifest, tmp_path: Path) -> None:
    run = trained(data, tmp_path / "run")
    cell = GridCell(run, toy_config(data), "")

    class Idle:
        def submit(self, cells: object) -> object:
            assert cells == []
            return iter(())

    assert list(run_cells([cell], Idle(), tmp_path)) == []
    replace_images(data)
    with pytest.raises(CheckpointError, match="others under the same names"):
        list(run_cells([cell], Idle(), tmp_path))


def test_a_report_keeps_runs_on_other_images_apart(data: Manifest, tmp_path: Path) -> None:
    runs = [trained(data, tmp_path / "runs" / "0")]
    replace_images(data)
    runs.append(trained(data, tmp_path / "runs" / "1", seed=1))
    found = collect([tmp_path / "runs"])
    assert [dataset.name for dataset in found.datasets] == ["toy", "toy #2"]
    said = "'toy #2' has the names of 'toy' but other images: their runs are not compared."
    assert said in found.problems
    for run in runs:
        forget(run, "content")
    found = collect([tmp_path / "runs"])
    assert [dataset.name for dataset in found.datasets] == ["toy"], "runs made before the fingerprint stay comparable"
    assert " ".join(found.problems).count("other images") == 0
