"""Every command and code block of README.md and docs/ is one that works: options, settings and syntax exist."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from documents import BLOCKS, COMMANDS, Block, CommandLine, commands_in
from repository import PAGES, ROOT, find

import ltds
from ltds.benchmarking.grid import Grid
from ltds.cli.main import app
from ltds.core.config import parse, parse_overrides
from ltds.data.datasets import BUILDERS, config_type, find_builder
from ltds.engine.config import resolve

TREE: Any = typer.main.get_command(app)
PLACEHOLDER = re.compile(r"\.\.\.|[A-Z]+|package\.module:\w+|mypackage.*|mine:\w+")


def command_of(words: tuple[str, ...]) -> tuple[Any, list[str], list[str]]:
    """The command that the words name, its path, and the words that are left for it."""
    command, path, rest = TREE, ["ltds"], list(words)
    while rest and rest[0] in ("-q", "-v"):
        rest.pop(0)
    while rest and rest[0] in getattr(command, "commands", {}):
        path.append(rest[0])
        command = command.commands[rest.pop(0)]
    return command, path, rest


def overrides(words: list[str]) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words[:-1]) if word == "--set"]


def option(words: list[str], name: str, default: str) -> str:
    return words[words.index(name) + 1] if name in words else default


@pytest.mark.parametrize("line", [c for c in COMMANDS if c.whole], ids=str)
def test_commands_in_blocks_are_accepted(line: CommandLine) -> None:
    command, path, rest = command_of(line.words)
    if path[-1] == "build" and rest:  # a dataset of the reader's
        assert PLACEHOLDER.fullmatch(rest[0]), f"there is no dataset {rest[0]}"
        return
    if rest and rest[0] in ("--help", "--version"):
        return
    assert not getattr(command, "commands", {}), f"{' '.join(path)} has no command {rest[:1]}"
    rest = [word for word in rest if word != "..."]
    command.make_context(" ".join(path), rest)  # parses, and stops at what it does not know


@pytest.mark.parametrize("line", COMMANDS, ids=str)
def test_commands_and_options_exist(line: CommandLine) -> None:
    command, path, rest = command_of(line.words)
    known = {name for p in [*command.params, *TREE.params] for name in (*p.opts, *p.secondary_opts)}
    if getattr(command, "commands", {}) and rest and not rest[0].startswith("-"):
        assert PLACEHOLDER.fullmatch(rest[0]), f"{' '.join(path)} has no command {rest[0]}"
        return
    given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    assert given - known - {"--help", "-h"} == set()


def all_options(command: Any) -> set[str]:
    own = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    return own.union(*map(all_options, getattr(command, "commands", {}).values()))


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_options_in_running_text_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`(--[a-z][a-z-]*)[^`]*`", re.sub(r"(?s)```.*?```", "", text)))
    assert named - all_options(TREE) - {"--help", "--nnodes"} == set()  # of torchrun


@pytest.mark.parametrize("line", [c for c in COMMANDS if "--set" in c.words[:-1]], ids=str)
def test_settings_exist_and_take_these_values(line: CommandLine) -> None:
    _, path, rest = command_of(line.words)
    named = [pair.partition("=") for pair in overrides(rest)]
    own = tuple(name for name, _, value in named if value.startswith("mine:"))  # tests/cli/test_extending.py uses them
    given = [
        f"{name}={value}" for name, _, value in named if not PLACEHOLDER.fullmatch(name) and not name.startswith(own)
    ]
    pairs = [f"{pair}1" if pair.endswith("=") else pair for pair in given]
    if path[1:3] == ["data", "build"]:
        model = config_type(find_builder(path[3])) if path[3:] and path[3] in BUILDERS else None
        if model is not None:
            names = {pair.partition("=")[0].split(".")[0] for pair in pairs}
            assert names <= set(model.model_fields)
        return
    method = option(rest, "--method", option(rest, "--methods", "agg").split(",")[0])
    features = {"features": "f.npz"} if "--features" in rest else {}
    resolve({"data": {"root": "d", **features}, "method": {"name": method}}, parse_overrides(pairs))


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "python"], ids=str)
def test_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


def calls(code: str) -> Iterator[tuple[str, ast.Call]]:
    """(name, call) for each call of `ltds.name(...)`."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "ltds":
                yield node.func.attr, node


def accepted(name: str, call: ast.Call) -> None:
    """Whether the public function takes these arguments; TypeError where it does not."""
    assert name in ltds.__all__, f"there is no ltds.{name}"
    words = {keyword.arg: None for keyword in call.keywords if keyword.arg}
    inspect.signature(getattr(ltds, name)).bind_partial(*call.args, **words)


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "python"], ids=str)
def test_calls_in_python_blocks_are_accepted(block: Block) -> None:
    for name, call in calls(block.text):
        accepted(name, call)


def test_calls_in_running_text_are_accepted() -> None:
    checked = 0
    for page in PAGES:
        for code in re.findall(r"`(ltds\.[a-z_]+\([^`]*\))[^`]*`", page.read_text(encoding="utf-8")):
            for name, call in calls(code.replace("(..., ", "(None, ").replace("(...)", "()")):
                accepted(name, call)
                checked += 1
    assert checked >= 5


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language in ("toml", "json")], ids=str)
def test_toml_and_json_are_valid(block: Block) -> None:
    if block.language == "json":
        assert json.loads(block.text)
        return
    content = tomllib.loads(block.text)
    if "methods" in content:
        parse(Grid, content)


def test_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {match.split("make ")[1] for match in find(r"(?:`|^ *)make [a-z-]+(?=`| +#| *$)", pages)}
    assert named - targets == set()


def test_every_command_was_run() -> None:
    """Running them all takes half an hour, so `benchmarks/run_docs.py` does it and keeps a record."""
    record = json.loads((ROOT / "results" / "doc_commands.json").read_text(encoding="utf-8"))
    ran = {(page, one["command"]) for page, kept in record["pages"].items() for one in kept["commands"]}
    failed = {one["command"] for kept in record["pages"].values() for one in kept["commands"] if one["outcome"] != "ok"}
    of_pages = {(c.where.split(":")[0], shlex.join(("ltds", *c.words))) for c in COMMANDS if c.whole}
    remedy = "run `python benchmarks/run_docs.py --work DIR --record results/doc_commands.json --pages PAGE`"
    assert of_pages - ran == set(), f"never run: {remedy}"
    assert ran - of_pages == set(), f"no longer on the pages: {remedy}"
    assert failed == set()


def test_what_is_taken_for_a_command() -> None:
    assert list(commands_in("find . | ltds predict runs/a - --out today.csv   # all")) == [
        ("predict", "runs/a", "-", "--out", "today.csv")
    ]
    assert list(commands_in("ltds: Expected a folder, but don't have one")) == []
    assert list(commands_in("Use it: ltds predict models/first IMAGES")) == []


def test_most_pages_have_commands() -> None:
    assert len([c for c in COMMANDS if c.whole]) >= 50
