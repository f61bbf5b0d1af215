"""`ltds data build NAME`: one command for each dataset; its help lists every setting."""

from __future__ import annotations

from collections.abc import Callable

import typer

from ltds.cli.build import own, published
from ltds.cli.build.command import BuildCommand, BuildGroup

COMMANDS: dict[str, Callable[..., None]] = {
    "bestiary": published.bestiary,
    "awa2-lts": published.awa2_lts,
    "imagenet-lts": published.imagenet_lts,
    "pacs-odg": published.pacs_odg,
    "pacs": published.pacs,
    "pacs-lt": published.pacs_lt,
    "folder": own.folder,
    "lists": own.lists,
    "lts": own.lts,
}

app = typer.Typer(
    cls=BuildGroup,
    no_args_is_help=True,
    help="Build a dataset: a folder with a manifest and links to the images, which are not copied.",
)
for name, function in COMMANDS.items():
    app.command(name, cls=BuildCommand)(function)
