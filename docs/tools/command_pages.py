"""docs/reference/commands.md: every command as its --help tells it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_args

import typer

from ltds.cli.main import app

INTRODUCTION = """
Every command, as its `--help` describes it. `-q` and `-v` come before the name of the command: `ltds -q train ...`.
Exit codes: 0 success, 2 a mistake that you can correct (one sentence, no traceback), 1 a fault in ltds
or in your own module. `predict` and `evaluate` also exit with 1 after they skipped images that they could not read,
`data check` where it found problems."""


def commands(made: str) -> str:
    found = list(walk())
    lines = ["# Commands", made, INTRODUCTION, "", "| command | |", "|---|---|"]
    lines += [f"| [`{name}`](#{_anchor(name)}) | {_cell(_paragraphs(command)[0])} |" for name, command in found]
    for name, command in found:
        lines += ["", f"## {name}", *_described(name, command)]
    return "\n".join(lines) + "\n"


def walk(command: Any = None, name: str = "ltds") -> Iterator[tuple[str, Any]]:
    """(full name, command) of `ltds` and of all commands below it, groups before their commands."""
    command = command or typer.main.get_command(app)
    yield name, command
    for inner, below in getattr(command, "commands", {}).items():
        yield from walk(below, f"{name} {inner}")


def _described(name: str, command: Any) -> list[str]:
    lines: list[str] = []
    for paragraph in _paragraphs(command):
        examples = re.match(r"Examples?: (.*)", paragraph)
        if examples:
            lines += ["", "```", *re.split(r"; (?=ltds )", examples[1]), "```"]
        else:
            lines += ["", _cell(paragraph)]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help" and not p.hidden]
    if arguments:
        lines += ["", "| argument | meaning |", "|---|---|"]
        lines += [f"| `{_argument(p)}` | {_cell(p.help or '')} |" for p in arguments]
    if options:
        lines += ["", "| option | default | meaning |", "|---|---|---|"]
        lines += [f"| {_option(p)} | {_default(p)} | {_cell(p.help or '')} |" for p in options]
    return lines


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(part.split()) for part in (command.help or "").replace("\b", "").split("\n\n") if part.strip()]


def _argument(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name).upper()
    name += " ..." if parameter.nargs == -1 else ""
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.is_flag:
        return names
    return f"{names} {_value(parameter.type_descriptor.annotation)}" + (", repeatable" if parameter.multiple else "")


def _value(kind: Any) -> str:
    """What an option takes: its choices, or its type in capitals."""
    kind = next(iter(get_args(kind)), kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " \\| ".join(f"`{choice.value}`" for choice in kind)
    return {"str": "TEXT", "int": "INTEGER", "float": "NUMBER", "Path": "PATH"}.get(
        getattr(kind, "__name__", ""), "TEXT"
    )


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    default = parameter.default
    if isinstance(parameter.show_default, str):  # one that depends on the machine
        return parameter.show_default
    if default in (None, "", False, ()) or callable(default) or "Sentinel" in type(default).__name__:
        return ""
    return f"`{getattr(default, 'value', default)}`"


def _cell(text: str) -> str:
    """Text of a help page in a cell: placeholders like <domain> must not be taken for HTML."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def _anchor(name: str) -> str:
    return name.replace(" ", "-")
