"""`ltds data without`: a dataset on which to choose settings for a domain before you test there."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN


def without(
    data: Annotated[str, typer.Argument(help="Dataset: 'bestiary' (built in) or a dataset folder.")],
    domain: Annotated[str, typer.Argument(help="The domain that the settings are for.")],
    out: Annotated[Path, typer.Option(help="New folder for the dataset. It has links to the images.")],
) -> None:
    """Leave a domain and the test split out, to choose settings for that domain before you test there.

    Example: ltds data without bestiary plain --out data/without-plain

    Then compare: ltds benchmark --data data/without-plain --methods bsce,ltds

    Each domain that is left is held out in turn and tested on its training and validation images.

    Validation alone says little about a new domain.
    """
    from ltds.data.without_domain import without_domain

    manifest = without_domain(data, domain, out=out, progress=SCREEN)
    held_out = ", ".join(manifest.domains)
    SCREEN.say(f"{len(manifest)} images of {len(manifest.classes)} classes; to hold out in turn: {held_out}")
    methods = "agg,bsce,dc,ltds" if len(manifest.domains) > 2 else "agg,bsce,dc"  # ltds needs two that are trained on
    command = f"ltds benchmark --data {shlex.quote(str(out))} --methods {methods} --out runs/choose"
    SCREEN.say(f"Then: {command} (add --plan if the images are your own)")
    print(manifest.root)
