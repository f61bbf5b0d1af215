"""Making stylised images: only what is missing, complete files, broken sources, equal results however it is cut."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ltds.core.errors import DataError
from ltds.data.styles import classical
from ltds.data.styles.make import StyleJob, StyleOptions, is_complete, make_images
from ltds.data.styles.record import claim_dataset, claim_folder


@pytest.fixture
def jobs(tmp_path: Path) -> list[StyleJob]:
    """Six images of two sizes, PNG and JPEG, in two styles."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(6):
        pixels = rng.integers(0, 256, (20, 24 if i % 2 else 32, 3), dtype=np.uint8)
        source = tmp_path / "in" / f"{i}.{'jpg' if i == 5 else 'png'}"
        source.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(source)
        style = "classical:oil" if i < 4 else "classical:pencil"
        found.append(StyleJob(tmp_path / "out" / style.split(":")[1] / source.name, source, style))
    return found


def times(jobs: list[StyleJob]) -> list[int]:
    return [job.target.stat().st_mtime_ns for job in jobs]


def test_each_image_in_its_style(jobs: list[StyleJob]) -> None:
    assert make_images(jobs, StyleOptions({}, size=64)) == {}
    for job in jobs[:2]:
        pixels = torch.from_numpy(np.array(Image.open(job.source))).permute(2, 0, 1)[None].float() / 255
        wanted = (classical.oil(pixels)[0].permute(1, 2, 0) * 255).round().byte().numpy()
        found = np.array(Image.open(job.target))
        assert np.abs(found.astype(int) - wanted).max() <= 1
    assert Image.open(jobs[5].target).format == "JPEG"
    assert Image.open(jobs[5].target).size == (24, 20)


def test_what_is_there_is_not_made_again(jobs: list[StyleJob]) -> None:
    make_images(jobs[:3], StyleOptions({}))
    before = times(jobs[:3])
    make_images(jobs, StyleOptions({}))
    assert times(jobs[:3]) == before
    jobs[1].target.write_bytes(jobs[1].target.read_bytes()[:-9])  # a copy cut short
    jobs[5].target.unlink()
    assert [is_complete(job.target) for job in jobs] == [True, False, True, True, True, False]
    make_images(jobs, StyleOptions({}))
    assert all(is_complete(job.target) for job in jobs)
    assert times(jobs)[0] == before[0]


def test_leftovers_of_a_crash_are_swept_but_not_work_under_way(jobs: list[StyleJob]) -> None:
    folder = jobs[0].target.parent
    folder.mkdir(parents=True)
    old, new = folder / ".0.png.x.part", folder / ".1.png.y.part"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (1, 1))
    make_images(jobs, StyleOptions({}))
    assert (old.exists(), new.exists()) == (False, True)


def test_a_broken_image_is_named_and_the_others_are_made(jobs: list[StyleJob]) -> None:
    jobs[2].source.write_bytes(jobs[2].source.read_bytes()[:700])
    jobs[3].source.unlink()
    problems = make_images(jobs, StyleOptions({}, batch=2))
    assert problems.keys() == {str(jobs[2].source), str(jobs[3].source)}
    assert "truncated" in problems[str(jobs[2].source)]
    assert "does not exist" in problems[str(jobs[3].source)]
    assert [job.target.exists() for job in jobs] == [True, True, False, False, True, True]


def test_batches_and_processes_change_nothing(jobs: list[StyleJob], tmp_path: Path) -> None:
    make_images(jobs, StyleOptions({}, batch=1))
    again = [StyleJob(tmp_path / "again" / job.target.name, job.source, job.style) for job in jobs]
    make_images(again, StyleOptions({}, batch=2), workers=2)
    for one, two in zip(jobs, again, strict=True):
        difference = np.array(Image.open(one.target)).astype(int) - np.array(Image.open(two.target))
        assert np.abs(difference).max() <= (1 if one.target.suffix == ".png" else 4)


def test_large_images_come_down_to_size(jobs: list[StyleJob]) -> None:
    make_images(jobs[:1], StyleOptions({}, size=10))
    assert Image.open(jobs[0].target).size == (16, 10)


def test_a_name_that_cannot_be_written(jobs: list[StyleJob], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'.xyz'"):
        make_images([StyleJob(tmp_path / "a.xyz", jobs[0].source, "classical:oil")], StyleOptions({}))


def test_pictures_of_different_making_are_never_mixed(jobs: list[StyleJob], tmp_path: Path) -> None:
    out = tmp_path / "out"
    oil = jobs[:4]
    make_images(jobs, StyleOptions({}))
    claim_dataset(out, oil, StyleOptions({}, size=64))
    claim_dataset(out, jobs, StyleOptions({}, size=64))
    assert json.loads((out / "stylize.json").read_text()).keys() == {"classical:oil", "classical:pencil"}
    with pytest.raises(DataError, match=r"made with size 32, but got size 64"):
        claim_dataset(out, oil, StyleOptions({}, size=32))
    (out / "stylize.json").write_text("[]")
    with pytest.raises(DataError, match="something else"):
        claim_dataset(out, oil, StyleOptions({}))


def test_settings_are_free_until_there_is_an_image(jobs: list[StyleJob], tmp_path: Path) -> None:
    out = tmp_path / "out"
    for size in (64, 32):  # a run stopped before its first image, then another
        claim_dataset(out, jobs, StyleOptions({}, size=size))
    make_images(jobs[4:], StyleOptions({}, size=32))
    claim_dataset(out, jobs[:4], StyleOptions({}, size=48))  # of the oil images there is none yet
    with pytest.raises(DataError, match=r"'classical:pencil' images .* made with size 48, but got size 32"):
        claim_dataset(out, jobs, StyleOptions({}, size=48))


def test_a_folder_is_of_one_style(jobs: list[StyleJob], tmp_path: Path) -> None:
    out, source = tmp_path / "out", tmp_path / "in"
    oil = [StyleJob(out / job.source.name, job.source, "classical:oil") for job in jobs]
    pencil = [job._replace(style="classical:pencil") for job in oil]
    claim_folder(out, pencil, StyleOptions({}), source)
    claim_folder(out, oil, StyleOptions({}, size=64), source)  # no image yet: nothing is mixed
    make_images(oil[:1], StyleOptions({}, size=64))
    record = (out / "stylize.json").read_text()
    claim_folder(out, oil, StyleOptions({}, size=64), source)
    with pytest.raises(DataError, match=r"a folder for 'classical:pencil' alone, but got images in classical:oil"):
        claim_folder(out, pencil, StyleOptions({}, size=64), source)
    with pytest.raises(DataError, match=r"made with size 32, but got size 64"):
        claim_folder(out, oil, StyleOptions({}, size=32), source)
    elsewhere = [job._replace(target=out / "new.png") for job in oil[:1]]
    with pytest.raises(DataError, match=r"made with source .*elsewhere, but got source .*in"):
        claim_folder(out, elsewhere, StyleOptions({}, size=64), tmp_path / "elsewhere")
    assert (out / "stylize.json").read_text() == record
    (out / "stylize.json").unlink()
    with pytest.raises(DataError, match=r"says their style, but got '.*0.png' without it"):
        claim_folder(out, pencil, StyleOptions({}, size=64), source)
