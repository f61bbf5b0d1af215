"""From a folder of images to a model at the command line, and what is said about folders that do not work."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command_line import Command, refused
from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine import start
from ltds.planning import begin
from ltds.planning.check import run as check_module

SHORT = [
    *("--set", "backbone.name=tiny", "--set", "data.size=16", "--set", "data.batch_size=4", "--set", "run.threads=1"),
    *("--set", "schedule.epochs=1", "--set", "schedule.steps_per_epoch=2", "--device", "cpu"),
]


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two domains, two classes, in a folder whose name needs quotes in a shell."""
    monkeypatch.setattr(check_module, "pretrained_is_installed", lambda: False)
    for domain in range(2):
        for label, name in enumerate(("cat", "chien d'eau")):
            for i in range(7):
                rng = numpy_generator(0, "tests/own", domain, label, i)
                pixels = rng.integers(0, 90, size=(24, 24, 3)).astype(np.uint8)
                pixels[..., label] += np.uint8(100)
                file = tmp_path / "my photos" / f"site {domain}" / name / f"{i}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(file)
    return tmp_path / "my photos"


def test_from_a_check_to_a_final_model(command: Command, photos: Path, tmp_path: Path) -> None:
    done = command("data", "check", "my photos", "--json", "check.json", "--out", "check.html")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verdict:" in done.stdout
    assert "To train: ltds train 'my photos' --estimate full" in done.stderr
    assert json.loads((tmp_path / "check.json").read_text())["images"] == 28
    assert "<h1>Check of my photos</h1>" in (tmp_path / "check.html").read_text()
    done = command("train", "my photos", "--estimate", "full", "--out", "my runs", "--method", "agg", *SHORT)
    assert done.returncode == 0, done.stderr
    before = done.stderr.index("Training in 'my runs'")
    assert done.stderr.index("my photos: 28 images of 2 classes in 2 domains") < before
    assert done.stderr.index("measured here") < before
    assert "ltds report 'my runs' --out report.html" in done.stderr
    assert "ltds predict 'my runs/final'" in done.stderr
    assert "The threshold for 'unknown' is a guess: it rests on" in done.stderr, "of 28 images, few are for validation"
    final = RunDirectory(tmp_path / "my runs" / "final")
    assert final.read_task().held_out is None
    assert [p.name for p in sorted((tmp_path / "my runs").iterdir())] == [
        "estimate-site_0",
        "estimate-site_1",
        "final",
        "series.json",
    ]
    another = shutil.copytree(tmp_path / "my runs" / "estimate-site_0", tmp_path / "my runs" / "z")  # not of the series
    metrics = json.loads((another / "metrics.json").read_text())
    metrics["per_domain"]["site 0"]["known_images"] = 999
    (another / "metrics.json").write_text(json.dumps(metrics))
    exported = command("export", "my runs/final", "--out", "model")
    assert exported.returncode == 0, exported.stderr
    card = (tmp_path / "model" / "README.md").read_text()
    assert "expect the first table above, and measure it there" in card
    for site in ("site 0", "site 1"):
        left_out = RunDirectory(tmp_path / "my runs" / f"estimate-{site.replace(' ', '_')}").read_metrics()
        unseen, seen = (m["per_domain"][site] for m in (left_out, final.read_metrics()))
        rows = [line for line in card.splitlines() if line.startswith(f"| {site} |")]
        assert [row.split(" | ")[1] for row in rows] == [f"{100 * row['accuracy']:.1f} %" for row in (unseen, seen)]
        assert [row.split(" | ")[3] for row in rows] == [str(row["known_images"]) for row in (unseen, seen)]
    assert command("export", "model", "--out", "again").returncode == 0
    assert (tmp_path / "again" / "README.md").read_text() == card, "the exported model knows it as well"
    refused(
        command("train", "my photos", "--estimate", "full", "--out", "my runs", *SHORT),
        "Resume it with: ltds train --resume 'my runs'",
    )
    resumed = command("train", "--resume", "my runs")
    assert resumed.returncode == 0, resumed.stderr


