"""Names of one list found in another, where spellings may differ a little."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

SEPARATORS = r"[\s+_\-]+"  # between the words of a name


def plain_spelling(name: str, separators: str = SEPARATORS, joined_by: str = " ") -> str:
    """What spellings of a name have in common: "Grizzly_bear" and "grizzly+bear", "Straße" and "STRASSE".

    Case, the encoding of characters (accents, wide letters) and the `separators` between words do not count.
    """
    return re.sub(separators, joined_by, unicodedata.normalize("NFKC", name)).strip().casefold()


def match_names(stored: Sequence[str], asked: Sequence[str], loosely: Callable[[str], str]) -> list[int | None]:
    """For each name that is asked for, the position of the same name in `stored`; None where there is none.

    Otherwise that of the only stored name with the same `loosely(name)`, unless several of the names that are asked for
    share it.
    """
    exact = {name: i for i, name in enumerate(stored)}
    if all(name in exact for name in asked):
        return [exact[name] for name in asked]
    counts, wanted = (Counter(map(loosely, names)) for names in (stored, set(asked)))
    loose = {loosely(name): i for i, name in enumerate(stored)}
    unique = {key: i for key, i in loose.items() if counts[key] == wanted[key] == 1}
    return [exact[name] if name in exact else unique.get(loosely(name)) for name in asked]
