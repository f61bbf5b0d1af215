"""A grid: methods x held-out domains x seeds x variants of settings, and the cells that it makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, NonNegativeInt, model_validator

from ltds.core.config import Settings, listing, merge, parse, read_toml
from ltds.core.errors import ConfigError, LtdsError, nearest
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig, resolve
from ltds.engine.identity import identity

PLAIN = ""  # the variant of a grid that has none


class Grid(Settings):
    """What a benchmark consists of, as its TOML file says it.

    `held_out` empty: every domain in turn. [settings] holds settings of all runs, by group as in a run's config.toml;
    each [variants.NAME] holds settings that one more copy of the grid has, its own data.held_out too;
    [by_method.NAME] holds settings of one method alone, of its group [method].
    """

    data: str
    methods: tuple[str, ...] = Field(min_length=1)
    held_out: tuple[str, ...] = ()
    seeds: tuple[NonNegativeInt, ...] = (0, 1, 2)
    settings: dict[str, Any] = Field(default_factory=dict)
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    by_method: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _no_settings_of_absent_methods(self) -> Grid:
        absent = [name for name in self.by_method if name not in self.methods]
        if absent:
            raise ValueError(f"by_method.{absent[0]} has no effect: the grid does not train {absent[0]}")
        return self


@dataclass(frozen=True)
class Cell:
    """One run of a grid: where it lies and all that decides it."""

    run: RunDirectory
    config: RunConfig
    variant: str

    @property
    def method(self) -> str:
        """The method's name, with its variant where the grid has some."""
        return f"{self.config.method_name} ({self.variant})" if self.variant else self.config.method_name

    @property
    def held_out(self) -> str:
        return self.config.data.held_out

    @property
    def seed(self) -> int:
        return self.config.run.seed


def read_grid(file: Path, given: Mapping[str, Any]) -> Grid:
    """The grid in a TOML file, with what was given on the command line over it.

    Other methods than the file's leave its settings of single methods behind, where they are not among them.
    """
    tables = read_toml(file)
    if "methods" in given and "by_method" in tables:
        parse(Grid, merge(given, tables))  # as the file stands its own methods must use all of it
        kept = {name: settings for name, settings in tables["by_method"].items() if name in given["methods"]}
        tables = {**tables, "by_method": kept}
    return parse(Grid, merge(tables, given))


def cells_of(grid: Grid, out: Path, open_data: Callable[[str], Manifest]) -> list[Cell]:
    """Every run of the grid, in an order that fills the table evenly: seed by seed, domain by domain.

    Every mistake in any of them is reported at once, before anything is trained.
    """
    opened: dict[str, Manifest] = {}
    variants = grid.variants or {PLAIN: {}}
    cells: list[Cell] = []
    problems: dict[str, None] = {}
    for seed in grid.seeds:
        for variant, own in variants.items():
            settings = merge(grid.settings, own)
            source = settings.get("data", {}).get("root", grid.data)
            manifest = opened.setdefault(source, opened.get(source) or open_data(source))
            own_domain = settings.get("data", {}).get("held_out")
            for domain in _domains(grid, manifest) if own_domain is None else (own_domain,):
                for method in grid.methods:
                    layer = _layer(manifest, domain, method, seed)
                    alone = {"method": grid.by_method.get(method, {})}
                    try:
                        config = resolve(settings, alone, layer, dataset=manifest.name)
                        cells.append(Cell(_place(out, config, manifest), config, variant))
                    except LtdsError as error:
                        problems[f"{method}: {error}"] = None
    if problems:
        raise ConfigError(listing(list(problems)))
    return list({cell.run.path: cell for cell in cells}.values())


def _layer(manifest: Manifest, domain: str, method: str, seed: int) -> dict[str, Any]:
    data = {"root": str(manifest.root.resolve()), "held_out": domain}
    return {"data": data, "method": {"name": method}, "run": {"seed": seed}}


def _domains(grid: Grid, manifest: Manifest) -> tuple[str, ...]:
    unknown = [name for name in grid.held_out if name and name not in manifest.domains]
    if unknown:
        raise ConfigError(
            f"Expected held_out to name domains of '{manifest.name}', but got '{unknown[0]}'. "
            f"{nearest(unknown[0], manifest.domains)}"
        )
    return grid.held_out or manifest.domains


def _place(out: Path, config: RunConfig, manifest: Manifest) -> RunDirectory:
    """The run directory of a config: readable, and named by the hash of all that decides the run."""
    words = (config.method_name, config.data.held_out or "none", str(config.run.seed))
    readable = "-".join(re.sub(r"[^A-Za-z0-9._]+", "_", word) for word in words)
    return RunDirectory(out / "runs" / f"{readable}-{identity(config, manifest)[:12]}")
