"""Build commands of the datasets that papers use, and of the built-in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.build.command import OutOption, SetOption, SourceOption, SplitsOption, output_folder, read_settings
from ltds.cli.build.summary import print_summary
from ltds.cli.screen import SCREEN


def bestiary(out: OutOption = None, overrides: SetOption = None) -> None:
    """The built-in dataset: fifty drawn creatures in five styles, nothing to download.

    Example: ltds data build bestiary --out data/bestiary-64 --set size=64
    """
    from ltds.data.datasets.bestiary import BestiaryConfig, build

    config = read_settings(BestiaryConfig, overrides)
    print(build(output_folder(out, "bestiary"), config, progress=SCREEN).root)


def awa2_lts(
    source: SourceOption,
    out: OutOption = None,
    lists: Annotated[
        Path | None, typer.Option(help="Folder of the authors' list files (Original_train.txt, ...).")
    ] = None,
    overrides: SetOption = None,
) -> None:
    """AWA2-LTS (Table 2 of the paper): fifty animals, long-tailed, in five styles.

    Example: ltds data build awa2-lts --source Animals_with_Attributes2
    """
    from ltds.data.datasets.awa2_lts import Awa2LtsConfig, build

    config = read_settings(Awa2LtsConfig, overrides)
    print_summary(build(output_folder(out, "awa2-lts"), source, config, lists=lists, progress=SCREEN))


def imagenet_lts(
    source: SourceOption,
    lists: Annotated[Path, typer.Option(help="Folder of ImageNet_LT_train.txt, _val.txt and _test.txt.")],
    out: OutOption = None,
    class_names: Annotated[
        Path | None, typer.Option(help="File of 'wnid name' lines (default: classes are called by their wnid).")
    ] = None,
    overrides: SetOption = None,
) -> None:
    """ImageNet-LTS (Table 3 of the paper): the lists of ImageNet-LT, a thousand classes, five styles.

    Example: ltds data build imagenet-lts --source ILSVRC2012 --lists ImageNet_LT
    """
    from ltds.data.datasets.imagenet_lts import ImagenetLtsConfig, build

    config = read_settings(ImagenetLtsConfig, overrides)
    folder = output_folder(out, "imagenet-lts")
    print_summary(build(folder, source, config, lists=lists, class_names=class_names, progress=SCREEN))


def pacs_odg(
    source: SourceOption,
    splits: SplitsOption,
    order: Annotated[str, typer.Option(help="CPS-A, PAC-S, ACS-P or SPA-C: three sources, then the target.")],
    source_test: Annotated[
        str, typer.Option(help="Test images of the source domains: all (as published, training images too) or val.")
    ] = "all",
    out: OutOption = None,
    overrides: SetOption = None,
) -> None:
    """PACS for open domain generalization: each source has three classes to train on, 'person' is open.

    Example: ltds data build pacs-odg --source PACS --splits lists --order CPS-A
    """
    from ltds.data.datasets.pacs_odg import PacsOdgConfig, build

    config = read_settings(PacsOdgConfig, overrides, order=order, source_test=source_test)
    folder = output_folder(out, f"pacs-odg-{order.lower()}")
    print_summary(build(folder, source, config, splits=splits, progress=SCREEN))


def pacs(source: SourceOption, splits: SplitsOption, out: OutOption = None, overrides: SetOption = None) -> None:
    """PACS as published; any one of its four domains can be held out.

    Example: ltds data build pacs --source PACS --splits lists
    """
    from ltds.data.datasets.pacs import PacsConfig, build

    config = read_settings(PacsConfig, overrides)
    print_summary(build(output_folder(out, "pacs"), source, config, splits=splits, progress=SCREEN))


def pacs_lt(source: SourceOption, splits: SplitsOption, out: OutOption = None, overrides: SetOption = None) -> None:
    """PACS made long-tailed: the ratio between the largest and the smallest class of each domain is a setting.

    Example: ltds data build pacs-lt --source PACS --splits lists --set ratio=50
    """
    from ltds.data.datasets.pacs import PacsLtConfig, build_long_tailed

    config = read_settings(PacsLtConfig, overrides)
    print_summary(build_long_tailed(output_folder(out, "pacs-lt"), source, config, splits=splits, progress=SCREEN))
