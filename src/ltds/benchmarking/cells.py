"""The cells of a grid: its runs, each with its directory and its complete settings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ltds.benchmarking.grid import Grid
from ltds.core.config import listing, merge
from ltds.core.errors import ConfigError, LtdsError, did_you_mean
from ltds.core.progress import Say, say_nothing
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig, resolve, with_absolute_paths
from ltds.engine.first_phase import first_phase_of, training_of
from ltds.engine.identity import identity
from ltds.engine.new_run_checks import check_new_run, check_new_run_on
from ltds.engine.recipe_line import GivenAndConfig, recipe_line
from ltds.engine.trainable import require_sources

PLAIN = ""  # the name of the only variant, where a grid defines none


@dataclass(frozen=True)
class GridCell:
    """One run of a grid: its directory and its complete settings.

    `first_phase`: another run of the grid, whose whole training is the first phase of this one. `plan`: which settings
    were chosen for the images, and why, as plan.json keeps it.
    """

    run: RunDirectory
    config: RunConfig
    variant: str
    first_phase: RunDirectory | None = None
    plan: dict[str, Any] | None = field(default=None, compare=False)

    @property
    def method(self) -> str:
        """The method's name, with the variant's name where the grid has variants."""
        return f"{self.config.method_name} ({self.variant})" if self.variant else self.config.method_name

    @property
    def held_out(self) -> str:
        return self.config.data.held_out

    @property
    def seed(self) -> int:
        return self.config.run.seed

    def keep_plan(self) -> None:
        """Write plan.json where it is missing. It decides nothing, so whoever trains the run need not know of it."""
        if self.plan is not None and not self.run.plan_file.is_file():
            self.run.write_plan(self.plan)


class PlannedSettings(Protocol):
    """What was chosen for the runs of a method."""

    @property
    def layer(self) -> Mapping[str, Any]:
        """The settings, as nested tables."""
        ...

    def without(self, given: Mapping[str, Any]) -> PlannedSettings:
        """The same without the settings that `given` replaces."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The settings with the reasons, for plan.json."""
        ...


class GridPlan(Protocol):
    """Chooses what a grid leaves open for the images of a dataset."""

    def __call__(
        self,
        manifest: Manifest,
        given: Mapping[str, Any],
        by_method: Mapping[str, Mapping[str, Any]],
        variants: Sequence[Mapping[str, Any]],
        domains: Sequence[str],
    ) -> Mapping[str, PlannedSettings]:
        """The chosen settings of each method's runs. `given`, `by_method`, `variants`: those of the grid."""
        ...


class _GridVariant(NamedTuple):
    """A variant's own settings, its dataset, and the domains to hold out in turn."""

    changes: Mapping[str, Any]
    source: str
    domains: tuple[str, ...]


class _Resolved(NamedTuple):
    """The cells, the mistakes by their message, and the runs on each dataset as `recipe_line` wants them."""

    cells: list[GridCell]
    problems: dict[str, LtdsError]
    runs: dict[str, dict[tuple[str, str], GivenAndConfig]]


def cells_of(
    grid: Grid,
    out: Path,
    open_data: Callable[[str], Manifest],
    trust: Iterable[str] | None = None,
    say: Say = say_nothing,
    plan: GridPlan | None = None,
) -> list[GridCell]:
    """Every run of the grid, ordered by seed, then domain, so that the first results cover the whole table.

    All mistakes in all of them are reported at once, before anything is planned or trained. `trust`: for a grid from a
    file, the modules outside ltds that may be imported; None: the caller wrote the grid. `say` gets a line for each
    recipe that sets something. `plan` chooses what the grid leaves open; by default it has its usual value.
    """
    opened: dict[str, Manifest] = {}
    named = grid.variants or {PLAIN: {}}
    variants = {name: _variant(grid, changes, opened, open_data) for name, changes in named.items()}
    found = _resolve(grid, out, variants, opened, trust, {} if plan is None else None)
    if plan is not None and not found.problems:
        planned = {source: _planned(grid, plan, manifest, source, variants) for source, manifest in opened.items()}
        found = _resolve(grid, out, variants, opened, trust, planned)
    if found.problems:
        arguments = dict.fromkeys(argument for error in found.problems.values() for argument in error.arguments)
        raise ConfigError(listing(list(found.problems)), arguments=arguments)
    lines = (recipe_line(opened[source], *runs.values()) for source, runs in found.runs.items())
    for line in dict.fromkeys(filter(None, lines)):  # two datasets of one recipe share it
        say(line)
    return _with_first_phases(_distinct(found.cells))


def _distinct(cells: Iterable[GridCell]) -> list[GridCell]:
    """Each run once. Two variants that are the same run are a mistake: one of them would be missing in the results."""
    distinct: dict[Path, GridCell] = {}
    for cell in cells:
        first = distinct.setdefault(cell.run.path, cell)
        if first.variant != cell.variant:
            raise ConfigError(
                f"Expected variants that differ in what decides a run, but '{first.variant}' and '{cell.variant}' are "
                f"the same run. {_why_the_same(first, cell)}"
            )
    return list(distinct.values())


