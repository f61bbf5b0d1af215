"""`ltds data`: build, show and describe datasets."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.build import app as build_app
from ltds.cli.build.summary import notes
from ltds.cli.check import check
from ltds.cli.embed import embed
from ltds.cli.features import features
from ltds.cli.screen import SCREEN
from ltds.cli.stylize import stylize
from ltds.cli.without import without

app = typer.Typer(no_args_is_help=True, help="Build, show and describe datasets.")
DatasetArgument = Annotated[str, typer.Argument(help="Dataset: 'bestiary' (built in) or a dataset folder.")]


app.add_typer(build_app, name="build")


@app.command()
def show(
    data: DatasetArgument,
    out: Annotated[Path, typer.Option(help="PNG file to write.")] = Path("sheet.png"),
    size: Annotated[int, typer.Option(help="Side of each image in pixels.", min=16, max=224)] = 64,
) -> None:
    """Draw an overview: one image for each class (row) and domain (column).

    Example: ltds data show bestiary --out sheet.png
    """
    from ltds import bestiary
    from ltds.core.errors import ConfigError
    from ltds.core.files import atomic, refuse_to_replace
    from ltds.core.image_grid import has_software_tag, software_tag
    from ltds.data.datasets.opening import open_dataset
    from ltds.data.sheet import dataset_sheet

    if out.suffix.lower() != ".png":
        raise ConfigError(
            f"Expected argument 'out' to be a picture that ends in .png, but got '{out}'. Choose another name.",
            arguments=["out=sheet.png"],
        )
    command = "ltds data show"
    refuse_to_replace(out, "a sheet of ltds data show", has_software_tag(command))
    drawn = data == "bestiary"  # the renderer draws a sheet without building the dataset
    sheet = bestiary.contact_sheet(size=size) if drawn else dataset_sheet(open_dataset(data, SCREEN), size=size)
    with atomic(out) as file:
        sheet.save(file, format="PNG", pnginfo=software_tag(command))
    SCREEN.say(f"Wrote {out} ({sheet.width} x {sheet.height} pixels)")


@app.command()
def info(
    data: DatasetArgument,
    full: Annotated[
        bool, typer.Option("--full", help="Also read every image, for a fingerprint of all of their bytes.")
    ] = False,
) -> None:
    """Describe a dataset: sizes, imbalance, and the classes that become open when a domain is held out.

    Example: ltds data info bestiary

    Copies of a dataset have the same 'images' fingerprint, which runs record; --full compares two copies byte for byte.
    """
    from ltds.data.content import full_content, sampled_content
    from ltds.data.datasets.opening import open_dataset
    from ltds.data.stylelist import missing_styles

    manifest = open_dataset(data, SCREEN)
    train = manifest.counts("train")
    per_class = train.sum(axis=0)
    trained = per_class[per_class > 0]
    classes, domains = len(manifest.classes), len(manifest.domains)
    SCREEN.result(f"{manifest.name}: {len(manifest)} images, {classes} classes, {domains} domains")
    SCREEN.result(f"licence {manifest.licence}, checksum {manifest.checksum[:16]}, folder {manifest.root}")
    content = sampled_content(manifest)
    sampled = f"images {content[:16]} (sizes of all, content of a sample)" if content else "some images are missing"
    SCREEN.result(sampled)
    if full:
        SCREEN.result(f"images {full_content(manifest, SCREEN)} (every byte)")
    if len(trained):
        SCREEN.result(
            f"training images per class {trained.max()} to {trained.min()}: ratio {trained.max() / trained.min():.1f}"
        )
    rows = []
    for i, domain in enumerate(manifest.domains):
        images = [str(int(manifest.counts(split)[i].sum())) for split in ("train", "val", "test")]
        other_domains = per_class - train[i]
        opened = [manifest.classes[c] for c in (other_domains == 0).nonzero()[0]]
        rows.append([domain, *images, str(int((train[i] > 0).sum())), ", ".join(opened) or "none"])
    SCREEN.table(["domain", "train", "val", "test", "classes trained", "open when held out"], rows)
    missing = missing_styles(manifest.root)
    for note in notes(manifest):
        SCREEN.result(note)
    if missing:
        folder = shlex.quote(str(manifest.root))
        SCREEN.result(f"{sum(missing.values())} stylised images are not there yet: ltds data stylize {folder}")


app.command("check")(check)
app.command("stylize")(stylize)
app.command("embed")(embed)
app.command("features")(features)
app.command("without")(without)
