"""docs/reference/settings.md: every setting with its meaning, default, values and the origin of the default."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ltds.cli.explanation import SettingLine, setting_lines
from ltds.data.datasets import BUILDERS, config_type, find_builder
from ltds.engine.settings import SharedSettings
from ltds.losses import CriterionSettings
from ltds.methods.base import Method
from ltds.methods.registry import METHODS

ORIGINS: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "origins.toml").read_text(encoding="utf-8"))
OURS = "ours"
HEAD = ["", "| setting | default | values | meaning | default from |", "|---|---|---|---|---|"]
INTRODUCTION = """
Give a setting with `--set NAME=VALUE`, in a file with `--config FILE` (TOML), or in Python with
`settings={"NAME": VALUE}`. A name that does not exist, a value out of range and a setting without effect are errors
that name the setting. `config.toml` in a run directory has the value of every setting.

*default from*: **paper** is Gu et al., ECCV 2022; **released code** is what its authors published, where the paper
says nothing ([paper notes](../paper-notes.md)); **ours** is our choice. Datasets of the paper, and Bestiary, have
recipes that replace some defaults: [datasets](../datasets.md), [Bestiary](../bestiary.md#the-recipe). For your own
images `ltds train` chooses ([what](../own-data.md#what-is-chosen-for-you))."""


def settings(made: str) -> str:
    lines = ["# Settings", made, INTRODUCTION, "", "## Shared by all methods"]
    for name, field in SharedSettings.model_fields.items():
        group: Any = field.annotation
        lines += ["", f"### {name}", "", _words(group), *HEAD]
        lines += [_row(line, _origin("shared", line.name)) for line in _lines(group, f"{name}.")]
    lines += ["", "## Of a method", "", "The name of a method is `method.name`, or `--method NAME`."]
    lines += ["", "### The criterion", "", _words(CriterionSettings), "It is a part of every method."]
    lines += ["`method.criterion=bsce` is short for `method.criterion.name=bsce`.", *HEAD]
    lines += [_row(line, _criterion_origin(line.name)) for line in _lines(CriterionSettings, "method.criterion.")]
    for kind, names in _classes().items():
        lines += _of_method(kind, names)
    lines += [
        "",
        "## Of a dataset that is built",
        "",
        "`ltds data build NAME --set ...`; all of these are ours, except where a",
    ]
    lines += ["published dataset fixes them: [datasets](../datasets.md)."]
    for name in BUILDERS:
        model = config_type(find_builder(name))
        if model is not None:
            lines += [
                "",
                f"### {name}",
                "",
                _words(model),
                *HEAD[:1],
                "| setting | default | values | meaning |",
                "|---|---|---|---|",
            ]
            lines += [_row(line) for line in _lines(model, "")]
    return "\n".join(lines) + "\n"


def _classes() -> dict[type[Method], list[str]]:
    """The classes of methods, each with the names that it has in the table of methods."""
    classes: dict[type[Method], list[str]] = {}
    for name, entry in METHODS.items():
        classes.setdefault(entry.method, []).append(name)
    return classes


def _of_method(kind: type[Method], names: list[str]) -> list[str]:
    page = METHODS[names[0]].page
    parents = [other for other in _classes() if other is not kind and issubclass(kind.Config, other.Config)]
    inherited = {line.name for parent in parents for line in _lines(parent.Config, "")} | {
        f"criterion.{name}" for name in CriterionSettings.listed_fields()
    }
    own = [line for line in _lines(kind.Config, "") if line.name not in inherited]
    listed = ", ".join(f"`{name}`" for name in names)
    lines = ["", f"### {names[0]}", "", f"{listed}: the class `{kind.__name__}` ([its page](../methods/{page}.md))."]
    for parent in parents:
        first = _classes()[parent][0]
        lines.append(f"Also the settings of [{first}](#{first}).")
    if not own:
        return [*lines, "No settings besides the criterion's."]
    return [*lines, *HEAD, *(_row(line, _origin(kind.__name__, line.name), "method.") for line in own)]


def _lines(model: type[BaseModel], prefix: str) -> Iterable[SettingLine]:
    required: dict[str, Any] = {name: "" for name, field in model.model_fields.items() if field.is_required()}
    defaults = model.model_construct(**required)
    return list(setting_lines(defaults, defaults, prefix))


def _row(line: SettingLine, origin: str | None = None, prefix: str = "") -> str:
    default = f"`{line.default}`" if line.default else '`""`'
    origin = "-" if origin == OURS and not line.default else origin
    values = line.kind.replace("|", "\\|")
    cells = [f"`{prefix}{line.name}`", default, values, line.description.replace("|", "\\|").replace("<", "&lt;")]
    return f"| {' | '.join(cells if origin is None else [*cells, origin])} |"


def _origin(table: str, name: str) -> str:
    """The longest entry of origins.toml that covers the name; ours where none does."""
    found = ORIGINS.get(table, {})
    covering = [key for key in found if key == name or key == "" or (key.endswith(".") and name.startswith(key))]
    return found[max(covering, key=len)] if covering else OURS


def _criterion_origin(name: str) -> str:
    return (
        _origin("criterion", name.removeprefix("method.criterion.")) if not name.endswith(".name") else "the method's"
    )


def _words(model: type) -> str:
    return " ".join(inspect.cleandoc(model.__doc__ or "").split())


def unused_origins() -> list[str]:
    """Entries of origins.toml that cover no setting: misspelt, or left behind by a renamed one."""
    names = {
        "shared": [line.name for n, f in SharedSettings.model_fields.items() for line in _lines(f.annotation, f"{n}.")]
    }  # type: ignore[arg-type]
    names["criterion"] = list(CriterionSettings.listed_fields())
    names |= {kind.__name__: [line.name for line in _lines(kind.Config, "")] for kind in _classes()}
    return [
        f"[{table}] {key}"
        for table, entries in ORIGINS.items()
        for key in entries
        if not any(name == key or name.startswith(key) for name in names.get(table, []))
    ]
