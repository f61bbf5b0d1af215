"""RunConfig: all settings of a run, made from recipes, TOML files and overrides, as one frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ltds.core.config import Settings, check, listing, merge, parse
from ltds.core.errors import ConfigError
from ltds.data.datasets import find_recipe
from ltds.engine.settings import (
    AveragingSettings,
    DataSettings,
    OptimizerSettings,
    RunSettings,
    ScheduleSettings,
    SemanticsSettings,
    SharedSettings,
)
from ltds.methods.presets import Preset, find_preset
from ltds.nn.backbones import BackboneSettings


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
    def preset(self) -> Preset:
        return find_preset(self.method_name)

    def to_dict(self) -> dict[str, Any]:
        """Tables for TOML, from which `resolve` makes the same config again."""
        groups = {name: getattr(self, name).model_dump(mode="json") for name in SharedSettings.model_fields}
        return {"method": {"name": self.method_name, **self.method.model_dump(mode="json")}, **groups}


def resolve(*layers: Mapping[str, Any], dataset: str = "") -> RunConfig:
    """The config that these tables make, later ones over earlier ones, over the recipe of the dataset.

    Every mistake is reported at once: in the common groups, in the method's name and in its settings.
    """
    given = merge({"data": {}}, *layers)
    recipe = find_recipe(dataset)
    suited = dict(recipe.settings)
    if isinstance(given.get("backbone"), Mapping) and "name" in given["backbone"]:
        suited.pop("backbone", None)  # it suits another network than the one that was asked for
    tables = merge(suited, given)
    method = tables.pop("method", {})
    if not isinstance(method, Mapping):
        raise ConfigError(f"Expected [method] to be a group of settings, but got {method!r}. Set method.name.")
    method = dict(method)
    name = str(method.pop("name", "agg"))
    common, problems = check(SharedSettings, tables)
    settings = None
    try:
        preset = find_preset(name)
    except ConfigError as error:
        problems.append(str(error))
    else:
        method = merge(_kept(preset.settings, method), method)
        settings, more = check(preset.method.Config, method, "method.")
        problems += more
        if settings is not None and preset.method.uses_embeddings(settings):
            known = preset.method.Config.model_fields
            for_embeddings = {name: value for name, value in recipe.with_embeddings.items() if name in known}
            settings = parse(preset.method.Config, merge(for_embeddings, method))
    if common is None or settings is None:
        raise ConfigError(listing(problems))
    return RunConfig(
        **{group: getattr(common, group) for group in SharedSettings.model_fields}, method_name=name, method=settings
    )


def _kept(preset: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The preset's settings, without those of a group that is given another name: they suit the old one."""

    def renamed(key: str) -> bool:
        below, above = preset[key], given.get(key)
        if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
            return False
        return above.get("name") not in (None, below.get("name"))

    return {key: value for key, value in preset.items() if not renamed(key)}
