"""Names that people spell in two ways."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence


def spelling_variants(names: Sequence[str]) -> list[list[str]]:
    """Groups of names that differ in case, spacing, hyphens or the encoding of accents only: "Cat", "cat "."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        plain = unicodedata.normalize("NFKC", name).casefold()
        groups[re.sub(r"[\s_\-]+", "", plain)].append(name)
    return [group for group in groups.values() if len(group) > 1]
