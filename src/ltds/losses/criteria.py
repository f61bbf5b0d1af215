"""Criteria by name: the classification losses that a method can be given, and losses from outside the package."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeGuard, cast

import torch
from pydantic import Field, SerializerFunctionWrapHandler, create_model, model_serializer, model_validator
from pydantic.fields import FieldInfo
from torch import Tensor, nn

from ltds.core.config import Settings, settings_class
from ltds.core.errors import ConfigError, did_you_mean, expected
from ltds.core.registry import find_or_import
from ltds.core.task import Task
from ltds.losses.adjustment import LogitAdjustedLoss
from ltds.losses.calibrated import (
    BalancedSoftmaxLoss,
    DistributionCalibratedLoss,
    PlainCrossEntropy,
    ShiftedCrossEntropy,
)
from ltds.losses.classification import ClassificationLoss, CountsNeeded
from ltds.losses.equalization import EqualizedLoss

LossFunction = Callable[[Tensor, Tensor, Tensor, torch.Generator | None], Tensor]

CRITERIA: dict[str, type[ClassificationLoss]] = {
    "ce": PlainCrossEntropy,
    "bsce": BalancedSoftmaxLoss,
    "dc": DistributionCalibratedLoss,
    "equal": EqualizedLoss,
    "adjusted": LogitAdjustedLoss,
}


# Every run stores these, the settings of `equal` and `adjusted`, even with another criterion: then at these defaults.
# It must stay so: the identity of a run is a hash of what it stores, and reports compare it. Do not add to them.
ALWAYS_STORED: dict[str, Any] = {
    "gamma": 0.9,
    "rare_share": 0.005,
    "tau": 1.0,
    "counts": "domain",
    "zero_count": "exclude",
    "blend": 0.1,
}


class CriterionSettings(Settings, extra="allow"):
    """A criterion and its settings. A plain text instead of the group is the name."""

    name: str = Field("ce", description=f"{', '.join(CRITERIA)}, or your own loss as 'package.module:Thing'")

    @model_validator(mode="before")
    @classmethod
    def _parsed_by_the_loss(cls, data: Any) -> Any:
        given = {"name": data} if isinstance(data, str) else data
        if not isinstance(given, Mapping) or not isinstance(name := given.get("name", "ce"), str):
            return given  # not a group of settings: refused by its type
        config = _config_type(find_or_import("criterion", name, CRITERIA), name)
        settings = config.model_validate(_own_settings(name, config, given))
        return {"name": name, **{setting: getattr(settings, setting) for setting in config.model_fields}}

    @model_serializer(mode="wrap")
    def _as_always_stored(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"name": self.name, **ALWAYS_STORED, **serialize(self)}

    @classmethod
    def listed_fields(cls) -> dict[str, FieldInfo]:
        """The name, and the settings of each criterion of the package."""
        listed = dict(cls.model_fields)
        for name, loss in CRITERIA.items():
            for setting, field in loss.Config.model_fields.items():
                listed[setting] = copy(field)
                listed[setting].description = f"{name}: {field.description}"
        return listed


def criterion_field() -> Any:
    """The setting `criterion` of a method that trains with plain cross-entropy by default."""
    description = "classification loss: a name (ce, bsce, dc, ...) or a group with its settings"
    return Field(CriterionSettings(), description=description)


class Criterion(nn.Module):
    """(N,) losses of logits (N,C), labels (N,) and source domains (N,), by the loss that the settings name.

    'package.module:Thing' is a subclass of `ClassificationLoss`, or a function
    (logits, labels, domains, generator) -> (N,) losses.
    """

    def __init__(self, settings: CriterionSettings, task: Task) -> None:
        super().__init__()
        self.settings = settings
        thing = find_or_import("criterion", settings.name, CRITERIA)
        self.loss = _build(thing, settings, task) if _is_loss_class(thing) else _function(thing, settings.name)

    @property
    def log_n(self) -> Tensor:
        """(K,C) what a calibrated loss adds to the logits of a sample of each source."""
        assert isinstance(self.loss, ShiftedCrossEntropy), f"'{self.settings.name}' adds nothing to the logits"
        return self.loss.log_n

    def forward(
        self, logits: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        losses: Tensor = self.loss(logits, labels, domains, generator)
        if not isinstance(losses, Tensor) or losses.shape != labels.shape:
            got = tuple(losses.shape) if isinstance(losses, Tensor) else f"a {type(losses).__name__}"
            raise ConfigError(
                f"Expected criterion '{self.settings.name}' to return one loss per sample, {tuple(labels.shape)}, but "
                f"got {got}. Return the losses before the mean, as a tensor."
            )
        return losses


def _is_loss_class(thing: object) -> TypeGuard[type[ClassificationLoss]]:
    return isinstance(thing, type) and issubclass(thing, ClassificationLoss)


def _build(thing: type[ClassificationLoss], settings: CriterionSettings, task: Task) -> ClassificationLoss:
    arguments = settings.model_extra or {}
    _need_images(settings.name, thing.counts_needed(arguments), task)
    counts = torch.tensor(task.counts, dtype=torch.get_default_dtype())
    try:
        return thing(counts, **arguments)
    except TypeError as error:
        raise ConfigError(
            f"Expected criterion '{settings.name}' to be built as Loss(domain_counts, **settings), but got: {error}. "
            "Give __init__ a keyword argument for each setting of its Config, and other arguments a default."
        ) from error


def _function(thing: Any, name: str) -> LossFunction:
    if isinstance(thing, type) or not callable(thing):
        raise ConfigError(
            f"Expected criterion '{name}' to be a function or a subclass of ltds.losses.ClassificationLoss, but got "
            f"{thing!r}. Name a function (logits, labels, domains, generator) that returns losses (N,)."
        )
    try:
        inspect.signature(thing).bind("logits", "labels", "domains", "generator")
    except TypeError as error:
        remedy = "It must accept all four, even if it uses only some."
        rule = "a function (logits, labels, domains, generator)"
        raise ConfigError(expected(f"criterion '{name}'", rule, f"'{error}'", remedy)) from error
    return cast(LossFunction, thing)


def _config_type(thing: object, name: str) -> type[Settings]:
    """The settings of a criterion: the `Config` of its class. A plain function has none."""
    if not _is_loss_class(thing):
        return Settings
    config = settings_class("criterion", name, thing.Config)
    return config if config is not Settings else _former_config(thing)


def _former_config(loss: type[ClassificationLoss]) -> type[Settings]:
    """The settings of a class without `Config`, as it was before: its keyword arguments that the package's losses have.

    Runs with such a class are resumed and loaded.
    """
    keywords = [p.name for p in inspect.signature(loss).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known = {name: field for other in CRITERIA.values() for name, field in other.Config.model_fields.items()}
    fields: dict[str, Any] = {name: (known[name].annotation, known[name]) for name in keywords if name in known}
    return create_model("FormerSettings", __base__=Settings, **fields) if fields else Settings


def _own_settings(name: str, config: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given settings that the criterion has; raises for others, except at the value that all runs store."""
    others = [setting for setting in given if setting not in (*config.model_fields, "name")]
    for setting in others:
        if setting in ALWAYS_STORED and given[setting] == ALWAYS_STORED[setting]:
            continue
        readers = [other for other, loss in CRITERIA.items() if setting in loss.Config.model_fields]
        if readers:
            raise ValueError(
                f"{setting} has no effect with criterion '{name}', only with {' and '.join(readers)}: leave it out"
            )
        raise ValueError(f"criterion '{name}' has no setting '{setting}'. {did_you_mean(setting, config.model_fields)}")
    return {setting: value for setting, value in given.items() if setting in config.model_fields}


def _need_images(name: str, needed: CountsNeeded, task: Task) -> None:
    sizes = task.counts.sum(axis=1)
    empty = [source for source, size in zip(task.sources, sizes, strict=True) if not size]
    if (needed == "domain" and empty) or (needed != "none" and not sizes.sum()):
        raise ConfigError(
            f"Expected class counts for criterion '{name}', but there are no training images in "
            f"{', '.join(repr(source) for source in empty) or 'any source domain'}. "
            "Leave such a domain out of the dataset, or set method.criterion=ce."
        )
