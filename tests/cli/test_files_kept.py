"""Files that a command writes where the user says: its own are replaced, those of the user are kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from command_line import Command, refused
from ltds.data.features import write_features
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.nn.small import TinyNet
from ltds.semantics.archive import write_embeddings
from ltds.semantics.embeddings import ClassEmbeddings
from toy import recorded, toy_session

REPORT = ("report", "run", "--out")
CHECK = ("data", "check", "data")
FEATURES = ("data", "features", "data", "--backbone", "tiny", "--weights", "tiny.safetensors", "--size", "16")
EMBED = ("data", "embed", "data", "--with", "table:table.npz")
OUTPUTS = [
    *((*REPORT, f"mine{ending}") for ending in (".csv", ".json", ".html", ".md", ".tex")),
    (*CHECK, "--out", "mine.html"),
    (*CHECK, "--json", "mine.json"),
    ("data", "show", "data", "--out", "mine.png"),
    (*FEATURES, "--out", "mine.npz"),
    (*EMBED, "--out", "mine.npz"),
]
SIMILAR = [  # commands, and a file of somebody else that begins like those that they write
    ((*CHECK, "--json", "mine.json"), '{\n  "format": 1,\n  "runs": {},\n  "plan": null\n}\n'),
    ((*CHECK, "--json", "mine.json"), '[\n  "written_by"\n]\n'),
    ((*CHECK, "--out", "mine.html"), "<!doctype html>\n<title>Check of my car</title>\n"),
    ((*REPORT, "mine.tex"), "% my own table, needs \\usepackage{booktabs}\n\\begin{table}\n"),
    ((*REPORT, "mine.md"), "# How to\nReports begin with <!-- written by ltds report -->\n"),
    ((*REPORT, "mine.csv"), "dataset,method,held_out,metric,my number\ntoy,mine,wax,acc,1\n"),
]


@pytest.fixture(scope="module")
def run(toy: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    session = toy_session(toy)
    run = recorded(session, tmp_path_factory.mktemp("kept") / "run")
    train(session, run)
    return run.path


@pytest.fixture(autouse=True)
def inputs(toy: Manifest, run: Path, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(toy.root)
    (tmp_path / "run").symlink_to(run)
    save_file(TinyNet().state_dict(), tmp_path / "tiny.safetensors")
    write_embeddings(tmp_path / "table.npz", ClassEmbeddings(toy.classes, torch.eye(len(toy.classes))))


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_command_replaces_only_what_it_wrote(command: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / words[-1]
    file.write_text("path,class\na.png,cat\n" * 3)
    refused(command(*words), f"Expected '{words[-1]}' to be a new file, or ")
    assert file.read_text() == "path,class\na.png,cat\n" * 3
    file.write_bytes(b"")  # as a program leaves it that makes a name for a temporary file
    for _ in range(2):
        done = command(*words)
        assert done.returncode in (0, 1), done.stderr  # 1: data check has found problems
        assert f"Wrote {words[-1]}" in done.stderr or done.stdout == f"{words[-1]}\n"


@pytest.mark.parametrize(("words", "text"), SIMILAR)
def test_a_file_that_begins_like_its_own_is_kept(
    command: Command, tmp_path: Path, words: tuple[str, ...], text: str
) -> None:
    file = tmp_path / words[-1]
    file.write_text(text)
    refused(command(*words), f"Expected '{words[-1]}' to be a new file, or ")
    assert file.read_text() == text


def test_what_earlier_versions_of_the_check_wrote_is_replaced(command: Command, tmp_path: Path) -> None:
    words, found, page = (*CHECK, "--json", "c.json", "--out", "c.html"), tmp_path / "c.json", tmp_path / "c.html"
    assert command(*words).returncode in (0, 1)
    content = json.loads(found.read_text())
    assert next(iter(content)) == "written_by"
    found.write_text(json.dumps({name: value for name, value in content.items() if name != "written_by"}))
    page.write_text(page.read_text().replace("<title>ltds data check: ", "<title>Check of "))
    assert command(*words).returncode in (0, 1)
    assert json.loads(found.read_text()) == content
    assert "<title>ltds data check: " in page.read_text()


def test_a_latex_table_of_an_earlier_version_is_replaced(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "table.tex"
    assert command(*REPORT, file.name).returncode == 0
    new = file.read_text()
    first, rest = new.split("\n", 1)
    assert first == "% written by ltds report"
    assert rest.startswith("% needs \\usepackage{booktabs}\n")
    file.write_text(rest)
    assert command(*REPORT, file.name).returncode == 0
    assert file.read_text() == new


@pytest.mark.parametrize("name", ["01-training-images.{}", "captions.txt"])
@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_figures_replace_only_figures(command: Command, tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "figures").mkdir()
    file, other = tmp_path / "figures" / name.format(kind), tmp_path / "figures" / f"01-holiday.{kind}"
    file.write_text("mine, by ltds report\n")
    other.write_text("mine")
    words = ("report", "run", "--figures", "figures", "--figure-format", kind, "--out", "report.md")
    refused(command(*words), f"Expected 'figures/{file.name}' to be a new file, or ", "Choose another folder")
    assert file.read_text() == "mine, by ltds report\n"
    assert set(file.parent.iterdir()) == {file, other}
    assert not (tmp_path / "report.md").exists(), "nothing is written"
    file.unlink()
    for _ in range(2):
        done = command(*words)
        assert done.returncode == 0, done.stderr
        assert file.stat().st_size > 50
    assert other.read_text() == "mine"


def test_arrays_that_a_user_wrote_are_kept(command: Command, toy: Manifest, tmp_path: Path) -> None:
    """They are of the same layout, and may have taken hours."""
    write_features(tmp_path / "mine.npz", np.eye(len(toy), 4), toy.paths, {"camera": "mine"})
    features, table = (tmp_path / "mine.npz").read_bytes(), (tmp_path / "table.npz").read_bytes()
    for words in ((*FEATURES, "--out", "mine.npz"), (*EMBED, "--out", "mine.npz"), (*EMBED, "--out", "table.npz")):
        refused(command(*words), f"Expected '{words[-1]}' to be a new file, or ")
    assert command(*EMBED, "--out", "new.npz").returncode == 0
    refused(command(*FEATURES, "--out", "new.npz"), "Expected 'new.npz' to be a new file, or features")
    assert (tmp_path / "mine.npz").read_bytes() == features
    assert (tmp_path / "table.npz").read_bytes() == table


def test_weights_beside_new_features_are_kept(command: Command, tmp_path: Path) -> None:
    weights = (tmp_path / "tiny.safetensors").read_bytes()
    refused(command(*FEATURES, "--out", "tiny.npz"), "Expected 'tiny.safetensors' to be a new file, or the weights")
    assert (tmp_path / "tiny.safetensors").read_bytes() == weights
    assert not (tmp_path / "tiny.npz").exists()
