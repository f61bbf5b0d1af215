"""Every grid in configs/ resolves against the dataset that it names; methods of the Bestiary grids can be built."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ltds.benchmarking.cells import cells_of
from ltds.benchmarking.grid import read_grid
from ltds.data.datasets.bestiary import BestiaryConfig, build
from ltds.data.manifest import Manifest
from ltds.engine.build import build_method
from ltds.engine.semantics import load_embeddings

CONFIGS = sorted((Path(__file__).parents[3] / "configs").glob("*/*.toml"))
DOMAINS = {
    "awa2-lts": ("original", "hayao", "shinkai", "vangogh", "ukiyoe"),
    "imagenet-lts": ("original", "hayao", "shinkai", "vangogh", "ukiyoe"),
    "pacs-lt": ("art_painting", "cartoon", "photo", "sketch"),
    "pacs-odg": ("art_painting", "cartoon", "photo", "sketch"),
}


@pytest.fixture(scope="module")
def bestiary(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    # 40 images of a class and 1: some class is rare enough for `equal`
    small = BestiaryConfig(size=16, n_max=40, n_min=1, val_per_pair=1, test_per_pair=1)
    return build(tmp_path_factory.mktemp("bestiary") / "data", small, workers=1)


def stand_in(name: str, folder: Path) -> Manifest:
    """A manifest with the name and the domains of a dataset whose images are not here."""
    domains = DOMAINS[name]
    (folder / "semantics").mkdir(exist_ok=True)
    (folder / "semantics" / "attributes.csv").write_text("class,legs,wings\na,4,0\n")
    columns = [np.zeros(len(domains), np.int64), np.arange(len(domains)), np.zeros(len(domains), np.int64)]
    return Manifest(folder, name, ("a",), domains, tuple(f"{d}.png" for d in domains), *columns)


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_grid_resolves_against_its_dataset(file: Path, bestiary: Manifest, tmp_path: Path) -> None:
    def open_data(source: str) -> Manifest:
        name = Path(source).name
        if name.startswith("bestiary"):
            return replace(bestiary, provenance={"builder": name})
        return replace(stand_in(next(n for n in DOMAINS if name.startswith(n)), tmp_path), provenance={"builder": name})

    cells = cells_of(read_grid(file, {}), tmp_path / "out", open_data)
    grid = read_grid(file, {})
    assert {cell.config.method_name for cell in cells} == set(grid.methods)
    assert {cell.seed for cell in cells} == set(grid.seeds)
    if not grid.data.startswith("bestiary"):
        return
    for cell in cells:
        if cell.held_out == "plain" and cell.seed == grid.seeds[0] and not cell.config.semantics.table:
            task = bestiary.task("plain")
            method = build_method(cell.config, task, load_embeddings(cell.config, bestiary, task))
            assert sum(p.numel() for p in method.parameters()) > 0
