"""One name, one thing: type names are unique, words are plain, and nothing below cli spells a command-line flag."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import MODULES, PAGES, ROOT, SOURCE, find, tree

TYPE_NAME = re.compile(r"_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$")
NO_TYPES = {"TypeVar", "ParamSpec", "frozenset", "dict", "tuple"}
OBSCURE = r"(?i)\b(?:mend(?:s|ed)?|anew|heed(?:s|ed)?|by heart|how-manieth)\b"
OTHER_PROGRAMS = {"--porcelain": "git", "--notest": "convmv"}


def type_names(module: ast.Module) -> Iterator[str]:
    """Classes and type aliases at the top of a module."""
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in NO_TYPES:
            continue
        yield from (t.id for t in targets if isinstance(t, ast.Name) and TYPE_NAME.match(t.id))


def test_type_names_are_unique() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for file in MODULES:
        for name in type_names(tree(file)):
            files[name].append(str(file.relative_to(SOURCE)))
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


def test_nothing_below_cli_spells_a_flag() -> None:
    below = [f for f in SOURCE.rglob("*") if f.suffix in (".py", ".j2", ".csv", ".toml") and "cli" not in f.parts]
    flags = find(r"(?<![\w-])--[a-z][a-z-]*", sorted(below))
    assert [flag for flag in flags if flag.split(": ")[1] not in OTHER_PROGRAMS] == []


def test_words_that_are_not_plain_english() -> None:
    scripts = [file for folder in ("examples", "benchmarks") for file in (ROOT / folder).glob("*.py")]
    assert find(OBSCURE, [*MODULES, *PAGES, ROOT / "Makefile", *scripts]) == []


@pytest.mark.parametrize("name", ["utils", "helpers", "common", "misc"])
def test_no_module_without_a_subject(name: str) -> None:
    assert list(SOURCE.rglob(f"{name}.py")) == []


def test_names_are_found_as_they_should_be(tmp_path: Path) -> None:
    code = 'class A1: ...\nPair = tuple[int, int]\nT = TypeVar("T")\nModel = TypeVar("Model")\nLIMIT = 3\n'
    assert list(type_names(ast.parse(code))) == ["A1", "Pair"]
