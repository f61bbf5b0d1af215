"""How to type the remedy of an error: the library names a setting or an argument, the command line adds its option."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

from ltds.core.errors import LtdsError

VALUE = r"""(?:=(?P<value>\[[^\]]*\]|"[^"]*"|[^\s,;)]+?)(?=[.,;)]*(?:\s|$)))?"""
DOTTED = re.compile(r"(?<![\w./-])(?P<name>[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+)(?![\w/])" + VALUE)
SETTING = re.compile(r"(?<!no )[Ss]etting '(?P<name>\w+)'")
ARGUMENT = re.compile(r"[Aa]rgument '(?P<name>\w+)'")
OF_ANOTHER_COMMAND = re.compile(r"argument '(?P<name>\w+)' of ltds\.(?P<command>\w+)")
NOT_RECOMMENDED = re.compile(
    r"Choices: .*|no setting '[^']*'|argument '\w+' alone|.*\b[Ll]eave (?:it|one of them|them) out\b.*"
)
MOST = 3  # settings that one line names
PLACEHOLDERS = dict.fromkeys(("out", "source", "splits", "lists", "data"), "FOLDER") | {"method": "NAME"}


def hint(error: LtdsError, command: Any) -> str:
    """The lines below the message, or "" where there is nothing to add for this command."""
    options = {p.name: p for p in command.params if p.opts}
    words = dict.fromkeys(_words(error, options))
    lines = []
    if words:
        in_file = " (or in the TOML file)" if "config" in options and any(w.startswith("--set") for w in words) else ""
        lines.append(f"Give it as: {' '.join(list(words)[:MOST])}{in_file}")
    lines += [f"Or type: ltds {m['command']} ... --{m['name']}" for m in OF_ANOTHER_COMMAND.finditer(str(error))]
    if error.resume is not None:
        lines.append(f"Resume it with: ltds train --resume {shlex.quote(str(error.resume))}")
    source = getattr(error, "source", None)
    if source is not None:
        lines += _about_images(source)
        lines += ["Or add --plan, which builds the dataset and chooses settings"] if "plan" in options else []
    return "\n".join(lines)


def find_command(command: Any, words: Iterable[str]) -> Any:
    """The command that the words of a command line call: `ltds data build pacs` is three deep."""
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def _words(error: LtdsError, options: dict[str, Any]) -> Iterator[str]:
    """What to type, from the attributes of the error or else from its message."""
    text = NOT_RECOMMENDED.sub("", OF_ANOTHER_COMMAND.sub("", str(error)))
    for argument in error.arguments or _arguments_named(text):
        name, _, value = argument.partition("=")
        if name in options and (value or options[name].param_type_name == "option"):
            yield _typed(options[name], value)
    for setting in error.settings or _settings_named(text):
        name, _, value = setting.partition("=")
        if name in options:
            yield _typed(options[name], value)
        elif "overrides" in options:
            yield f"--set {shlex.quote(f'{name}={value}') if value else f'{name}=VALUE'}"


def _typed(option: Any, value: str) -> str:
    """An option with its value, quoted where a shell would split it; an argument of the command is its value alone."""
    value = shlex.quote(value) if value else PLACEHOLDERS.get(option.name, "VALUE")
    if option.param_type_name == "argument":
        return value
    name = option.opts[0]
    return name if option.is_flag else f"{name} {value}"


def _about_images(source: Path) -> list[str]:
    """What to do with a folder or a list of images where a dataset was expected."""
    name, path = shlex.quote(str(Path("data") / source.stem)), shlex.quote(str(source))
    build = f"folder --source {path}" if source.is_dir() else f"lists {path} --source {shlex.quote(str(source.parent))}"
    return [f"Build it with: ltds data build {build} --out {name}", f"Or train on it: ltds train {path}"]


def _settings_named(text: str) -> list[str]:
    """Settings that a text names, with their value where it recommends one."""
    values: dict[str, str] = {}
    for match in DOTTED.finditer(text):
        if _exists(match["name"]):
            values[match["name"]] = match["value"] or values.get(match["name"], "")
    return [f"{name}={value}" for name, value in values.items()] + [m["name"] for m in SETTING.finditer(text)]


def _arguments_named(text: str) -> Iterator[str]:
    for match in ARGUMENT.finditer(text):
        yield match["name"]
    if "another folder" in text:
        yield "out"


def _exists(dotted: str) -> bool:
    """Whether a run has this setting: "log.jsonl" looks like one. Settings of a method depend on the method."""
    from ltds.core.config import names
    from ltds.core.renamed import RENAMED
    from ltds.engine.config import RunConfig

    group = dotted.partition(".")[0]
    if group == "method":
        return dotted not in RENAMED
    groups = {name: kind for name, kind in get_type_hints(RunConfig).items() if hasattr(kind, "model_fields")}
    return group in groups and dotted in names(groups[group], f"{group}.")
