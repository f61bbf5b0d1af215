"""Bad input at the real command line: a sentence and exit code 2, never a traceback, never half a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command_line import QUICK, Command, refused
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest


@pytest.fixture
def broken(toy: Manifest, tmp_path: Path) -> Path:
    """A copy of the toy dataset to break."""
    shutil.copytree(toy.root, tmp_path / "data", ignore=shutil.ignore_patterns(".cache"))
    return tmp_path / "data"


def edit_csv(root: Path, change: Callable[[list[str]], list[str]]) -> None:
    lines = (root / "manifest.csv").read_text().splitlines()
    (root / "manifest.csv").write_text("\n".join(change(lines)) + "\n")
    edit_json(root, lambda header: header.pop("checksum"))


def edit_json(root: Path, change: Callable[[dict[str, object]], object]) -> None:
    header = json.loads((root / "manifest.json").read_text())
    change(header)
    (root / "manifest.json").write_text(json.dumps(header))


def duplicate(root: Path) -> None:
    edit_csv(root, lambda lines: [*lines, "./" + lines[1]])


def unknown_class(root: Path) -> None:
    edit_csv(root, lambda lines: [*lines[:-1], lines[-1].replace(",fox,", ",foxx,")])


def empty_class(root: Path) -> None:
    edit_json(root, lambda header: header["classes"].append("gnu"))  # type: ignore[attr-defined]
    edit_json(root, lambda header: header.pop("checksum"))


def validation_only(root: Path) -> None:
    edit_csv(root, lambda lines: [line for line in lines if not line.endswith(",fox,wax,train")])


def no_test(root: Path) -> None:
    edit_csv(root, lambda lines: [line for line in lines if not line.endswith(",test")])


def latin(root: Path) -> None:
    (root / "manifest.csv").write_bytes("path,class,domain,split\nimages/é.png,ant,ink,train\n".encode("latin-1"))


def zero_bytes(root: Path) -> None:
    next((root / "images").rglob("*.png")).write_bytes(b"")


def missing_image(root: Path) -> None:
    next((root / "images").rglob("*.png")).unlink()


CASES = [
    (duplicate, "same file"),
    (unknown_class, "Did you mean 'fox'?"),
    (empty_class, "'gnu' has no image"),
    (validation_only, "validation images but no training image"),
    (no_test, "to have test images"),
    (latin, "UTF-8"),
    (zero_bytes, "0.png"),
    (missing_image, "0.png"),
    (lambda root: edit_json(root, lambda header: header.update(name=5)), "'name' was 5"),
    (lambda root: edit_json(root, lambda header: header.update(classes="abc")), "'classes' was 'abc'"),
    (lambda root: (root / "manifest.json").write_text("5"), "JSON object"),
    (lambda root: (root / "manifest.json").unlink(), "no manifest.json"),
]


@pytest.mark.parametrize(("breaks", "said"), CASES, ids=lambda case: getattr(case, "__name__", None))
def test_broken_datasets(
    command: Command, broken: Path, tmp_path: Path, breaks: Callable[[Path], object], said: str
) -> None:
    breaks(broken)
    done = command("train", "data", "--held-out", "wax", "--out", "run", *QUICK, cwd=tmp_path)
    refused(done, said)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "data=3"], "Expected 'data' to be a group of settings"),
        (["--set", "method=3"], "Expected 'method' to be a group of settings"),
        (["--set", "optimizer.lr=inf"], "'optimizer.lr' was inf"),
        (["--set", "optimizer.lr=inf"], "Give it as: --set optimizer.lr=VALUE (or in the TOML file)"),
        (["--set", "data.batch=8"], "'data.batch' is now called 'data.batch_size'"),
        (["--set", "data.batch=8"], "Give it as: --set data.batch_size=VALUE (or in the TOML file)"),
        (["--set", "data.batch_size=1"], "'data.batch_size' was 1"),
        (["--set", "optimizer.momentum=0.0", "--set", "optimizer.nesterov=true"], "nesterov needs a momentum"),
        (["--set", "data.root=elsewhere"], "Leave one of them out"),
        (["--method", ":X"], "package.module:Thing"),
        (["--method", "nowhere:X"], "No module named 'nowhere'"),
    ],
)
def test_broken_settings(command: Command, toy: Manifest, tmp_path: Path, words: list[str], said: str) -> None:
    base = ["train", str(toy.root), "--method", "agg", "--held-out", "wax", "--out", "run"]
    refused(command(*base, *words, cwd=tmp_path), said)
    assert not (tmp_path / "run").exists()


def test_every_kind_of_image_trains(command: Command, broken: Path, tmp_path: Path) -> None:
    files = sorted((broken / "images").rglob("*.png"))
    kinds = ("L", "LA", "P", "RGBA", "1", "I;16")
    for file, kind in zip(files, kinds, strict=False):
        with Image.open(file) as image:
            deep = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
            other = deep if kind == "I;16" else image.convert(kind)
        other.save(file)
    done = command("train", "data", "--held-out", "wax", "--out", "run", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_path_that_cannot_be_written_is_a_sentence(command: Command, toy: Manifest, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("")
    done = command("train", str(toy.root), "--held-out", "wax", "--out", "afile/run", *QUICK, cwd=tmp_path)
    refused(done, "'afile/run' to be a folder that can be written to, but got the file 'afile'")


def test_two_processes_never_train_in_one_folder(command: Command, toy: Manifest, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    with run.locked():
        words = [str(toy.root), "--held-out", "wax", "--out", "run"]
        refused(command("train", *words, *QUICK, cwd=tmp_path), "another process is training in it")
    assert not run.path.exists()


def test_settings_edited_after_the_checkpoint_are_noticed(command: Command, toy: Manifest, tmp_path: Path) -> None:
    words = [str(toy.root), "--held-out", "wax", "--out", "run"]
    assert command("train", *words, *QUICK, cwd=tmp_path).returncode == 0
    run = RunDirectory(tmp_path / "run")
    run.done_file.unlink()
    run.config_file.write_text(run.config_file.read_text().replace("epochs = 2", "epochs = 1"))
    refused(command("train", "--resume", "run", cwd=tmp_path), "the settings that", "has changed since")
    run.config_file.write_text("[broken")
    refused(command("train", "--resume", "run", cwd=tmp_path), "to be valid TOML")
    run.task_file.write_text("{}")
    refused(command("evaluate", "run", cwd=tmp_path), "to describe a task")


def test_the_demo_trains_reuses_and_continues(command: Command, tmp_path: Path) -> None:
    small = ["--set", "n_max=20", "--set", "n_min=4", "--set", "val_per_pair=1", "--set", "test_per_pair=1"]
    assert command("data", "build", "bestiary", *small, "--set", "size=16", cwd=tmp_path).returncode == 0
    words = ["demo", "--set", "schedule.epochs=1", "--set", "schedule.steps_per_epoch=2", "--set", "data.batch_size=8"]
    words += ["--set", "data.size=16", "--set", "backbone.width=8", "--set", "run.threads=1"]
    first = command(*words, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[-1] == "runs/demo/report.html"
    page = (tmp_path / "runs" / "demo" / "report.html").read_text()
    assert "agg" in page
    assert "ltds" in page
    assert len(list((tmp_path / "runs/demo/runs").iterdir())) == 2, "one run of each method"
    (agg,), (ltds,) = ((tmp_path / "runs/demo/runs").glob(f"{name}-woodblock-0-*") for name in ("agg", "ltds"))
    untouched = (agg / "DONE").stat().st_mtime_ns
    (ltds / "DONE").unlink()
    again = command(*words, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (agg / "DONE").stat().st_mtime_ns == untouched, "a finished run is not trained again"
    assert (ltds / "DONE").is_file(), "an unfinished run is continued"


def test_a_pipe_gets_plain_lines_when_verbose(command: Command, toy: Manifest, tmp_path: Path) -> None:
    words = ["-v", "train", str(toy.root), "--held-out", "wax", "--out", "run", *QUICK]
    done = command(*words, cwd=tmp_path)
    assert "Training: 4 of 4 loss" in done.stderr
    assert "--resume" in command("train", "-h", cwd=tmp_path).stdout


def test_bad_words_are_answered(toy: Manifest, tmp_path: Path, command: Command) -> None:
    train = ["train", str(toy.root), "--out", "run"]
    refused(command("train", "--out", "run"), "Give it as: bestiary")
    refused(command("train", "nowhere", "--out", "run"), "'nowhere' to be a folder", "'bestiary' is the dataset")
    refused(command(*train, "--held-out", "waxx"), "Did you mean 'wax'?")
    refused(command(*train, "--method", "dcc"), "Did you mean 'dc'?")
    refused(command(*train, "--set", "optimizer.lrr=1"), "Did you mean 'optimizer.lr'?")
    refused(command(*train, *QUICK, "--set", "data.batch_size=999"), "data.batch_size")
    refused(command(*train, "--set", "data=foo"), "Expected 'data' to be a group of settings, but got the value 'foo'")
    (tmp_path / "grid.toml").write_text('data = "bestiary"\nmethods = ["agg"]\n')
    refused(command("train", "--config", "grid.toml"), "Expected 'data' to be a group of settings")
    refused(command("trian"), "trian")
    refused(command("evaluate", "nowhere"), "nowhere")
    refused(command("report", "."))
    assert not (tmp_path / "run").exists(), "a refused run leaves nothing behind"


def test_a_truncated_image_is_named(toy: Manifest, tmp_path: Path, command: Command) -> None:
    root = tmp_path / "copy"
    shutil.copytree(toy.root, root, ignore=shutil.ignore_patterns(".cache"))
    victim = root / toy.paths[0]
    victim.write_bytes(victim.read_bytes()[:60])
    done = command("train", str(root), "--held-out", "wax", "--out", "run", *QUICK)
    refused(done, Path(toy.paths[0]).name)


def test_a_loss_that_explodes_is_a_user_error(toy: Manifest, command: Command) -> None:
    words = [str(toy.root), "--held-out", "wax", "--out", "run", "--set", "optimizer.lr=1e30"]
    refused(command("train", *words, *QUICK), "smaller optimizer.lr", "--set optimizer.lr=VALUE")
