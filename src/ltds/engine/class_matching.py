"""The classes of another dataset and those of a model, matched by their names."""

from __future__ import annotations

from collections.abc import Sequence

from ltds.core.errors import DataError, expected
from ltds.core.matching import plain_spelling
from ltds.core.text import composed


def as_in_model(classes: Sequence[str], trained: Sequence[str]) -> list[str]:
    """The classes of a dataset, spelled as the model spells them: an accent in another encoding is no other class."""
    spelled = {composed(name): name for name in trained}
    return [name if name in trained else spelled.get(composed(name), name) for name in classes]


def match_classes(dataset: str, classes: Sequence[str], trained: Sequence[str]) -> dict[str, list[str]]:
    """Which classes of the dataset the model knows, which it does not, and which of the model's are not there."""
    matched = [name for name in dict.fromkeys(classes) if name in trained]
    if not matched:
        some = ", ".join(f"'{name}'" for name in trained[:5])
        got = ", ".join(f"'{name}'" for name in classes[:5])
        remedy = "Classes are matched by name: rename those of the dataset."
        rule = f"one with classes that the model knows ({some}, ...)"
        raise DataError(expected(f"dataset '{dataset}'", rule, f"{got}, ...", remedy))
    extra = [name for name in classes if name not in trained]
    alike = {plain_spelling(name): name for name in trained}
    return {
        "matched": matched,
        "missing": [name for name in trained if name not in classes],
        "open": extra,
        "spelled_differently": [
            f"{name} ({alike[plain]})" for name in extra if (plain := plain_spelling(name)) in alike
        ],
    }
