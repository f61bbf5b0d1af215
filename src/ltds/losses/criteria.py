"""Criteria by name: the classification losses that a method can be given, and losses from outside the package."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, cast

import torch
from pydantic import Field, PositiveFloat, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings, refuse_idle
from ltds.core.errors import ConfigError, expected
from ltds.core.registry import find_or_import
from ltds.core.task import Task
from ltds.losses.adjustment import CountsSource, LogitAdjustedLoss, ZeroCount
from ltds.losses.calibrated import (
    BalancedSoftmaxLoss,
    DistributionCalibratedLoss,
    PlainCrossEntropy,
    ShiftedCrossEntropy,
)
from ltds.losses.classification import ClassificationLoss, CountsNeeded
from ltds.losses.equalization import EqualizedLoss

PositiveFraction = Annotated[float, Field(gt=0, le=1)]
LossFunction = Callable[[Tensor, Tensor, Tensor, torch.Generator | None], Tensor]

CRITERIA: dict[str, type[ClassificationLoss]] = {
    "ce": PlainCrossEntropy,
    "bsce": BalancedSoftmaxLoss,
    "dc": DistributionCalibratedLoss,
    "equal": EqualizedLoss,
    "adjusted": LogitAdjustedLoss,
}


class CriterionSettings(Settings):
    """A criterion and its settings. A plain text instead of the group is the name."""

    name: str = Field("ce", description=f"{', '.join(CRITERIA)}, or your own loss as 'package.module:Thing'")
    gamma: PositiveFraction = Field(0.9, description="equal: probability that a sample ignores a rare class")
    rare_share: PositiveFraction = Field(0.005, description="equal: a class with a smaller share of the images is rare")
    tau: PositiveFloat = Field(1.0, description="adjusted: factor on the log counts that are added to the logits")
    counts: CountsSource = Field("domain", description="adjusted: counts of the sample's domain, or pooled")
    zero_count: ZeroCount = Field("exclude", description="adjusted: weight of a class without images in a domain")
    blend: PositiveFraction = Field(0.1, description="adjusted: share of pooled counts for zero_count=blend")

    @model_validator(mode="before")
    @classmethod
    def _text_is_the_name(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> CriterionSettings:
        if ":" not in self.name:  # a loss from elsewhere is imported and checked when the criterion is built
            _refuse_unread(self, find_or_import("criterion", self.name, CRITERIA))
        if self.counts == "pooled" and self.zero_count == "blend":
            raise ValueError("zero_count=blend mixes a domain's counts with the pool: it needs counts=domain")
        if self.zero_count != "blend":
            refuse_idle(self, ["blend"], "without zero_count=blend")
        return self


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
        try:
            _refuse_unread(settings, thing)
        except ValueError as error:
            raise ConfigError(f"Expected only settings that the criterion reads, but {error}.") from error
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


def _is_loss_class(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, ClassificationLoss)


def _build(thing: type[ClassificationLoss], settings: CriterionSettings, task: Task) -> ClassificationLoss:
    arguments = {name: getattr(settings, name) for name in _settings_read(thing)}
    _need_images(settings.name, thing.counts_needed(arguments), task)
    counts = torch.tensor(task.counts, dtype=torch.get_default_dtype())
    try:
        return thing(counts, **arguments)
    except TypeError as error:
        raise ConfigError(
            f"Expected criterion '{settings.name}' to be built as Loss(domain_counts, **settings), but got: {error}. "
            f"The settings are {', '.join(CriterionSettings.model_fields)}; give other arguments a default."
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
        remedy = "Give it all four, also if it needs only some of them."
        rule = "a function (logits, labels, domains, generator)"
        raise ConfigError(expected(f"criterion '{name}'", rule, f"'{error}'", remedy)) from error
    return cast(LossFunction, thing)


def _settings_read(thing: object) -> tuple[str, ...]:
    """The settings that a loss reads: its keyword-only arguments. A plain function reads none."""
    if not _is_loss_class(thing):
        return ()
    parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    keywords = (p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    return tuple(name for name in keywords if name in CriterionSettings.model_fields)


def _refuse_unread(settings: CriterionSettings, thing: object) -> None:
    read = ("name", *_settings_read(thing))
    for name in (field for field in CriterionSettings.model_fields if field not in read):
        readers = [other for other, loss in CRITERIA.items() if name in _settings_read(loss)]
        refuse_idle(settings, [name], f"with criterion '{settings.name}', only with {' and '.join(readers)}")


def _need_images(name: str, needed: CountsNeeded, task: Task) -> None:
    sizes = task.counts.sum(axis=1)
    empty = [source for source, size in zip(task.sources, sizes, strict=True) if not size]
    if (needed == "domain" and empty) or (needed != "none" and not sizes.sum()):
        raise ConfigError(
            f"Expected class counts for criterion '{name}', but there are no training images in "
            f"{', '.join(repr(source) for source in empty) or 'any source domain'}. "
            "Leave such a domain out of the dataset, or set method.criterion=ce."
        )
