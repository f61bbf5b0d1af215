"""One name, one thing: types and public functions are unique, words plain, and no command-line flag is below cli."""

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
# Functions that have the same role in each module: a builder, a figure or a body, a format, a network of a style; and
# verbs of the Python functions for users, together with the part of the engine that does it.
SAME_ON_PURPOSE = {"build", "draw", "write", "load", "train", "evaluate", "predict", "export"}
# A command has the name of what it calls; these scripts run without ltds.
OTHER_NAMES = ("cli/", "engine/export/standalone/")
OTHER_PROGRAMS = {"--porcelain": "git", "--notest": "convmv"}
# Descriptions of settings begin in lower case, except with these.
CAPITALS = {
    "BatchNorm",
    "CPU",
    "CSV",
    "Dirichlet",
    "L_S2S",
    "L_aug",
    "L_mtr",
    "Nesterov's",
    "ResNets",
    "SHA-256",
    "T_Sigma",
}


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


def public_functions(module: ast.Module) -> Iterator[str]:
    """Functions at the top of a module whose names do not begin with an underscore."""
    functions = (node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    yield from (node.name for node in functions if not node.name.startswith("_"))


def test_a_public_function_has_a_name_of_its_own() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for file in MODULES:
        where = file.relative_to(SOURCE).as_posix()
        for name in public_functions(tree(file)) if not where.startswith(OTHER_NAMES) else ():
            files[name].append(where)
    repeated = {name: where for name, where in files.items() if len(where) > 1}
    assert {name: where for name, where in repeated.items() if name not in SAME_ON_PURPOSE} == {}
    assert repeated.keys() >= SAME_ON_PURPOSE, "delete names that are no longer repeated"


def setting_descriptions(module: ast.Module) -> Iterator[str]:
    """The descriptions of fields of settings, up to the first part that is computed."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field":
            texts = [keyword.value for keyword in node.keywords if keyword.arg == "description"]
            parts = [text.values[0] if isinstance(text, ast.JoinedStr) else text for text in texts]
            yield from (str(part.value) for part in parts if isinstance(part, ast.Constant))


def test_descriptions_of_settings_begin_in_lower_case() -> None:
    found = {text.split()[0].rstrip(":,") for file in MODULES for text in setting_descriptions(tree(file))}
    assert {word for word in found if word[0].isupper()} == CAPITALS


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
    functions = "def one(): ...\nasync def two(): ...\ndef _own(): ...\nclass A:\n    def method(self): ...\n"
    assert list(public_functions(ast.parse(functions))) == ["one", "two"]
    fields = 'a: int = Field(1, description="as it is")\nb: str = Field(description=f"one of {x}")\nc: int = Field(1)\n'
    assert list(setting_descriptions(ast.parse(fields))) == ["as it is", "one of "]
