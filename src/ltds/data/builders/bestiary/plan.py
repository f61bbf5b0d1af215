"""Settings of the bestiary, and the list of images that follows from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ltds.core.config import Settings
from ltds.core.errors import expected
from ltds.core.rng import numpy_generator
from ltds.data.builders.bestiary.kinds import KINDS
from ltds.data.builders.bestiary.pose import Variety
from ltds.data.builders.bestiary.render import DOMAINS, LARGEST, SMALLEST, Address
from ltds.data.longtail import domains_of_classes, longtail_counts, split_over_domains


class BestiaryConfig(Settings):
    """How many images of which kind in which domain, how large, and how varied."""

    size: int = Field(default=32, ge=SMALLEST, le=LARGEST, description="side of an image in pixels")
    n_max: int = Field(default=313, ge=1, description="training images of the most common kind")
    n_min: int = Field(default=4, ge=1, description="training images of the rarest kind")
    val_per_pair: int = Field(default=4, ge=0, description="validation images of each trained (domain, kind)")
    test_per_pair: int = Field(default=10, ge=1, description="test images of each (domain, kind)")
    head: float = Field(default=0.2, ge=0.0, le=1.0, description="share of kinds that live in every domain")
    fewest: int = Field(default=2, ge=1, le=len(DOMAINS), description="domains of the rarest kinds")
    exclusive: int = Field(default=2, ge=0, description="kinds that each domain has for itself")
    seed: int = Field(default=0, ge=0)
    variety: Variety = Variety()

    @model_validator(mode="after")
    def _ordered(self) -> BestiaryConfig:
        if self.n_min > self.n_max:
            got = f"n_min={self.n_min}, n_max={self.n_max}"
            raise ValueError(expected("n_min", "at most n_max", got, "Swap or raise them."))
        return self


def plan(config: BestiaryConfig) -> list[Address]:
    """Every image of the dataset, by split, domain, kind and instance.

    Training: long-tailed counts, spread over the domains that each kind may live in. Validation: `val_per_pair` for
    each pair with training images, and none for others. Test: `test_per_pair` for all pairs.
    """
    train = _train_counts(config)
    val = np.where(train > 0, config.val_per_pair, 0)
    test = np.full_like(train, config.test_per_pair)
    return [
        Address(split, domain, kind, instance)
        for split, counts in (("train", train), ("val", val), ("test", test))
        for domain in range(len(DOMAINS))
        for kind in range(len(KINDS))
        for instance in range(counts[domain, kind])
    ]


def _train_counts(config: BestiaryConfig) -> NDArray[np.int64]:
    """(domains, C) training images of each pair."""
    counts = longtail_counts(len(KINDS), config.n_max, config.n_min)
    allowed = domains_of_classes(
        len(KINDS),
        len(DOMAINS),
        numpy_generator(config.seed, "bestiary/domains"),
        head=config.head,
        fewest=config.fewest,
        exclusive=config.exclusive,
    )
    rng = numpy_generator(config.seed, "bestiary/counts")
    columns = [split_over_domains(int(n), allowed[:, kind], rng) for kind, n in enumerate(counts)]
    return np.stack(columns, axis=1)
