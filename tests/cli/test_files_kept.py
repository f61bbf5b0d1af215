"""Files that a command writes where the user says: its own are replaced, those of the user are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Command, refused
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from toy import recorded, toy_session

REPORT = ("report", "run", "--out")
CHECK = ("data", "check", "data")
OUTPUTS = [
    *((*REPORT, f"mine{ending}") for ending in (".csv", ".json", ".html", ".md", ".tex")),
    (*CHECK, "--out", "mine.html"),
    (*CHECK, "--json", "mine.json"),
    ("data", "show", "data", "--out", "mine.png"),
]


@pytest.fixture(scope="module")
def run(toy: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    session = toy_session(toy)
    run = recorded(session, tmp_path_factory.mktemp("kept") / "run")
    train(session, run)
    return run.path


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_command_replaces_only_what_it_wrote(
    command: Command, toy: Manifest, run: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "data").symlink_to(toy.root)
    (tmp_path / "run").symlink_to(run)
    file = tmp_path / words[-1]
    file.write_text("path,class\na.png,cat\n" * 3)
    refused(command(*words), f"Expected '{words[-1]}' to be a new file, or ")
    assert file.read_text() == "path,class\na.png,cat\n" * 3
    file.write_bytes(b"")  # as a program leaves it that makes a name for a temporary file
    for _ in range(2):
        done = command(*words)
        assert done.returncode in (0, 1), done.stderr  # 1: data check has found problems
        assert f"Wrote {words[-1]}" in done.stderr
