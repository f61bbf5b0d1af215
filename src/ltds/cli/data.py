"""`ltds data`: build, look at and describe datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.build import app as build_app
from ltds.cli.build.summary import notes
from ltds.cli.embed import embed
from ltds.cli.screen import SCREEN
from ltds.cli.stylize import stylize

app = typer.Typer(no_args_is_help=True, help="Build, look at and describe datasets.")
Dataset = Annotated[str, typer.Argument(help="'bestiary', or a folder with a manifest.")]


app.add_typer(build_app, name="build")


@app.command()
def show(
    data: Dataset,
    out: Annotated[Path, typer.Option(help="PNG file to write.")] = Path("sheet.png"),
    size: Annotated[int, typer.Option(help="Side of each picture in pixels.", min=16, max=224)] = 64,
) -> None:
    """Draw a contact sheet: a row for each class, a column for each domain.

    Example: ltds data show bestiary --out sheet.png
    """
    from ltds import bestiary
    from ltds.cli.source import open_data
    from ltds.core.files import atomic
    from ltds.data.sheet import contact_sheet

    sheet = bestiary.contact_sheet(size=size) if data == "bestiary" else contact_sheet(open_data(data), size=size)
    with atomic(out) as file:
        sheet.save(file, format="PNG")
    SCREEN.say(f"Wrote {out} ({sheet.width} x {sheet.height} pixels)")


@app.command()
def info(data: Dataset) -> None:
    """Describe a dataset: sizes, imbalance, and the classes that become open when a domain is held out."""
    from ltds.cli.source import open_data
    from ltds.data.stylelist import missing_styles

    manifest = open_data(data)
    train = manifest.counts("train")
    per_class = train.sum(axis=0)
    trained = per_class[per_class > 0]
    print(f"{manifest.name}: {len(manifest)} images, {len(manifest.classes)} classes, {len(manifest.domains)} domains")
    print(f"licence {manifest.licence}, checksum {manifest.checksum[:16]}, folder {manifest.root}")
    if len(trained):
        print(
            f"training images per class {trained.max()} to {trained.min()}: ratio {trained.max() / trained.min():.1f}"
        )
    rows = []
    for i, domain in enumerate(manifest.domains):
        images = [str(int(manifest.counts(split)[i].sum())) for split in ("train", "val", "test")]
        left = train.sum(axis=0) - train[i]
        opened = [manifest.classes[c] for c in (left == 0).nonzero()[0]]
        rows.append([domain, *images, str(int((train[i] > 0).sum())), ", ".join(opened) or "none"])
    SCREEN.table(["domain", "train", "val", "test", "classes trained", "open when held out"], rows)
    missing = missing_styles(manifest.root)
    for note in notes(manifest):
        print(note)
    if missing:
        print(f"{sum(missing.values())} stylised images are not there yet: ltds data stylize {manifest.root}")


app.command("stylize")(stylize)
app.command("embed")(embed)
