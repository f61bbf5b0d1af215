"""Build commands for the user's images: in folders, named in lists, or to be made long-tailed and stylised."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.build.command import NameOption, OutOption, SetOption, SourceOption, output_folder, read_settings
from ltds.cli.build.summary import print_summary
from ltds.cli.screen import SCREEN


def folder(
    source: SourceOption,
    out: OutOption = None,
    layout: Annotated[
        str, typer.Option(help="What the folders below SOURCE are, level by level: domain, class, split.")
    ] = "domain/class",
    name: NameOption = "",
    overrides: SetOption = None,
) -> None:
    """Your own images in folders. Splits are drawn for each domain and class, or given by folders.

    Example: ltds data build folder --source wards --layout split/domain/class
    """
    from ltds.data.datasets.folder import FolderConfig, build

    name = name or source.resolve().name
    config = read_settings(FolderConfig, overrides, layout=layout)
    print_summary(build(output_folder(out, name), source, config, name=name, progress=SCREEN))


def lists(
    files: Annotated[list[Path], typer.Argument(help="Text files of 'path label [domain]' lines, or CSV files.")],
    source: SourceOption,
    out: OutOption = None,
    pattern: Annotated[
        str, typer.Option(help="Pattern of the file names, if they contain domain or split: '{domain}_{split}.txt'.")
    ] = "",
    classes: Annotated[Path | None, typer.Option(help="File with the name of class 0, 1, ... on each line.")] = None,
    name: NameOption = "",
    overrides: SetOption = None,
) -> None:
    """Your own images, named in lists. CSV columns are path, class, domain, split and group unless --set renames them.

    Example: ltds data build lists scans.csv --source scans --set label=diagnosis --set domain=hospital
    """
    from ltds.data.datasets.list_files import ListsConfig
    from ltds.data.datasets.lists import build

    name = name or source.resolve().name
    config = read_settings(ListsConfig, overrides, pattern=pattern)
    print_summary(build(output_folder(out, name), source, files, config, classes=classes, name=name, progress=SCREEN))


def lts(source: SourceOption, out: OutOption = None, name: NameOption = "", overrides: SetOption = None) -> None:
    """Your own class folders (SOURCE/CLASS/*), made long-tailed and stylised as the paper did with AWA2.

    Example: ltds data build lts --source photos --set 'styles=["classical:oil", "classical:pencil"]'
    """
    from ltds.data.datasets.lts import LtsConfig, build

    name = name or f"{source.resolve().name}-lts"
    config = read_settings(LtsConfig, overrides)
    print_summary(build(output_folder(out, name), source, config, name=name, progress=SCREEN))
