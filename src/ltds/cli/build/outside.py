"""The build command of a dataset from outside the package: its options are the parameters of its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import typer

from ltds.cli.build.command import BuildCommand, OutOption, SetOption, output_folder, read_settings
from ltds.cli.build.summary import print_summary
from ltds.cli.screen import SCREEN
from ltds.data.datasets import config_type, find_builder
from ltds.data.datasets.by_name import call_builder


def outside_command(name: str) -> Any:
    """The command that builds with the function called "package.module:function"."""
    builder = find_builder(name)
    config = config_type(builder)
    own_options = {"out", "config", "progress"}
    inputs = {key: p for key, p in inspect.signature(builder).parameters.items() if key not in own_options}

    def call(out: Path | None, overrides: list[str] | None = None, **given: Any) -> None:
        if config is not None:
            given["config"] = read_settings(config, overrides)
        if "progress" in inspect.signature(builder).parameters:
            given["progress"] = SCREEN
        folder = output_folder(out, name.partition(":")[0].rpartition(".")[2])
        print_summary(call_builder(name, builder, folder, **given))

    _give_signature(call, builder, inputs, with_settings=config is not None)
    app = typer.Typer()
    app.command(name, cls=BuildCommand, help=inspect.getdoc(builder) or "")(call)
    return typer.main.get_command(app)


def _give_signature(
    call: Callable[..., None],
    builder: Callable[..., Any],
    inputs: dict[str, inspect.Parameter],
    *,
    with_settings: bool,
) -> None:
    """Let typer see the builder's parameters as those of `call`: one without a default is a required option."""
    types = get_type_hints(builder)
    parameters = [
        inspect.Parameter(
            key,
            inspect.Parameter.KEYWORD_ONLY,
            default=typer.Option(... if p.default is p.empty else p.default),
            annotation=types.get(key, str),
        )
        for key, p in inputs.items()
    ]
    parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=OutOption))
    if with_settings:
        settings = inspect.Parameter("overrides", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=SetOption)
        parameters.append(settings)
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