def test_methods_are_compared_on_a_folder(command: Command, photos: Path, tmp_path: Path) -> None:
    words = ["benchmark", "--data", "my photos", "--methods", "agg,bsce", "--held-out", "site 0", "--seeds", "0"]
    settings = ["--out", "c", "--jobs", "1", *SHORT[:-2], "--set", "run.device=cpu"]
    refused(command(*words, *settings), "Or add --plan, which builds the dataset")
    refused(command("benchmark", "my photos", "--plan"), "got the folder 'my photos'", "as: --data 'my photos'\n")
    refused(command("benchmark", "bestiary"), "got the built-in dataset", "Give it as: --data bestiary\n")
    done = command(*words, *settings, "--plan", "--set", "averaging.start=0.5")
    assert done.returncode == 0, done.stderr
    assert "Chosen for the images of my photos, for all runs" in done.stderr
    runs = [RunDirectory(path) for path in (tmp_path / "c" / "runs").iterdir()]
    assert [run.done for run in runs] == [True, True]
    plans = [json.loads(run.plan_file.read_text()) for run in runs]
    assert sorted(plan["choices"][0]["shown"] for plan in plans) == ["agg", "bsce"]
    assert all(choice["reason"] for plan in plans for choice in plan["choices"])
    averaging = [run.read_config()["averaging"] for run in runs]
    assert [(a["name"], a["start"]) for a in averaging] == [("ema", 0.5)] * 2


def test_a_check_that_finds_problems_exits_with_1(command: Command, photos: Path) -> None:
    (photos / "site 0" / "cat" / "empty.jpg").write_bytes(b"")
    done = command("data", "check", str(photos), "--json", "-")
    assert done.returncode == 1
    assert list(json.loads(done.stdout)["unreadable"]) == ["site 0/cat/empty.jpg"]
    refused(
        command("data", "check", str(photos), "--out", "check.txt"), "ends in .html", "Give it as: --out check.html"
    )
    refused(command("data", "check", "nowhere"), "nothing there")


def test_the_command_that_a_check_prints_works(command: Command, photos: Path) -> None:
    for site in ("site 0", "site 1"):  # one image of each class stays, too few for a test split
        for name in ("cat", "chien d'eau"):
            for i in range(1, 7):
                (photos / site / name / f"{i}.png").unlink()
    done = command("data", "check", "my photos")
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("To train: "))
    assert line == "To train: ltds train 'my photos' --held-out 'site 0'"
    settings = [word.replace("batch_size=4", "batch_size=2") for word in SHORT]
    refused(
        command("train", "my photos", "--estimate", "full", "--method", "agg", *settings),
        "Give it as: --estimate none --held-out 'site 0'",
    )
    done = command(*shlex.split(line)[3:], "--method", "agg", *settings)
    assert done.returncode == 0, done.stderr


def test_images_where_a_dataset_was_expected(command: Command, photos: Path, tmp_path: Path) -> None:
    for words in (["data", "info"], ["data", "show"], ["data", "embed", "--with", "minilm"]):
        done = command(*words, "my photos")
        refused(done, "a folder of images without a manifest.json")
        (build,) = (line for line in done.stderr.splitlines() if line.startswith("Build it with: "))
        assert "Or train on it: ltds train 'my photos'" in done.stderr
    pasted = shlex.split(build.removeprefix("Build it with: "))
    assert pasted[0] == "ltds"
    assert command(*pasted[1:]).returncode == 0
    assert "2 classes, 2 domains" in command("data", "info", "data/my photos").stdout


def test_layouts_that_do_not_work(command: Command, photos: Path, tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    shutil.copytree(photos / "site 0" / "cat", flat)
    refused(command("train", "flat", *SHORT), "7 images without a class", "flat/hospital-a/benign/001.jpg")
    deep = tmp_path / "deep" / "unpacked"
    shutil.copytree(photos, deep)
    refused(command("train", "deep", *SHORT), "Name that one instead: 'deep/unpacked'")
    (tmp_path / "none").mkdir()
    for words in (["train", "none", *SHORT], ["data", "check", "none"]):
        done = command(*words)
        refused(done, "no images in it, and no manifest.json")
        assert "--out" not in done.stderr, "where the output goes is not what is wrong"
    assert not (tmp_path / "runs").exists()


def test_damaged_files_and_circles_do_not_stop_training(command: Command, photos: Path) -> None:
    (photos / "site 0" / "cat" / "empty.png").write_bytes(b"")
    (photos / "site 0" / "cat" / "self").symlink_to("self")
    (photos / "site 1" / "cat" / "up").symlink_to(photos)
    done = command("train", "my photos", "--held-out", "site 1", "--method", "agg", "--out", "run", *SHORT)
    assert done.returncode == 0, done.stderr
    assert "Left out, as they cannot be decoded: site 0/cat/empty.png" in done.stderr
    assert "'site 1' is held out" in done.stderr
    assert "all 14 of them are test images" in done.stderr


def test_two_images_of_each_class(command: Command, tmp_path: Path) -> None:
    for domain in ("a", "b"):
        for label in ("x", "y"):
            for i in range(2):
                (tmp_path / "p" / domain / label).mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (20, 20), (i * 90, 50, 80)).save(tmp_path / "p" / domain / label / f"{i}.png")
    settings = [word.replace("batch_size=4", "batch_size=2") for word in SHORT]
    done = command("train", "p", "--out", "run", "--method", "agg", *settings)
    assert done.returncode == 0, done.stderr
    assert "4 for training, 0 for validation and 4 for test" in done.stderr
    assert "No domain is held out" in done.stderr


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(command: Command, photos: Path, tmp_path: Path) -> None:
    for folder in [photos, *(p for p in photos.rglob("*") if p.is_dir())]:
        folder.chmod(0o500)
    assert command("train", "my photos", "--method", "agg", "--out", "run", *SHORT).returncode == 0


