"""Making stylised images: only what is missing, complete files, broken sources, equal results however it is cut."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ltds.core.errors import DataError
from ltds.data.styles import classical
from ltds.data.styles.make import Means, Order, is_whole, make_images
from ltds.data.styles.processes import run
from ltds.data.styles.record import claim_dataset, claim_folder


@pytest.fixture
def orders(tmp_path: Path) -> list[Order]:
    """Six images of two sizes, PNG and JPEG, in two styles."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(6):
        pixels = rng.integers(0, 256, (20, 24 if i % 2 else 32, 3), dtype=np.uint8)
        source = tmp_path / "in" / f"{i}.{'jpg' if i == 5 else 'png'}"
        source.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(source)
        style = "classical:oil" if i < 4 else "classical:pencil"
        found.append(Order(tmp_path / "out" / style.split(":")[1] / source.name, source, style))
    return found


def times(orders: list[Order]) -> list[int]:
    return [order.target.stat().st_mtime_ns for order in orders]


def test_each_image_in_its_style(orders: list[Order]) -> None:
    assert make_images(orders, Means({}, size=64)) == {}
    for order in orders[:2]:
        pixels = torch.from_numpy(np.array(Image.open(order.source))).permute(2, 0, 1)[None].float() / 255
        wanted = (classical.oil(pixels)[0].permute(1, 2, 0) * 255).round().byte().numpy()
        found = np.array(Image.open(order.target))
        assert np.abs(found.astype(int) - wanted).max() <= 1
    assert Image.open(orders[5].target).format == "JPEG"
    assert Image.open(orders[5].target).size == (24, 20)


def test_what_is_there_is_not_made_again(orders: list[Order]) -> None:
    make_images(orders[:3], Means({}))
    before = times(orders[:3])
    make_images(orders, Means({}))
    assert times(orders[:3]) == before
    orders[1].target.write_bytes(orders[1].target.read_bytes()[:-9])  # a copy cut short
    orders[5].target.unlink()
    assert [is_whole(order.target) for order in orders] == [True, False, True, True, True, False]
    make_images(orders, Means({}))
    assert all(is_whole(order.target) for order in orders)
    assert times(orders)[0] == before[0]


def test_leftovers_of_a_crash_are_swept_but_not_work_under_way(orders: list[Order]) -> None:
    folder = orders[0].target.parent
    folder.mkdir(parents=True)
    old, new = folder / ".0.png.x.part", folder / ".1.png.y.part"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (1, 1))
    make_images(orders, Means({}))
    assert (old.exists(), new.exists()) == (False, True)


def test_a_broken_image_is_named_and_the_others_are_made(orders: list[Order]) -> None:
    orders[2].source.write_bytes(orders[2].source.read_bytes()[:700])
    orders[3].source.unlink()
    problems = make_images(orders, Means({}, batch=2))
    assert problems.keys() == {str(orders[2].source), str(orders[3].source)}
    assert "truncated" in problems[str(orders[2].source)]
    assert "does not exist" in problems[str(orders[3].source)]
    assert [order.target.exists() for order in orders] == [True, True, False, False, True, True]


def test_batches_and_processes_change_nothing(orders: list[Order], tmp_path: Path) -> None:
    make_images(orders, Means({}, batch=1))
    again = [Order(tmp_path / "again" / order.target.name, order.source, order.style) for order in orders]
    make_images(again, Means({}, batch=2), jobs=2)
    for one, two in zip(orders, again, strict=True):
        difference = np.array(Image.open(one.target)).astype(int) - np.array(Image.open(two.target))
        assert np.abs(difference).max() <= (1 if one.target.suffix == ".png" else 4)


def test_large_images_come_down_to_size(orders: list[Order]) -> None:
    make_images(orders[:1], Means({}, size=10))
    assert Image.open(orders[0].target).size == (16, 10)


def test_a_name_that_cannot_be_written(orders: list[Order], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'.xyz'"):
        make_images([Order(tmp_path / "a.xyz", orders[0].source, "classical:oil")], Means({}))


def test_a_process_that_is_killed() -> None:
    with pytest.raises(DataError, match=r"2 processes that redraw.*images made so far are kept.*--jobs 1"):
        list(run(signal.raise_signal, [signal.SIGKILL] * 3, jobs=2))


def test_pictures_of_different_making_are_never_mixed(orders: list[Order], tmp_path: Path) -> None:
    out = tmp_path / "out"
    oil = orders[:4]
    make_images(orders, Means({}))
    claim_dataset(out, oil, Means({}, size=64))
    claim_dataset(out, orders, Means({}, size=64))
    assert json.loads((out / "stylize.json").read_text()).keys() == {"classical:oil", "classical:pencil"}
    with pytest.raises(DataError, match=r"made with size 32, but got size 64"):
        claim_dataset(out, oil, Means({}, size=32))
    (out / "stylize.json").write_text("[]")
    with pytest.raises(DataError, match="something else"):
        claim_dataset(out, oil, Means({}))


def test_settings_are_free_until_there_is_an_image(orders: list[Order], tmp_path: Path) -> None:
    out = tmp_path / "out"
    for size in (64, 32):  # a run stopped before its first image, then another
        claim_dataset(out, orders, Means({}, size=size))
    make_images(orders[4:], Means({}, size=32))
    claim_dataset(out, orders[:4], Means({}, size=48))  # of the oil images there is none yet
    with pytest.raises(DataError, match=r"'classical:pencil' images .* made with size 48, but got size 32"):
        claim_dataset(out, orders, Means({}, size=48))


def test_a_folder_is_of_one_style(orders: list[Order], tmp_path: Path) -> None:
    out, source = tmp_path / "out", tmp_path / "in"
    oil = [Order(out / order.source.name, order.source, "classical:oil") for order in orders]
    pencil = [order._replace(style="classical:pencil") for order in oil]
    claim_folder(out, pencil, Means({}), source)
    claim_folder(out, oil, Means({}, size=64), source)  # no image yet: nothing is mixed
    make_images(oil[:1], Means({}, size=64))
    record = (out / "stylize.json").read_text()
    claim_folder(out, oil, Means({}, size=64), source)
    with pytest.raises(DataError, match=r"a folder for 'classical:pencil' alone, but got images in classical:oil"):
        claim_folder(out, pencil, Means({}, size=64), source)
    with pytest.raises(DataError, match=r"made with size 32, but got size 64"):
        claim_folder(out, oil, Means({}, size=32), source)
    elsewhere = [order._replace(target=out / "new.png") for order in oil[:1]]
    with pytest.raises(DataError, match=r"made with source .*elsewhere, but got source .*in"):
        claim_folder(out, elsewhere, Means({}, size=64), tmp_path / "elsewhere")
    assert (out / "stylize.json").read_text() == record
    (out / "stylize.json").unlink()
    with pytest.raises(DataError, match=r"tells their style, but got '.*0.png' without it"):
        claim_folder(out, pencil, Means({}, size=64), source)
