"""Names that people spell in two ways."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ltds.core.matching import plain_spelling


def spelling_variants(names: Sequence[str]) -> list[list[str]]:
    """Groups of names that differ in case, spacing, hyphens or the encoding of accents only: "Cat", "cat "."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        # Spaces may be left out ("polarbear"), but a + is a part of the name: HER2+ and HER2 are two names.
        groups[plain_spelling(name, r"[\s_\-]+", joined_by="")].append(name)
    return [group for group in groups.values() if len(group) > 1]
