"""RunConfig: all settings of a run, made from recipes, TOML files and overrides, as one frozen record."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ltds.core.config import Settings, check_settings, listing, merge
from ltds.core.errors import ConfigError
from ltds.core.storable import stored_values
from ltds.core.trust import require_trust
from ltds.data.datasets import find_recipe
from ltds.data.manifest import Manifest
from ltds.engine.frozen import check_frozen
from ltds.engine.settings import (
    AveragingSettings,
    DataSettings,
    OptimizerSettings,
    RunSettings,
    ScheduleSettings,
    SemanticsSettings,
    SharedSettings,
    decay_for,
)
from ltds.methods.entry import MethodEntry
from ltds.methods.registry import find_method
from ltds.nn.backbones import ADAPTER, BackboneSettings

FILE_SETTINGS = (("data", "features"), ("semantics", "table"), ("backbone", "weights"))  # they may name a file


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run: the shared groups, and the method's name with its settings."""

    data: DataSettings
    semantics: SemanticsSettings
    backbone: BackboneSettings
    optimizer: OptimizerSettings
    schedule: ScheduleSettings
    averaging: AveragingSettings
    run: RunSettings
    method_name: str
    method: Settings

    @property
    def method_entry(self) -> MethodEntry:
        return find_method(self.method_name)

    def to_dict(self) -> dict[str, Any]:
        """Tables for TOML, from which `resolve` makes the same config again."""
        groups = {name: stored_values(getattr(self, name)) for name in SharedSettings.model_fields}
        return {"method": {"name": self.method_name, **stored_values(self.method)}, **groups}


def resolve(*layers: Mapping[str, Any], dataset: Manifest | str = "", trust: Iterable[str] | None = None) -> RunConfig:
    """The config that these tables make, later ones over earlier ones, over the recipe of the dataset (or its name).

    Every mistake is reported at once: in the shared groups, in the method's name and in its settings.
    `trust`: where a layer was read from a file, the modules that may be imported for it; None: the caller wrote all
    layers, so what they name is imported.
    """
    given = merge({"data": {}}, *layers)
    if trust is not None:
        require_trust(given, trust)
    recipe = find_recipe(dataset)
    tables = merge(suited(recipe.settings, given), given)
    method = tables.pop("method", {})
    if not isinstance(method, Mapping):
        raise ConfigError(f"Expected [method] to be a group of settings, but got {method!r}. Set method.name.")
    method = dict(method)
    name = str(method.pop("name", "agg"))
    common, problems = check_settings(SharedSettings, tables)
    settings = None
    try:
        entry = find_method(name)
    except ConfigError as error:
        problems.append(str(error))
    else:
        method = merge(_kept(entry.settings, method), method)
        settings, more = check_settings(entry.method.Config, method, "method.")
        problems += more
        if settings is not None and entry.method.uses_embeddings(settings):
            settings = _with_recipe(entry.method.Config, recipe.with_embeddings, method) or settings
    if common is None or settings is None:
        raise ConfigError(listing(problems))
    check_frozen(common)
    return RunConfig(
        **{group: getattr(common, group) for group in SharedSettings.model_fields}, method_name=name, method=settings
    )


def suited(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recipe as they suit the given ones; without those that have no effect or no meaning there."""
    result = dict(settings)
    if isinstance(given.get("backbone"), Mapping) and "name" in given["backbone"]:
        result.pop("backbone", None)  # it suits another network than the one that was asked for
    schedule = merge({"schedule": {}}, given)["schedule"]
    if schedule.get("decay") == "cosine":
        result["schedule"] = {k: v for k, v in result.get("schedule", {}).items() if k not in ("milestones", "gamma")}
    if "averaging" in result:
        result["averaging"] = _no_longer_than(result.get("schedule", {}) | schedule, result["averaging"])
    if given["data"].get("features"):  # no images: no size, no augmentation, no network for images
        result = {name: group for name, group in result.items() if name not in ("data", "backbone")}
        result["backbone"] = {"name": ADAPTER}
    return result


def _no_longer_than(schedule: Mapping[str, Any], averaging: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's average for a run that may be much shorter than the recipe's."""
    epochs, steps = schedule.get("epochs"), schedule.get("steps_per_epoch")
    if not isinstance(epochs, int) or not isinstance(steps, int) or epochs * steps <= 0:
        return dict(averaging)  # a mistake, which is reported later
    return {**averaging, "decay": min(averaging["decay"], decay_for(epochs * steps))}


def with_absolute_paths(layer: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the files that they name as absolute paths: the run may be resumed from another folder."""
    absolute = dict(layer)
    for group, name in FILE_SETTINGS:
        settings = absolute.get(group)
        value = settings.get(name) if isinstance(settings, Mapping) else None
        if isinstance(value, str) and os.path.isfile(value):
            absolute = merge(absolute, {group: {name: os.path.abspath(value)}})
    return absolute


def with_ranks(config: RunConfig, ranks: int | None) -> RunConfig:
    """The same settings for another number of ranks; None: unchanged."""
    if ranks is None:
        return config
    if ranks < 1:
        raise ConfigError(f"Expected argument 'ranks' to be at least 1, but got {ranks}. Use 1, or leave it out.")
    return replace(config, run=config.run.model_copy(update={"ranks": ranks}))


# Presets that have been given a new setting: what a run means that was stored before there was one.
_BEFORE = {"epi-fcr": {"average_domains": True}, "daml": {"only_known_classes": False}}


def as_stored(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a stored run, with those that it does not know at the value that it was trained with."""
    before = _BEFORE.get(merge({"method": {}}, tables)["method"].get("name"), {})
    return merge({"method": before}, tables)


def _with_recipe(model: type[Settings], recipe: Mapping[str, Any], method: Mapping[str, Any]) -> Settings | None:
    """The method's settings with the recipe's under them; None where the method has no use for the recipe's."""
    known = {name: value for name, value in recipe.items() if name in model.model_fields}
    return check_settings(model, merge(known, method))[0]


def _kept(preset: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The preset's settings, without those of a group that is given another name: they suit the old one."""

    def renamed(key: str) -> bool:
        below, above = preset[key], given.get(key)
        if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
            return False
        return above.get("name") not in (None, below.get("name"))

    return {key: value for key, value in preset.items() if not renamed(key)}
