"""Small drawn stand-ins for what the documentation's commands assume: folders of photos, PACS, AWA2, ImageNet, weights.

They have the real layout and names of files, so that a command works on them as on the real ones; the images are drawn.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ltds.bestiary import NAMES, render
from ltds.data.datasets.pacs import CLASSES, DOMAINS
from ltds.data.styles.cartoongan import CartoonGenerator
from ltds.data.styles.cyclegan import CycleGenerator

ZOO = tuple(NAMES[:12])
CARTOONGAN = ("Hayao_net_G_float.pth", "Shinkai_net_G_float.pth")
CYCLEGAN = ("latest_net_G.pth", "style_vangogh.pth", "style_ukiyoe.pth")


def draw(
    folder: Path, domain: int, kind: int, count: int, *, first: str = "", end: str = ".jpg", seed: int = 0
) -> list[Path]:
    """Drawn images of one kind in one style, as if they were photos; other seeds give other images."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{first}{i}{end}" for i in range(count)]
    for i, file in enumerate(files, seed):
        Image.fromarray(np.asarray(render(kind, domain, size=48, seed=i))).save(file, format="JPEG")
    return files


def photos_by_class(folder: Path) -> None:
    for kind in range(9):
        draw(folder / "photos" / NAMES[kind], 0, kind, 150 - 6 * kind)


def photos(folder: Path, domains: tuple[str, ...]) -> None:
    """A class that only the last domain has is open when that is held out. New images beside them."""
    for domain, name in enumerate(domains):
        for kind in (0, 1, 2, 4):
            draw(folder / "photos" / name / NAMES[kind], domain, kind, 24 - 4 * kind, first="patient")
    draw(folder / "photos" / domains[-1] / NAMES[7], len(domains) - 1, 7, 8)
    for seed, site in ((100, "new_site"), (200, "first_half"), (300, "second_half")):
        for domain, name in enumerate(("cartoon", "photo")):
            for kind, label in zip((0, 1, 9), (NAMES[0], NAMES[1], "guitar"), strict=True):
                draw(folder / site / name / label, domain, kind, 5, seed=seed)
    draw(folder / "new", 3, 0, 3)


def scans(folder: Path) -> None:
    """Lists of images, and a module that builds a dataset, for the page on one's own data."""
    rows = []
    for domain, hospital in enumerate(("north", "south")):
        for kind in (0, 1):
            files = draw(folder / "scans" / hospital, domain, kind, 8, first=NAMES[kind])
            splits = ["train"] * 5 + ["test"] * 3
            rows += [(f"{hospital}/{f.name}", NAMES[kind], hospital, s) for f, s in zip(files, splits, strict=True)]
    (folder / "images.txt").write_text("".join(f"{path} {label} {domain}\n" for path, label, domain, _ in rows))
    with (folder / "scans.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("file", "diagnosis", "hospital", "fold"), *rows])
    (folder / "mypackage").mkdir(exist_ok=True)
    (folder / "mypackage" / "scans.py").write_text(
        "from pathlib import Path\n\nimport ltds\n\n\n"
        "def build(out: Path, source: Path) -> ltds.Manifest:\n"
        "    return ltds.build_data('lists', source=source, out=out, files=['images.txt'])\n"
    )


def pacs(folder: Path, train: int = 16, val: int = 4) -> None:
    """PACS and, in `lists`, its lists: labels 1..7, and a test list for each domain that holds all of its images."""
    (folder / "lists").mkdir(parents=True, exist_ok=True)
    for d, domain in enumerate(DOMAINS):
        lines: dict[str, list[str]] = {"train": [], "crossval": [], "test": []}
        for label, name in enumerate(CLASSES, 1):
            files = draw(folder / "PACS" / domain / name, d, label, train + val, first="pic_")
            listed = [f"{domain}/{name}/{file.name} {label}\n" for file in files]
            lines["train"] += listed[:train]
            lines["crossval"] += listed[train:]
            lines["test"] += listed
        for split, listed in lines.items():
            (folder / "lists" / f"{domain}_{split}_kfold.txt").write_text("".join(listed))


def awa2(folder: Path, count: int = 24) -> None:
    """AWA2 with twelve animals and two predicates."""
    base = folder / "Animals_with_Attributes2"
    for kind, name in enumerate(ZOO):
        draw(base / "JPEGImages" / name, 0, kind, count, first=f"{name}_1000")
    (base / "classes.txt").write_text("".join(f"{i:6d}\t{name}\n" for i, name in enumerate(ZOO, 1)))
    (base / "predicates.txt").write_text("     1\tfurry\n     2\tbig\n")
    rows = [f"{kind:.2f} {100 - kind**2 / 2:.2f}" for kind in range(len(ZOO))]
    (base / "predicate-matrix-continuous.txt").write_text("\n".join(rows) + "\n")


def imagenet(folder: Path) -> None:
    """ImageNet with twelve classes, ImageNet-LT's three lists for them, and names for the wnids."""
    (folder / "ImageNet_LT").mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    base = folder / "ILSVRC2012"
    for kind in range(len(ZOO)):
        wnid = f"n{kind:08d}"
        trained = draw(base / "train" / wnid, 0, kind, 29 - kind, first=f"{wnid}_", end=".JPEG")
        tested = draw(base / "val" / wnid, 1, kind, 5, first=f"ILSVRC2012_val_{kind}", end=".JPEG")
        for split, files in (("train", trained[5:]), ("val", trained[:5]), ("test", tested)):
            lines[split] += [f"{file.relative_to(base)} {kind}\n" for file in files]
    for split, listed in lines.items():
        (folder / "ImageNet_LT" / f"ImageNet_LT_{split}.txt").write_text("".join(listed))
    (folder / "classnames.txt").write_text("".join(f"n{kind:08d} {name}\n" for kind, name in enumerate(ZOO)))


def weights_of_styles(folder: Path) -> None:
    """Untrained generators under the names of the published files."""
    for names, generator in ((CARTOONGAN, CartoonGenerator()), (CYCLEGAN, CycleGenerator())):
        for name in names:
            torch.save(generator.state_dict(), folder / name)
