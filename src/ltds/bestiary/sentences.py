"""A sentence about each kind, read off its attributes."""

from __future__ import annotations

import re

from ltds.bestiary.kinds import Kind

_ARTICLE = re.compile(r"\b([Aa])(?= [aeiou])")
_COUNT = {2: "two", 4: "four", 6: "six", 8: "eight"}
_HORNS = {
    "short": "short horns",
    "curved": "curved horns",
    "antlers": "branching antlers",
    "nose": "a horn on its nose",
    "feelers": "feelers",
}
_TAILS = {"fish": "a fish tail", "fluke": "a tail fluke", "fan": "a great fan of a tail"}


def describe(kind: Kind) -> str:
    """One sentence that tells how the kind looks."""
    parts = [_legs(kind), *_front(kind), *_body(kind)]
    start = f"A {kind.name} is a {_size(kind)}, {_build(kind)} {kind.main} animal with"
    return _ARTICLE.sub(r"\1n", f"{start} {', '.join(parts[:-1])} and {parts[-1]}.")


def _size(kind: Kind) -> str:
    names = ((0.1, "tiny"), (0.35, "small"), (0.65, "middle-sized"), (0.85, "large"), (1.0, "huge"))
    return next(name for limit, name in names if kind.size <= limit)


def _build(kind: Kind) -> str:
    if kind.upright > 0.5:
        return "upright"
    if kind.depth > 0.7:
        return "round"
    if kind.depth < 0.36:
        return "slender"
    return "long-bodied" if kind.length > 0.65 else "well-built"


def _legs(kind: Kind) -> str:
    if kind.legs == 0:
        return "no legs"
    length = "short" if kind.leg < 0.3 else "long" if kind.leg > 0.6 else "middling"
    width = "thin" if kind.limb < 0.25 else "thick" if kind.limb > 0.5 else "sturdy"
    return f"{_COUNT[kind.legs]} {length} {width} legs" + (f" in {kind.trim} socks" if kind.socks else "")


def _front(kind: Kind) -> list[str]:
    said = {
        "a very long neck": kind.neck > 0.65,
        "a long neck": 0.4 < kind.neck <= 0.65,
        f"{kind.ears} ears": kind.ears != "none",
        _HORNS.get(kind.horns, ""): kind.horns != "none",
        f"a long {kind.trim} beak": kind.beak > 0.5,
        f"a {kind.trim} beak": 0 < kind.beak <= 0.5,
        "a long snout": kind.snout > 0.65 and kind.beak == 0,
        "a trunk": kind.trunk > 0,
        "long tusks": kind.tusks > 0.5,
        "short tusks": 0 < kind.tusks <= 0.5,
        f"a {kind.mark} mane around its head": kind.ruff > 0.5,
        "whiskered cheeks": 0 < kind.ruff <= 0.5,
        "a crest": kind.crest > 0,
        "pincers": kind.claws > 0,
    }
    return [words for words, true in said.items() if true]


def _body(kind: Kind) -> list[str]:
    said = {
        f"{kind.wings} wings": kind.wings != "none",
        "fins": kind.fins > 0,
        "a shell": kind.shell > 0,
        "a hump": kind.hump > 0,
        f"long {kind.mark} spines": kind.spikes > 0.7,
        f"short {kind.mark} spines": 0 < kind.spikes <= 0.7,
        "shaggy fur": kind.shaggy > 0.3,
        f"{kind.mark} {kind.pattern}": kind.pattern not in ("plain", "saddle"),
        f"a {kind.mark} saddle": kind.pattern == "saddle",
        f"a {kind.belly} belly": kind.belly != kind.main,
        _TAILS.get(kind.tail, f"a {kind.tail} tail"): kind.tail != "none",
    }
    return [words for words, true in said.items() if true] or ["no tail"]