def _why_the_same(first: GridCell, second: GridCell) -> str:
    """What does not count in the difference of two variants, and what to do."""
    roots = [cell.config.data.root for cell in (first, second)]
    if roots[0] != roots[1]:
        return (
            f"Datasets are told apart by their manifest only, not by the content of their images, and '{roots[0]}' and "
            f"'{roots[1]}' have the same one: make a benchmark of each, in a folder of its own."
        )
    return (
        "Settings that say how a run is computed (device, threads, ranks, sync_batchnorm, ...) do not count: train "
        "such variants in different folders."
    )


def _with_first_phases(cells: Sequence[GridCell]) -> list[GridCell]:
    """The cells, each with the one that trains its first phase, where there is one."""
    trained = {training_of(cell.config): cell.run for cell in cells}
    return [replace(cell, first_phase=trained.get(first_phase_of(cell.config) or "")) for cell in cells]


def _variant(
    grid: Grid, changes: Mapping[str, Any], opened: dict[str, Manifest], open_data: Callable[[str], Manifest]
) -> _GridVariant:
    data = merge(grid.settings, changes).get("data", {})
    data = data if isinstance(data, Mapping) else {}  # refused later, with the other mistakes
    source = data.get("root", grid.data)
    if source not in opened:
        opened[source] = open_data(source)
    held_out = data.get("held_out")
    domains = _domains(grid.held_out if held_out is None else (held_out,), opened[source])
    return _GridVariant(changes, source, domains)


def _planned(
    grid: Grid, plan: GridPlan, manifest: Manifest, source: str, variants: Mapping[str, _GridVariant]
) -> Mapping[str, PlannedSettings]:
    """One plan for all variants on a dataset, which then differ in nothing but their own settings."""
    here = [variant for variant in variants.values() if variant.source == source]
    domains = list(dict.fromkeys(domain for variant in here for domain in variant.domains))
    by_method = {name: grid.by_method.get(name, {}) for name in grid.methods}
    return plan(manifest, grid.settings, by_method, [variant.changes for variant in here], domains)


def _resolve(
    grid: Grid,
    out: Path,
    variants: Mapping[str, _GridVariant],
    opened: Mapping[str, Manifest],
    trust: Iterable[str] | None,
    planned: Mapping[str, Mapping[str, PlannedSettings]] | None,
) -> _Resolved:
    """`planned`: the plan's settings by dataset and method; None before the plan, where only mistakes are looked for.

    There is no cell then: its name depends on the class embeddings, which the plan may yet have to make.
    """
    found = _Resolved([], {}, {})
    for seed, (name, variant) in itertools.product(grid.seeds, variants.items()):
        manifest = opened[variant.source]
        for domain, method in itertools.product(variant.domains, grid.methods):
            chosen = (planned or {}).get(variant.source, {}).get(method)
            of_method = grid.by_method.get(method, {})
            layer = _layer(manifest, domain, method, seed)
            try:
                given = with_absolute_paths(merge(grid.settings, of_method, variant.changes))
                planned_layer = with_absolute_paths(chosen.layer if chosen else {})
                config = resolve(planned_layer, given, layer, dataset=manifest, trust=trust)
                check_new_run(config)
                require_sources(config, manifest, domain)
                if planned is not None:
                    check_new_run_on(manifest, config)
                    record = chosen.without(given).to_dict() if chosen else None
                    found.cells.append(GridCell(_run_directory(out, config, manifest), config, name, plan=record))
                found.runs.setdefault(variant.source, {}).setdefault((name, method), (given, config))
            except LtdsError as error:
                found.problems[f"{method}: {error}"] = error
    return found


def _layer(manifest: Manifest, domain: str, method: str, seed: int) -> dict[str, Any]:
    data = {"root": str(manifest.root.resolve()), "held_out": domain}
    return {"data": data, "method": {"name": method}, "run": {"seed": seed}}


def _domains(wanted: tuple[str, ...], manifest: Manifest) -> tuple[str, ...]:
    """The domains to hold out in turn; every one where none is named."""
    wanted = tuple(manifest.own_spelling(str(name)) for name in wanted)
    unknown = [name for name in wanted if name and name not in manifest.domains]
    if unknown:
        raise ConfigError(
            f"Expected held_out to name domains of '{manifest.name}', but got '{unknown[0]}'. "
            f"{did_you_mean(unknown[0], manifest.domains)}"
        )
    if not wanted and len(manifest.domains) == 1:
        return ("",)  # nothing would be left to train on
    return wanted or manifest.domains


def _run_directory(out: Path, config: RunConfig, manifest: Manifest) -> RunDirectory:
    """The run directory of a config: a readable name, then a hash of everything that affects the result."""
    words = (config.method_name, config.data.held_out or "none", str(config.run.seed))
    readable = "-".join(re.sub(r"[^A-Za-z0-9._]+", "_", word) for word in words)
    return RunDirectory(out / "runs" / f"{readable}-{identity(config, manifest)[:12]}")
