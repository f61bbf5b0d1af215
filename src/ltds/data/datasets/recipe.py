"""Recipe: settings of a run that suit a dataset, used where the user gives none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """Tables of run settings, and settings of the method if it uses class embeddings.

    `note`: where the images of a dataset contradict the recipe, what was changed.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    with_embeddings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def for_images(self, built: Mapping[str, Any]) -> Recipe:
        """The recipe at the size of the images, where the settings that they were built with name another one.

        A recipe was found at one size. Images of 64 pixels are not to be trained at 32 without a word.
        """
        data = self.settings.get("data", {})
        usual, drawn = data.get("size"), built.get("size")
        if usual is None or not isinstance(drawn, int) or drawn == usual:
            return self
        note = (
            f"Its settings were found for images of {usual} pixels; these have {drawn}, so data.size is set to {drawn}"
        )
        return replace(self, settings={**self.settings, "data": {**data, "size": drawn}}, note=note)


BESTIARY = Recipe(
    settings={
        "data": {"size": 32, "batch_size": 32, "augmentation": {"scale": [0.5, 1.0]}},
        "backbone": {"stem": "medium", "width": 24},
        # Chosen on source validation (dc and ltds, 'anime' held out, seed 0) among lr .05, .1, .2 and milestones
        # (.4, .8), (.6, .9): docs/bestiary.md has the numbers.
        "optimizer": {"lr": 0.2},
        # Long enough for the method: source validation still rises from 30 to 120 epochs, for every method tried, and
        # more with averaged weights (docs/bestiary.md).
        "schedule": {"epochs": 120, "steps_per_epoch": 20, "milestones": [0.6, 0.9]},
        "averaging": {"name": "ema", "decay": 0.99, "start": 0.3},
    },
    # Chosen on source validation (ltds, 'plain' and 'woodblock' held out, seed 0) among 1/30, .1, .2: docs/bestiary.md.
    with_embeddings={"temperature": 0.2},
)
