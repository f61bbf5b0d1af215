"""Names of one list found in another, where spellings may differ a little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence


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
