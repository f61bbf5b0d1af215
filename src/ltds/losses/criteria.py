"""Criteria by name: the classification losses that a method may be given."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from pydantic import Field, PositiveFloat, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.errors import ConfigError, expected
from ltds.core.task import Task
from ltds.losses.adjustment import ZeroCount, logit_adjustment, smoothed_counts
from ltds.losses.calibrated import calibrated_cross_entropy, log_counts
from ltds.losses.equalization import draw_ignored, equalized_cross_entropy, rare_classes

CriterionName = Literal["ce", "bsce", "dc", "equal", "adjusted"]
Share = Annotated[float, Field(gt=0, le=1)]

# The settings that a criterion reads beside its name.
USES: dict[CriterionName, tuple[str, ...]] = {
    "ce": (),
    "bsce": (),
    "dc": (),
    "equal": ("gamma", "rare_share"),
    "adjusted": ("tau", "counts", "zero_count", "blend"),
}


class CriterionSettings(Settings):
    """A criterion and its own settings; a plain text in its place is its name.

    ce: cross-entropy. bsce: balanced softmax, counts pooled over the sources. dc: the paper's Eq. (2), counts of the
    sample's own domain. equal: softmax equalisation, which with probability `gamma` spares a class with less than
    `rare_share` of the images. adjusted: logit adjustment, tau log n added to the logits; `zero_count` says what a
    class weighs that the domain does not have.
    """

    name: CriterionName = "ce"
    gamma: Share = 0.9
    rare_share: Share = 0.005
    tau: PositiveFloat = 1.0
    counts: Literal["domain", "pooled"] = "domain"
    zero_count: ZeroCount = "exclude"
    blend: Share = 0.1

    @model_validator(mode="before")
    @classmethod
    def _text_is_the_name(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> CriterionSettings:
        fields = type(self).model_fields
        for name in fields:
            changed = getattr(self, name) != fields[name].default
            if changed and name not in ("name", *USES[self.name]):
                users = " and ".join(other for other, uses in USES.items() if name in uses)
                raise ValueError(f"criterion '{self.name}' does not use {name}: leave it out, or name {users}")
        if self.counts == "pooled" and self.zero_count == "blend":
            raise ValueError("zero_count=blend mixes a domain's counts with the pool: it needs counts=domain")
        if self.zero_count != "blend" and self.blend != fields["blend"].default:
            raise ValueError("blend has no effect without zero_count=blend: leave it out")
        return self

    @property
    def reads_counts(self) -> bool:
        return self.name != "ce"

    @property
    def per_domain(self) -> bool:
        """Whether it needs images in every source, not only in some."""
        return self.name == "dc" or (self.name == "adjusted" and self.counts == "domain")


class Criterion(nn.Module):
    """(N,) losses of logits (N,C), labels (N,) and source domains (N,); `generator` is drawn from by "equal" only."""

    log_n: Tensor  # (K,C): what is added to the logits of a sample of each source
    rare: Tensor  # (C,) bool: the classes that "equal" spares

    def __init__(self, settings: CriterionSettings, task: Task) -> None:
        super().__init__()
        self.settings = settings
        _need_images(settings, task)
        counts = torch.tensor(task.counts, dtype=torch.get_default_dtype())
        # Facts of the task, not learned.
        self.register_buffer("log_n", _shift(settings, counts), persistent=False)
        self.register_buffer("rare", rare_classes(counts.sum(dim=0), settings.rare_share), persistent=False)
        if settings.name == "equal" and not self.rare.any():
            least = float(counts.sum(dim=0).min() / counts.sum())
            raise ConfigError(
                expected(
                    f"criterion.rare_share={settings.rare_share:g}",
                    "above the share of the rarest class, or 'equal' is plain cross-entropy",
                    f"{least:.4g} for that class",
                    "Raise it with --set method.criterion.rare_share=SHARE.",
                )
            )

    def forward(
        self, logits: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        if self.settings.name == "equal":
            assert generator is not None, "pass clock.generator(...): this criterion draws which negatives it ignores"
            ignored = draw_ignored(self.rare, len(logits), self.settings.gamma, generator)
            return equalized_cross_entropy(logits, labels, ignored)
        return calibrated_cross_entropy(logits, labels, self.log_n[domains])


def _shift(settings: CriterionSettings, counts: Tensor) -> Tensor:
    """(K,C) what a criterion adds to the logits, from counts (K,C)."""
    pooled = counts.sum(dim=0).expand_as(counts)
    match settings.name:
        case "bsce":
            return log_counts(pooled)
        case "dc":
            return log_counts(counts)
        case "adjusted":
            known = counts if settings.counts == "domain" else pooled
            return logit_adjustment(smoothed_counts(known, settings.zero_count, settings.blend), settings.tau)
        case _:
            return torch.zeros_like(counts)


def _need_images(settings: CriterionSettings, task: Task) -> None:
    sizes = task.counts.sum(axis=1)
    empty = [name for name, size in zip(task.sources, sizes, strict=True) if not size]
    if (settings.per_domain and empty) or (settings.reads_counts and not sizes.sum()):
        raise ConfigError(
            f"Expected class counts for criterion '{settings.name}', but there are no training images in "
            f"{', '.join(repr(name) for name in empty) or 'any source domain'}. "
            "Leave such a domain out of the dataset, or add --set method.criterion=ce."
        )
