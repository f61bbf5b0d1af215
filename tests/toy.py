"""A small real dataset on disk, and what tests do with it: six classes, three domains, 16-pixel images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.engine.assemble import assemble
from ltds.engine.config import RunConfig, resolve
from ltds.engine.loop import train
from ltds.engine.session import Session
from ltds.engine.start import record

CLASSES = ("ant", "bee", "cat", "dog", "elk", "fox")
DOMAINS = ("ink", "oil", "wax")
# Training images of each (domain, class): a long tail, missing pairs, and 'fox' only in 'wax'.
TRAIN = np.array([[9, 6, 4, 2, 1, 0], [8, 5, 0, 3, 0, 0], [7, 6, 3, 0, 2, 2]])
# What a method needs on images as few as these: 'elk' is the only rare class of 'equal' (one image of 38).
OF_METHOD: dict[str, dict[str, Any]] = {"equal": {"criterion": {"name": "equal", "rare_share": 0.05}}}

ATTRIBUTES = {
    "ant": "6,0,0,0.1",
    "bee": "6,1,0.2,0.1",
    "cat": "4,0,1,0.4",
    "dog": "4,0,1,0.6",
    "elk": "4,0,0.8,1",
    "fox": "4,0,1,0.5",
}


def write_linked_dataset(folder: Path) -> tuple[Manifest, Manifest]:
    """Images in folder/photos, and the dataset in folder/data that leads to them by a link, as `folder` builds it."""
    images = write_dataset(folder / "photos")
    data = replace(images, root=folder / "data", paths=tuple(f"source/{path}" for path in images.paths))
    data.root.mkdir()
    (data.root / "source").symlink_to(images.root)
    data.write()
    return images, data


def write_dataset(root: Path) -> Manifest:
    """16-pixel PNGs whose colour tells the class and whose texture tells the domain."""
    rows: list[tuple[str, int, int, int]] = []
    for domain, name in enumerate(DOMAINS):
        for label in range(len(CLASSES)):
            counts = (int(TRAIN[domain, label]), 2 if TRAIN[domain, label] else 0, 3)
            for split, count in enumerate(counts):
                for i in range(count):
                    path = f"images/{SPLITS[split]}/{name}/{CLASSES[label]}/{i}.png"
                    rng = numpy_generator(0, "tests/images", domain, label, split, i)
                    pixels = np.full((16, 16, 3), 60) + 40 * domain * (np.arange(16) % 2)[:, None, None]
                    pixels[:, :, label % 3] += 70 + 25 * (label // 3)
                    noisy = np.clip(pixels + rng.integers(-20, 21, size=(16, 16, 3)), 0, 255).astype(np.uint8)
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    Image.fromarray(noisy).save(root / path)
                    rows.append((path, label, domain, split))
    paths, labels, domains, splits = zip(*rows, strict=True)
    columns = [np.array(column, dtype=np.int64) for column in (labels, domains, splits)]
    manifest = Manifest(root, "toy", CLASSES, DOMAINS, tuple(paths), *columns, licence="CC0-1.0")
    manifest.write()
    attributes = ["class,legs,wings,fur,size", *(f"{name},{ATTRIBUTES[name]}" for name in CLASSES)]
    (root / "semantics").mkdir()
    (root / "semantics" / "attributes.csv").write_text("\n".join(attributes) + "\n")
    return manifest


def toy_config(manifest: Manifest, name: str = "agg", **groups: dict[str, Any]) -> RunConfig:
    """Six quick steps: three epochs of two."""
    base = {
        "data": {"root": str(manifest.root), "held_out": "wax", "size": 16, "batch_size": 8},
        "backbone": {"name": "tiny"},
        "schedule": {"epochs": 3, "steps_per_epoch": 2},
        "run": {"threads": 1, "device": "cpu"},
        "method": {"name": name, **OF_METHOD.get(name, {})},
    }
    return resolve(base, groups)


def toy_session(manifest: Manifest, name: str = "agg", **groups: dict[str, Any]) -> Session:
    return assemble(toy_config(manifest, name, **groups), manifest)


def recorded(session: Session, path: Path) -> RunDirectory:
    """A run directory on which `train` can be called."""
    run = RunDirectory(path)
    record(run, session)
    return run


def trained(
    manifest: Manifest, path: Path, name: str = "agg", *, seed: int = 0, stop_after: int | None = None
) -> RunDirectory:
    """A finished run, or one that was stopped after some steps."""
    session = toy_session(manifest, name, run={"seed": seed})
    run = recorded(session, path)
    train(session, run, stop_after=stop_after)
    return run


def forget(run: RunDirectory, key: str) -> None:
    """Make it a run from before environment.json had this key."""
    environment = run.read_environment()
    del environment[key]
    run.write_environment(environment)
