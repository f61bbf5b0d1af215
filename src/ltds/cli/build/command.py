"""What the build commands share: their options, their settings, and a help text that lists these settings."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from ltds.core.errors import ConfigError, expected

if TYPE_CHECKING:
    from ltds.core.config import Settings

Config = TypeVar("Config", bound="Settings")
OutOption = Annotated[Path | None, typer.Option(help="Folder to write the dataset to (default: data/NAME).")]
SourceOption = Annotated[Path, typer.Option(help="Folder of the images. They are linked, not copied.")]
SplitsOption = Annotated[Path, typer.Option(help="Folder of the official *_kfold.txt lists.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="A setting, NAME=VALUE. May be repeated.")]
NameOption = Annotated[str, typer.Option(help="Name of the dataset (default: the name of the folder).")]


class BuildGroup(TyperGroup):
    """The datasets by name, and those from outside by "package.module:function"; an unknown name gets similar ones."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        from ltds.cli.build.outside import outside_command

        return args[0], outside_command(args[0]), args[1:]


class BuildCommand(TyperCommand):
    """A command whose help ends with the settings that --set takes, except those that are options."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from rich.markup import escape

        from ltds.data.datasets import config_type, find_builder

        model = config_type(find_builder(str(self.name)))
        if model is not None:
            options = {str(parameter.name) for parameter in self.params}
            self.epilog = "\n\n".join(["Settings for --set:", *map(escape, describe(model, options))])
        super().format_help(ctx, formatter)


def describe(model: type[Settings], without: Collection[str] = ()) -> list[str]:
    """A line for each setting: its name, default, type and meaning."""
    from ltds.cli.explanation import setting_lines

    required: dict[str, Any] = {name: "" for name, field in model.model_fields.items() if field.is_required()}
    defaults = model.model_construct(**required)
    return [
        f"{line.name}={line.default} ({line.kind}) {line.description}".rstrip()
        for line in setting_lines(defaults, defaults)
        if line.name not in without
    ]


def read_settings(model: type[Config], overrides: list[str] | None, **options: str) -> Config:
    """The settings given with --set, and those that are options of the command."""
    from ltds.core.config import parse, parse_overrides

    given = parse_overrides(overrides or [])
    for name in options.keys() & given.keys():
        option = f"--{name.replace('_', '-')}"
        raise ConfigError(expected(f"'{name}'", f"given with {option}", "--set", f"Write {option} {given[name]}."))
    return parse(model, {**given, **options})


def output_folder(out: Path | None, name: str) -> Path:
    from ltds.data.datasets.opening import data_home

    return out or data_home() / name