def test_small_mistakes(command: Command, photos: Path, tmp_path: Path) -> None:
    done = command("evaluate", "nosuch")
    refused(done, "Expected 'nosuch' to be a run directory", "Name a folder that ltds has trained in")
    refused(command("data", "show", "bestiary", "--out", "sheet.txt"), "ends in .png", "Give it as: --out sheet.png")
    refused(command("train", "my photos", "--estimate", "one", *SHORT), "Give it as: --held-out VALUE\n")
    refused(command("train", "my photos", "--budget", "soon"), "Give it as: --budget 10m")
    refused(command("train"), "Expected a dataset", "Give it as: bestiary")
    assert not (tmp_path / "runs").exists()


def test_a_model_is_not_evaluated_on_images_that_it_was_trained_on(
    command: Command, photos: Path, tmp_path: Path
) -> None:
    words = ["train", "my photos", "--held-out", "site 1", "--method", "agg", "--out", "run", *SHORT]
    assert command(*words).returncode == 0
    seen = 7 * 2 - len(trained_on(tmp_path).rows("test", "site 0"))
    for site in ("site 0", "site 1"):
        (tmp_path / f"only {site}").mkdir()
        (tmp_path / f"only {site}" / site).symlink_to(photos / site)
    done = command("evaluate", "run", "--data", "only site 0")
    refused(done, f"but it has seen {seen} of the 14 images of 'only site 0'")
    built = RunDirectory(tmp_path / "run").read_config()["data"]["root"]
    hint = f"--data {shlex.quote(built)} --split test"
    assert f"Give it as: {hint}\n" in done.stderr
    assert command("evaluate", "run", *shlex.split(hint)).returncode == 0
    left_out = f"Left out, because the model has seen them in training: {seen} images"
    done = command("evaluate", "run", "--data", "only site 1")  # the held-out site is new to the model
    assert (done.returncode, "Left out" in done.stderr) == (0, False)
    done = command("evaluate", "run", "--data", "my photos", "--out", "both")
    assert (done.returncode, left_out in done.stderr) == (0, True)
    page = (tmp_path / "both" / "report.html").read_text()
    assert f"; {seen} were seen in training and are left out." in page
    (tmp_path / "run" / "seen.npy").unlink()  # as in a run of an earlier version
    assert left_out in command("evaluate", "run", "--data", "my photos").stderr
    shutil.rmtree(built)
    done = command("evaluate", "run", "--data", "my photos")
    assert done.returncode == 0, "what was trained on is not known any more"
    assert "were training images could not be checked" in done.stderr


def trained_on(folder: Path) -> Manifest:
    return Manifest.read(Path(RunDirectory(folder / "run").read_config()["data"]["root"]))


@pytest.mark.parametrize("folder", ["my run", "runs/my photos"])
def test_an_interrupt_says_how_to_go_on(
    command: Command, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    words = ["train", "my photos", "--method", "agg", *SHORT, *(["--out", folder] if folder == "my run" else [])]
    (tmp_path / "runs" / "another").mkdir(parents=True)
    RunDirectory(tmp_path / "runs" / "another").write_config({})  # unfinished, and of another command

    def interrupt(*_: object, **__: object) -> None:
        at_the_same_time = RunDirectory(tmp_path / "runs" / "a first")
        if not at_the_same_time.exists:
            at_the_same_time.write_config({})
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(begin, "plan_run", interrupt)
        done = command(*words)
    assert done.returncode == 130
    assert "nothing was trained yet. The same command starts it." in done.stderr
    assert "--resume" not in done.stderr
    for estimate in ([], ["--estimate", "full"]):
        with monkeypatch.context() as patch:
            patch.setattr(start, "train", interrupt)
            done = command(*words, *estimate)
        assert f"Interrupted. Continue with: ltds train --resume '{folder}'\n" in done.stderr
        assert command("train", "--resume", folder).returncode == 0
        shutil.rmtree(tmp_path / folder)
