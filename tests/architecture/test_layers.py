"""Imports only go down, siblings never import each other, importing is quick and silent."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ltds"
LAYERS = [
    {"cli"},
    {"reporting", "benchmark"},
    {"engine"},
    {"evaluation", "methods"},
    {"data", "semantics", "nn", "losses", "stats"},
    {"bestiary"},
    {"core"},
]
HEIGHT = {name: len(LAYERS) - level for level, layer in enumerate(LAYERS) for name in layer}
FILES = sorted(SOURCE.rglob("*.py"))


def imported_folders(file: Path) -> set[str]:
    """The folders of ltds that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "ltds":
            modules += [f"ltds.{alias.name}" for alias in node.names]
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{file}: relative import"
        found |= {parts[1] for m in modules if (parts := m.split("."))[0] == "ltds" and len(parts) > 1}
    return found & HEIGHT.keys()


def test_every_folder_has_a_layer() -> None:
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= HEIGHT.keys()


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SOURCE)))
def test_imports_only_go_down(file: Path) -> None:
    folder = file.relative_to(SOURCE).parts[0]
    if folder == "__init__.py":
        assert imported_folders(file) == set()
        return
    wrong = {other for other in imported_folders(file) - {folder} if HEIGHT[other] >= HEIGHT[folder]}
    assert wrong == set()


def test_the_report_never_imports_torch_itself() -> None:
    for file in (SOURCE / "reporting").rglob("*.py"):
        assert "import torch" not in file.read_text(), file


@pytest.mark.parametrize("word", [".cuda(", "TODO", "FIXME"])
def test_words_that_must_not_occur(word: str) -> None:
    assert [str(f) for f in FILES if word in f.read_text()] == []


def test_importing_ltds_is_silent_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, ltds, ltds.cli.main; "
        "print([m for m in ('torch', 'matplotlib', 'sklearn', 'ray', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_public_names_exist() -> None:
    import ltds

    assert all(getattr(ltds, name) is not None for name in ltds.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ltds.nothing
