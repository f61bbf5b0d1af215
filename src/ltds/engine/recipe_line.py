"""What the recipe of a dataset set for a run, or for the runs of a benchmark, in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ltds.core.config import merge
from ltds.data.datasets import find_recipe
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig, suited

GivenAndConfig = tuple[Mapping[str, Any], RunConfig]


def recipe_line(manifest: Manifest, *runs: GivenAndConfig) -> str:
    """The settings that come from the recipe of a dataset and not from the user; "" if there are none.

    `runs`: for each run on the dataset the settings that the user gave and its config. A setting that only some of them
    take from the recipe is followed by their methods.
    """
    recipe = find_recipe(manifest)
    methods = [config.method_name for _, config in runs]
    of_method = {"method": recipe.with_embeddings}
    offered = [suited(recipe.settings, merge({"data": {}}, given)) | of_method for given, _ in runs]
    tables = [config.to_dict() for _, config in runs]
    takers: dict[str, list[str]] = {}
    for path, _ in _leaves({**recipe.settings, **of_method}):
        for (given, config), offer, table in zip(runs, offered, tables, strict=True):
            value = _at(offer, path)
            if value is not None and not _has(given, path) and _at(table, path) == value:
                takers.setdefault(f"{'.'.join(path)}={value}", []).append(config.method_name)
    listed = [f"{setting}{_where(names, methods)}" for setting, names in takers.items()]
    if not listed:
        return ""
    said = f" {note}." if (note := recipe.note) and not all(_has(given, ("data", "size")) for given, _ in runs) else ""
    return f"From the recipe for '{manifest.name}': {', '.join(listed)}.{said} A setting that you give replaces it."


def _where(takers: list[str], methods: list[str]) -> str:
    """(ltds) where only the runs of that method take a setting from the recipe; "" where all runs do."""
    if len(takers) == len(methods):
        return ""
    return " (some runs)" if set(takers) == set(methods) else f" ({', '.join(dict.fromkeys(takers))})"


def _leaves(tables: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _has(tables: Any, path: tuple[str, ...]) -> bool:
    """Whether the tables give this setting, or the whole group that it is in."""
    if not isinstance(tables, Mapping):
        return True
    return path[0] in tables and (len(path) == 1 or _has(tables[path[0]], path[1:]))


def _at(tables: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        tables = tables.get(name) if isinstance(tables, Mapping) else None
    return tables
