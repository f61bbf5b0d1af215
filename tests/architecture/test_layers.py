"""Imports only go down, packages of one layer never import each other, importing is quick and silent."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import MODULES, ROOT, SOURCE, is_type_checking, tree

LAYERS = [
    {"cli"},
    {"api", "sklearn"},
    {"reporting", "benchmarking", "planning", "serving"},
    {"engine"},
    {"evaluation", "methods"},
    {"data", "semantics", "nn", "losses", "stats"},
    {"bestiary"},
    {"core"},
]
HEIGHT = {name: len(LAYERS) - level for level, layer in enumerate(LAYERS) for name in layer}
WITHOUT_TORCH = ("reporting", "bestiary")


def package_of(file: Path) -> str:
    """The package of ltds that a file is in; a module directly in ltds counts as one, `python -m ltds` as cli."""
    name = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    return "cli" if name == "__main__" else name


def nodes(node: ast.AST, for_types: bool) -> Iterator[ast.AST]:
    """All nodes of a tree, with or without those that only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if for_types or not is_type_checking(child):
            yield child
            yield from nodes(child, for_types)


def imported_packages(file: Path, for_types: bool = True) -> set[str]:
    """The packages of ltds that a file imports, anywhere in it."""
    modules: list[str] = []
    for node in nodes(tree(file), for_types):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: relative import"
            modules += [f"ltds.{alias.name}" for alias in node.names] if node.module == "ltds" else [node.module or ""]
        elif isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
    return {words[1] for m in modules if (words := m.split("."))[0] == "ltds" and len(words) > 1} & HEIGHT.keys()


def test_every_package_has_a_layer() -> None:
    modules = {package_of(file) for file in MODULES} - {"__init__"}
    assert modules <= HEIGHT.keys()


def test_contributing_shows_these_layers() -> None:
    (block,) = re.findall(r"```\n(cli\n.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    assert [set(line.split(" | ")) for line in block.splitlines()] == LAYERS


@pytest.mark.parametrize("file", MODULES, ids=lambda f: str(f.relative_to(SOURCE)))
def test_imports_only_go_down(file: Path) -> None:
    package = package_of(file)
    if package == "__init__":
        assert imported_packages(file, for_types=False) == set()
        return
    wrong = {other for other in imported_packages(file) - {package} if HEIGHT[other] >= HEIGHT[package]}
    assert wrong == set()


@pytest.mark.parametrize("package", WITHOUT_TORCH)
def test_packages_that_never_import_torch_themselves(package: str) -> None:
    files = [file for file in MODULES if package_of(file) == package]
    assert files
    assert [str(file) for file in files if re.search(r"(?m)^\s*(import|from) torch\b", file.read_text())] == []


@pytest.mark.parametrize("word", [".cuda(", "TODO", "FIXME"])
def test_words_that_must_not_occur(word: str) -> None:
    assert [str(f) for f in MODULES if word in f.read_text()] == []


def test_importing_ltds_is_silent_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, ltds, ltds.cli.main; "
        "print([m for m in ('torch', 'matplotlib', 'sklearn', 'ray', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
