"""A grid: methods x held-out domains x seeds x variants of settings, as the TOML file of a benchmark says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, NonNegativeInt, field_validator, model_validator

from ltds.core.config import Settings, merge, nested, parse, read_toml
from ltds.core.errors import ConfigError, expected
from ltds.core.plain import plain_value

DECIDED = (  # settings that the grid decides for each run, and where it says so
    ("run", "seed", "seeds"),
    ("method", "name", "methods"),
    ("data", "root", "data"),
    ("data", "held_out", "held_out"),
)

AXES = {  # what a grid combines: which values each of them takes, and an example
    "methods": (str, "names of methods", "methods=agg,ltds"),
    "held_out": (str, "names of domains", "held_out=all"),
    "seeds": (int, "whole numbers of 0 or more", "seeds=0,1,2"),
}


def _group(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A group of settings; empty where it is missing, or is not a group, which is refused later with other mistakes."""
    group = settings.get(name)
    return group if isinstance(group, Mapping) else {}


def _titled(title: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {f"{title}.{name}": settings for name, settings in tables.items()}


class Grid(Settings):
    """The content of a benchmark's TOML file."""

    data: str = Field(description="dataset folder, or the name of an embedded dataset")
    methods: tuple[str, ...] = Field(min_length=1, description="methods to train, as `ltds methods` lists them")
    held_out: tuple[str, ...] = Field((), description="domains to hold out in turn; empty: every domain")
    seeds: tuple[NonNegativeInt, ...] = Field((0, 1, 2), min_length=1, description="each cell is trained once per seed")
    settings: dict[str, Any] = Field(
        default_factory=dict, description="settings of all runs, grouped as in a run's config.toml"
    )
    variants: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="copies of the whole grid by name, each with settings that differ"
    )
    by_method: dict[str, dict[str, dict[str, Any]]] = Field(
        default_factory=dict,
        description="settings of single methods by name, grouped as [settings]; those of a variant replace them",
    )

    @field_validator("by_method", mode="before")
    @classmethod
    def _groups_of_settings(cls, tables: object) -> object:
        for method, groups in tables.items() if isinstance(tables, Mapping) else ():
            for name, value in groups.items() if isinstance(groups, Mapping) else ():
                if not isinstance(value, Mapping):
                    raise ValueError(
                        f"{name} = {value} in [by_method.{method}] is not a group of settings. Is it one of the "
                        f"method itself? Then write it below [by_method.{method}.method]"
                    )
        return tables

    @model_validator(mode="after")
    def _no_settings_that_the_grid_itself_decides(self) -> Grid:
        of_variants, of_methods = _titled("variants", self.variants), _titled("by_method", self.by_method)
        for where, settings in {"settings": self.settings, **of_methods, **of_variants}.items():
            for group, name, instead in DECIDED:
                allowed = where in of_variants and group == "data"  # a variant may be another dataset or domain
                if not allowed and name in _group(settings, group):
                    raise ValueError(
                        f"{group}.{name} in {where} has no effect, as the grid sets it for each run: leave it out, and "
                        f"use '{instead}'"
                    )
        return self

    @model_validator(mode="after")
    def _no_settings_of_absent_methods(self) -> Grid:
        absent = [name for name in self.by_method if name not in self.methods]
        if absent:
            name = absent[0]
            raise ValueError(
                f"by_method.{name} has no effect, as the grid does not train {name}: add {name} to methods, or leave "
                f"it out (remove the table [by_method.{name}])"
            )
        return self


def read_grid(source: Path | Mapping[str, Any], given: Mapping[str, Any]) -> Grid:
    """The grid in a TOML file, or in a mapping with the same content; values in `given` replace those of `source`.

    They also replace those of its methods and variants. Where `given` names methods, these alone are trained: settings
    of other methods in `source` are dropped, and those of a method that only `given` names are used.
    """
    tables = _with_groups(_with_lists(read_toml(source) if isinstance(source, Path) else source))
    given = _with_lists(given)
    of_methods, variants = (_group(tables, name) for name in ("by_method", "variants"))
    _refuse_variants_of_their_own(given, variants)
    settings, methods = _group(given, "settings"), given.get("methods", of_methods)
    if of_methods:
        kept = {name: table for name, table in of_methods.items() if name in methods}
        tables["by_method"] = _with_typed(kept, settings)
    if variants:
        tables["variants"] = _with_typed(variants, settings)
    return parse(Grid, merge(tables, given))


def _with_lists(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with methods, held-out domains and seeds as lists; one value may stand alone."""
    result = dict(tables)
    for name, (kind, rule, example) in AXES.items():
        if name not in tables:
            continue
        value = tables[name]
        alone = isinstance(value, str) or not isinstance(value, Iterable)
        listed = [] if (name, value) == ("held_out", "all") else plain_value([value] if alone else list(value))
        wrong = [one for one in listed if type(one) is not kind or (isinstance(one, int) and one < 0)]
        if wrong or not (listed or name == "held_out"):
            got = repr(wrong[0]) if wrong else "none"
            raise ConfigError(expected(f"argument '{name}'", rule, got, "Name them."), arguments=[example])
        result[name] = listed
    return result


def _with_groups(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with dotted names of settings as groups: {"optimizer.lr": 0.05} is {"optimizer": {"lr": 0.05}}."""
    result = dict(tables)
    if "settings" in result:
        result["settings"] = _grouped(result["settings"])
    for name in ("by_method", "variants"):
        if isinstance(result.get(name), Mapping):
            result[name] = {key: _grouped(table) for key, table in result[name].items()}
    return result


def _grouped(table: Any) -> Any:
    """Settings by dotted name as nested tables; anything else is returned as it is and refused later."""
    return nested(table) if isinstance(table, Mapping) and all(isinstance(name, str) for name in table) else table


def _with_typed(tables: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with these settings over their own; other values are returned as they are and refused later."""
    return {name: merge(table, typed) if isinstance(table, Mapping) else table for name, table in tables.items()}


def _refuse_variants_of_their_own(given: Mapping[str, Any], variants: Mapping[str, Any]) -> None:
    """Refuse a dataset or held-out domains for a grid whose variants have theirs: they would have no effect."""
    for name, setting in (("data", "root"), ("held_out", "held_out")):
        own = [variant for variant, table in variants.items() if setting in _group(table, "data")]
        if name in given and own:
            raise ConfigError(
                f"Expected no other '{name}' for this grid, because its variant '{own[0]}' has its own "
                f"(data.{setting}). Leave it out, or change the file."
            )
