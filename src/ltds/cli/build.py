"""`ltds data build NAME`: one command for each dataset; its help lists every setting."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from ltds.cli.screen import SCREEN
from ltds.core.errors import ConfigError, expected
from ltds.core.registry import find

if TYPE_CHECKING:
    from ltds.core.config import Settings
    from ltds.data.manifest import Manifest

Model = TypeVar("Model", bound="Settings")
SETTINGS = {  # command -> where its settings are; read only when its help is asked for
    "bestiary": "bestiary:BestiaryConfig",
    "awa2-lts": "awa2_lts:Awa2LtsConfig",
    "imagenet-lts": "imagenet_lts:ImagenetLtsConfig",
    "lts": "lts:LtsConfig",
    "pacs-odg": "pacs_odg:PacsOdgConfig",
    "pacs": "pacs:PacsConfig",
    "pacs-lt": "pacs:PacsLtConfig",
    "folder": "folder:FolderConfig",
    "lists": "lists:ListsConfig",
}


class Builders(TyperGroup):
    """The datasets by name; an unknown one is answered with the nearest."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        find("dataset", args[0], self.commands)
        return super().resolve_command(ctx, args)


class Builder(TyperCommand):
    """A command whose help ends with the settings that --set takes; those with an option of their own are above."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from rich.markup import escape

        module, _, name = SETTINGS[str(self.name)].partition(":")
        model = getattr(import_module(f"ltds.data.datasets.{module}"), name)
        own = {str(parameter.name) for parameter in self.params}
        self.epilog = "\n\n".join(["Settings for --set:", *map(escape, describe(model, own))])
        super().format_help(ctx, formatter)


def describe(model: type[Settings], without: Collection[str] = ()) -> list[str]:
    """A line for each setting: its name, what it is if nothing is said, what it may be, and what it means."""
    from ltds.cli.explanation import setting_lines

    needed: dict[str, Any] = {name: "" for name, field in model.model_fields.items() if field.is_required()}
    usual = model.model_construct(**needed)
    return [
        f"{line.name}={line.default} ({line.kind}) {line.description}".rstrip()
        for line in setting_lines(usual, usual)
        if line.name not in without
    ]


app = typer.Typer(
    cls=Builders,
    no_args_is_help=True,
    help="Build a dataset: a manifest, and links to images that stay where they are.",
)
Out = Annotated[Path | None, typer.Option(help="Folder for the dataset; data/NAME if left out.")]
Source = Annotated[Path, typer.Option(help="Folder of the downloaded images. They stay where they are.")]
Splits = Annotated[Path, typer.Option(help="Folder of the official *_kfold.txt lists.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="One setting, NAME=VALUE. May be repeated.")]
Named = Annotated[str, typer.Option(help="Name of the dataset; the folder's if left out.")]


@app.command("bestiary", cls=Builder)
def bestiary(out: Out = None, overrides: Overrides = None) -> None:
    """The embedded one: fifty drawn creatures in five styles, nothing to download.

    Example: ltds data build bestiary --out data/bestiary-64 --set size=64
    """
    from ltds.data.datasets.bestiary import BestiaryConfig, build

    print(build(_out(out, "bestiary"), _config(BestiaryConfig, overrides), progress=SCREEN).root)


@app.command("awa2-lts", cls=Builder)
def awa2_lts(
    source: Source,
    out: Out = None,
    lists: Annotated[
        Path | None, typer.Option(help="The authors' list files (Original_train.txt, ...), used as they are.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """AWA2-LTS (the paper's Table 2): fifty animals, a long tail, five styles.

    Example: ltds data build awa2-lts --source Animals_with_Attributes2
    """
    from ltds.data.datasets.awa2_lts import Awa2LtsConfig, build

    config = _config(Awa2LtsConfig, overrides)
    _done(build(_out(out, "awa2-lts"), source, config, lists=lists, progress=SCREEN))


@app.command("imagenet-lts", cls=Builder)
def imagenet_lts(
    source: Source,
    lists: Annotated[Path, typer.Option(help="Folder of ImageNet_LT_train.txt, _val.txt and _test.txt.")],
    out: Out = None,
    names: Annotated[
        Path | None, typer.Option(help="File of 'wnid name' lines; classes are called by wnid without it.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """ImageNet-LTS (the paper's Table 3): ImageNet-LT's lists, a thousand classes, five styles.

    Example: ltds data build imagenet-lts --source ILSVRC2012 --lists ImageNet_LT
    """
    from ltds.data.datasets.imagenet_lts import ImagenetLtsConfig, build

    config = _config(ImagenetLtsConfig, overrides)
    _done(build(_out(out, "imagenet-lts"), source, config, lists=lists, names=names, progress=SCREEN))


@app.command("lts", cls=Builder)
def lts(source: Source, out: Out = None, name: Named = "", overrides: Overrides = None) -> None:
    """Your own class folders (SOURCE/CLASS/*) made long-tailed and spread over styles, as the paper did with AWA2.

    Example: ltds data build lts --source photos --set 'styles=["classical:oil", "classical:pencil"]'
    """
    from ltds.data.datasets.lts import LtsConfig, build

    name = name or f"{source.resolve().name}-lts"
    _done(build(_out(out, name), source, _config(LtsConfig, overrides), name=name, progress=SCREEN))


@app.command("pacs-odg", cls=Builder)
def pacs_odg(
    source: Source,
    splits: Splits,
    order: Annotated[str, typer.Option(help="CPS-A, PAC-S, ACS-P or SPA-C: three sources, then the target.")],
    source_test: Annotated[
        str, typer.Option(help="What source domains are tested on: all (as published: training images too) or val.")
    ] = "all",
    out: Out = None,
    overrides: Overrides = None,
) -> None:
    """PACS for open domain generalisation: each source trains on three classes, 'person' is open.

    Example: ltds data build pacs-odg --source PACS --splits lists --order CPS-A
    """
    from ltds.data.datasets.pacs_odg import PacsOdgConfig, build

    config = _config(PacsOdgConfig, overrides, order=order, source_test=source_test)
    _done(build(_out(out, f"pacs-odg-{order.lower()}"), source, config, splits=splits, progress=SCREEN))


@app.command("pacs", cls=Builder)
def pacs(source: Source, splits: Splits, out: Out = None, overrides: Overrides = None) -> None:
    """Plain PACS, any one of its four domains to be held out.

    Example: ltds data build pacs --source PACS --splits lists
    """
    from ltds.data.datasets.pacs import PacsConfig, build

    _done(build(_out(out, "pacs"), source, _config(PacsConfig, overrides), splits=splits, progress=SCREEN))


@app.command("pacs-lt", cls=Builder)
def pacs_lt(source: Source, splits: Splits, out: Out = None, overrides: Overrides = None) -> None:
    """PACS with a long tail of a chosen ratio in every domain.

    Example: ltds data build pacs-lt --source PACS --splits lists --set ratio=50
    """
    from ltds.data.datasets.pacs import PacsLtConfig, build

    _done(build(_out(out, "pacs-lt"), source, _config(PacsLtConfig, overrides), splits=splits, progress=SCREEN))


@app.command("folder", cls=Builder)
def folder(
    source: Source,
    out: Out = None,
    layout: Annotated[
        str, typer.Option(help="What the folders below SOURCE are: domain, class, split.")
    ] = "domain/class",
    name: Named = "",
    overrides: Overrides = None,
) -> None:
    """Your own images in folders; splits are drawn in each (domain, class) pair, or given by folders.

    Example: ltds data build folder --source wards --layout split/domain/class
    """
    from ltds.data.datasets.folder import FolderConfig, build

    name = name or source.resolve().name
    config = _config(FolderConfig, overrides, layout=layout)
    _done(build(_out(out, name), source, config, name=name, progress=SCREEN))


@app.command("lists", cls=Builder)
def lists(
    files: Annotated[list[Path], typer.Argument(help="Text files of 'path label [domain]' lines, or CSV files.")],
    source: Source,
    out: Out = None,
    names: Annotated[
        str, typer.Option(help="How the files are called, e.g. '{domain}_{split}.txt': tells domains and splits.")
    ] = "",
    classes: Annotated[Path | None, typer.Option(help="File with the name of class 0, 1, ... on each line.")] = None,
    name: Named = "",
    overrides: Overrides = None,
) -> None:
    """Your own images named in lists; CSV columns are path, class, domain, split unless --set says otherwise.

    Example: ltds data build lists scans.csv --source scans --set label=diagnosis --set domain=hospital
    """
    from ltds.data.datasets.lists import ListsConfig, build

    name = name or source.resolve().name
    config = _config(ListsConfig, overrides, names=names)
    _done(build(_out(out, name), source, files, config, classes=classes, name=name, progress=SCREEN))


def _config(model: type[Model], overrides: list[str] | None, **given: str) -> Model:
    """The settings of --set, and those that have an option of their own, which the error for them then names."""
    from ltds.core.config import check, listing, parse_overrides

    told = parse_overrides(overrides or [])
    options = {name: f"--{name.replace('_', '-')}" for name in given}
    for name in given.keys() & told.keys():
        rule, remedy = f"given with {options[name]}", f"Write {options[name]} {told[name]}."
        raise ConfigError(expected(f"'{name}'", rule, "--set", remedy))
    settings, problems = check(model, {**told, **given}, remedy="Give it with --set {name}=VALUE.")
    if settings is None:
        for name, option in options.items():
            problems = [problem.replace(f"--set {name}=VALUE", f"{option} VALUE") for problem in problems]
        raise ConfigError(listing(problems))
    return settings


def _out(out: Path | None, name: str) -> Path:
    from ltds.cli.source import data_home

    return out or data_home() / name


def _done(manifest: Manifest) -> None:
    """Say what was built and what comes next; print where."""
    from ltds.data.stylelist import missing_styles

    images = ", ".join(f"{len(manifest.rows(split))} {split}" for split in ("train", "val", "test"))
    SCREEN.say(
        f"{manifest.name}: {images} images of {len(manifest.classes)} classes in {len(manifest.domains)} domains"
    )
    for note in notes(manifest):
        SCREEN.say(note)
    missing = sum(missing_styles(manifest.root).values())
    if missing:
        SCREEN.say(f"{missing} stylised images are to be made: ltds data stylize {manifest.root}")
    print(manifest.root)


def notes(manifest: Manifest) -> list[str]:
    """What a reader of this dataset's numbers must know."""
    said = list(manifest.provenance.get("notes", ()))
    for split, why in (("train", "trained on"), ("val", "used to choose the model")):
        again, all_ = manifest.test_images_also_in(split), manifest.counts("test").sum(axis=1)
        shares = [f"{d} {n} of {m}" for d, n, m in zip(manifest.domains, again, all_, strict=True) if n]
        if shares:
            said.append(f"test images that are also {why}, unless the domain is held out: {', '.join(shares)}")
    left_out = manifest.provenance.get("left_out")
    if left_out:
        more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        said.append(f"left out, as they cannot be decoded: {', '.join(list(left_out)[:5])}{more}")
    facts = manifest.provenance.get("facts", {})
    return said + [f"{name.replace('_', ' ')}: {n}" for name, n in facts.items() if isinstance(n, int) and n]
