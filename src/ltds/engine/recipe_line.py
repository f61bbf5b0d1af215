"""What the recipe of a dataset set for a run, in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ltds.data.datasets import find_recipe
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig


def recipe_line(manifest: Manifest, given: Mapping[str, Any], config: RunConfig) -> str:
    """The settings of this run that come from the recipe of its dataset and not from the user; "" if there are none."""
    recipe, settled = find_recipe(manifest), config.to_dict()
    suited = {**recipe.settings, "method": recipe.with_embeddings}
    taken = [(path, value) for path, value in _leaves(suited) if not _has(given, path) and _at(settled, path) == value]
    if not taken:
        return ""
    listed = ", ".join(f"{'.'.join(path)}={value}" for path, value in taken)
    said = f" {note}." if (note := recipe.note) and not _has(given, ("data", "size")) else ""
    return f"From the recipe for '{manifest.name}': {listed}.{said} A setting that you give replaces it."


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
