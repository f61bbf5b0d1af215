"""`ltds data build NAME`: its help teaches every setting, and what it says after building."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

from ltds.cli.build import COMMANDS
from ltds.cli.build.command import describe
from ltds.cli.hints import find_command, hint
from ltds.cli.main import app as ltds
from ltds.core.errors import ConfigError
from ltds.data.datasets import BUILDERS
from ltds.data.datasets.lts import LtsConfig
from ltds.data.manifest import Manifest


def call(*words: str) -> Result:
    return CliRunner().invoke(ltds, ["data", *words], catch_exceptions=False)


def remedy(name: str, error: ConfigError) -> str:
    """What the command line adds to an error of `ltds data build NAME`."""
    return hint(error, find_command(typer.main.get_command(ltds), ["data", "build", name]))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for name in ("ant", "bee", "cat", "dog"):
        for i in range(8):
            file = tmp_path / "photos" / name / f"{i}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (10 * i, 90, 30)).save(file)
    return tmp_path / "photos"


def test_every_command_has_its_settings_in_its_help() -> None:
    assert COMMANDS.keys() == BUILDERS.keys()
    for name in COMMANDS:
        done = call("build", name, "--help")
        assert done.exit_code == 0
        assert "Settings for --set:" in done.stdout
    assert "styles=[hayao, shinkai, vangogh, ukiyoe]" in " ".join(call("build", "awa2-lts", "--help").stdout.split())
    odg = call("build", "pacs-odg", "--help").stdout
    assert "class_sets=" in odg
    assert "source_test=" not in odg  # it is an option
    lines = describe(LtsConfig)
    assert "fewest=2 (integer ≥ 1) number of domains of the rarest classes" in lines


def test_a_stylised_dataset_says_what_comes_next(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "lts"
    numbers = ("test_per_class=4", "val_per_class=0", "n_max=4", "n_min=2", "fewest=1")
    settings = [word for pair in (*numbers, 'styles=["classical:oil"]') for word in ("--set", pair)]
    done = call("build", "lts", "--source", str(photos), "--out", str(out), *settings)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip().splitlines()[-1] == str(out)
    made = Manifest.read(out)
    to_make = sum(path.startswith("images/oil/") for path in made.paths)
    assert f"{to_make} stylised images are to be made: ltds data stylize {out}" in done.stderr
    assert (
        f"photos-lts: {len(made.rows('train'))} train, 0 val, 16 test images of 4 classes in 2 domains" in done.stderr
    )
    assert f"{to_make} stylised images are not there yet" in call("info", str(out)).stdout


def test_info_tells_of_test_images_that_were_trained_on(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "pacs96"
    if not source.is_dir():
        pytest.skip("needs pacs96 from the folder 'shared' beside the repository")
    words = ["--source", str(source), "--splits", str(source / "splits"), "--order", "CPS-A"]
    out = tmp_path / "odg"
    done = call("build", "pacs-odg", *words, "--out", str(out), "--set", "damaged=unchecked")
    assert done.exit_code == 0, done.output
    note = "test images that are also trained on, unless the domain is held out: "
    counts = "cartoon 882 of 2344, photo 512 of 1670, sketch 1413 of 3929"
    assert note + counts in done.stderr
    assert note + counts in call("info", str(out)).stdout
    fair = tmp_path / "fair"
    call("build", "pacs-odg", *words, "--out", str(fair), "--source-test", "val", "--set", "damaged=unchecked")
    said = call("info", str(fair)).stdout
    assert "also trained on" not in said
    assert "also used to choose the model, unless the domain is held out: cartoon 99 of 237" in said


def test_a_setting_with_an_option_is_not_given_twice(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"given with --layout, but got --set. Write --layout class"):
        call("build", "folder", "--source", str(photos), "--out", str(tmp_path / "d"), "--set", "layout=class")
    done = call("build", "folder", "--source", str(photos), "--out", str(tmp_path / "d"), "--layout", "class")
    assert done.exit_code == 0
    assert Manifest.read(tmp_path / "d").domains == ("all",)


def test_a_wrong_option_is_answered_with_the_option(tmp_path: Path) -> None:
    words = ["--source", str(tmp_path), "--splits", str(tmp_path), "--set", "damaged=unchecked"]
    with pytest.raises(ConfigError, match=r"'order' was 'CPA-S'.*'CPS-A'") as wrong:
        call("build", "pacs-odg", *words, "--order", "CPA-S")
    assert remedy("pacs-odg", wrong.value) == "Give it as: --order VALUE"
    with pytest.raises(ConfigError, match="'source_test' was 'some'") as wrong:
        call("build", "pacs-odg", *words, "--order", "CPS-A", "--source-test", "some")
    assert remedy("pacs-odg", wrong.value) == "Give it as: --source-test VALUE"
    with pytest.raises(ConfigError, match="'seed' was -1") as wrong:
        call("build", "pacs-lt", *words, "--set", "seed=-1")
    assert remedy("pacs-lt", wrong.value) == "Give it as: --set seed=VALUE"


def test_images_that_are_passed_over_are_told(photos: Path, tmp_path: Path) -> None:
    (photos / "ant" / "0.jpg").rename(photos / "stray.jpg")
    out = tmp_path / "d"
    done = call("build", "folder", "--source", str(photos), "--out", str(out), "--layout", "class")
    said = "1 image was ignored because not in folders class: 'stray.jpg'"
    assert said in done.stderr
    assert said in call("info", str(out)).stdout


def test_lists_and_csv_by_options(photos: Path, tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    file.write_text("image,species\n" + "".join(f"{n}/{i}.jpg,{n}\n" for n in ("ant", "bee") for i in range(8)))
    words = ["--source", str(photos), "--out", str(tmp_path / "d"), "--set", "path=image", "--set", "label=species"]
    done = call("build", "lists", str(file), *words)
    assert done.exit_code == 0, done.output
    made = Manifest.read(tmp_path / "d")
    assert (made.name, made.classes) == ("photos", ("ant", "bee"))
    assert [made.counts(split).tolist() for split in ("train", "val", "test")] == [[[5, 5]], [[1, 1]], [[2, 2]]]


def test_an_unknown_dataset_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'pacs-odg'"):
        call("build", "pacs-ogd")
