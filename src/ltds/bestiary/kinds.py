"""The fifty kinds of animals, and their attributes as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]

PALETTE: dict[str, Colour] = {
    "black": (38, 36, 40),
    "charcoal": (74, 72, 80),
    "grey": (140, 142, 148),
    "silver": (186, 190, 196),
    "white": (240, 238, 232),
    "cream": (238, 220, 180),
    "sand": (214, 178, 116),
    "gold": (232, 178, 60),
    "yellow": (246, 214, 56),
    "orange": (232, 128, 40),
    "rust": (178, 84, 40),
    "brown": (122, 80, 50),
    "umber": (84, 56, 42),
    "red": (204, 44, 44),
    "pink": (240, 150, 160),
    "mauve": (150, 116, 138),
    "blue": (56, 104, 190),
    "navy": (44, 62, 110),
    "teal": (40, 150, 160),
    "green": (76, 150, 66),
    "olive": (112, 118, 56),
}

EARS = ("none", "round", "pointed", "long", "floppy")
HORNS = ("none", "short", "curved", "antlers", "nose", "feelers")
TAILS = ("none", "short", "long", "tufted", "bushy", "flowing", "thick", "fan", "curly", "fish", "fluke")
WINGS = ("none", "folded", "clear")
PATTERNS = ("plain", "spots", "stripes", "bands", "patches", "saddle")


@dataclass(frozen=True)
class Kind:
    """What a creature looks like. Numbers run from 0 (none, tiny) to 1 (the most of all kinds), except `legs`."""

    name: str
    legs: int
    main: str
    belly: str
    mark: str = "black"
    trim: str = "black"
    pattern: str = "plain"
    size: float = 0.5
    length: float = 0.5
    depth: float = 0.5
    leg: float = 0.5
    limb: float = 0.4
    upright: float = 0.0
    neck: float = 0.2
    carriage: float = 0.5
    head: float = 0.4
    snout: float = 0.3
    beak: float = 0.0
    ears: str = "none"
    horns: str = "none"
    tail: str = "none"
    wings: str = "none"
    fins: float = 0.0
    shell: float = 0.0
    claws: float = 0.0
    trunk: float = 0.0
    tusks: float = 0.0
    ruff: float = 0.0
    crest: float = 0.0
    hump: float = 0.0
    spikes: float = 0.0
    shaggy: float = 0.0
    socks: float = 0.0


# fmt: off
# The order is the order of frequency, head to tail. Families are spread over it, so that nearly every rare kind has a
# common relative: cheetah and leopard, moose and deer, mammoth and elephant, porcupine and hedgehog, and so on.
KINDS: tuple[Kind, ...] = (
    Kind("tiger", 4, "orange", "white", pattern="stripes", size=.8, length=.75, depth=.5, leg=.42, limb=.55, neck=.15,
         carriage=.4, head=.6, snout=.25, ears="round", tail="long"),
    Kind("horse", 4, "brown", "brown", mark="umber", trim="umber", size=.9, length=.6, depth=.5, leg=.75, limb=.35,
         neck=.5, carriage=.6, head=.35, snout=.75, ears="pointed", tail="flowing", crest=.7, socks=.3),
    Kind("elephant", 4, "grey", "grey", trim="charcoal", size=1., length=.6, depth=.95, leg=.6, limb=.9, neck=.1,
         carriage=.6, head=.8, snout=.1, ears="floppy", tail="tufted", trunk=.9, tusks=.7),
    Kind("deer", 4, "rust", "cream", size=.6, length=.5, depth=.4, leg=.75, limb=.2, neck=.45, carriage=.75, head=.3,
         snout=.5, ears="pointed", horns="antlers", tail="short"),
    Kind("owl", 2, "brown", "cream", mark="umber", trim="gold", pattern="spots", size=.3, length=.4, depth=.75,
         leg=.12, limb=.3, upright=.95, neck=.05, carriage=.7, head=.95, beak=.1, ears="pointed", tail="short",
         wings="folded"),
    Kind("crocodile", 4, "green", "cream", mark="olive", pattern="bands", size=.7, length=.85, depth=.36, leg=.2,
         limb=.45, neck=.1, carriage=.2, head=.3, snout=1., tail="thick", spikes=.25),
    Kind("goldfish", 0, "orange", "gold", trim="orange", size=.2, length=.45, depth=.75, head=.5, tail="fish", fins=.5),
    Kind("bear", 4, "umber", "umber", trim="black", size=.8, length=.6, depth=.8, leg=.4, limb=.85, neck=.15,
         carriage=.35, head=.6, snout=.35, ears="round", tail="none"),
    Kind("bee", 6, "yellow", "yellow", mark="black", trim="black", pattern="bands", size=.1, length=.55, depth=.5,
         leg=.35, limb=.12, head=.5, horns="feelers", wings="clear"),
    Kind("pig", 4, "pink", "pink", mark="mauve", trim="mauve", size=.5, length=.6, depth=.8, leg=.28, limb=.4, neck=.1,
         carriage=.35, head=.6, snout=.45, ears="pointed", tail="curly"),
    Kind("wolf", 4, "grey", "silver", trim="charcoal", size=.6, length=.6, depth=.4, leg=.6, limb=.35, neck=.3,
         carriage=.5, head=.45, snout=.6, ears="pointed", tail="bushy", ruff=.1),
    Kind("flamingo", 2, "pink", "pink", mark="red", trim="black", size=.5, length=.35, depth=.45, leg=1., limb=.1,
         upright=.15, neck=.85, carriage=.9, head=.3, beak=.4, tail="short", wings="folded"),
    Kind("turtle", 4, "olive", "cream", mark="umber", trim="brown", pattern="patches", size=.4, length=.6, depth=.6,
         leg=.15, limb=.5, neck=.3, carriage=.5, head=.4, snout=.15, tail="short", shell=1.),
    Kind("cow", 4, "white", "pink", mark="black", trim="charcoal", pattern="patches", size=.8, length=.7, depth=.7,
         leg=.5, limb=.4, neck=.2, carriage=.4, head=.45, snout=.6, ears="floppy", horns="short", tail="tufted"),
    Kind("spider", 8, "black", "charcoal", mark="red", trim="black", pattern="spots", size=.1, length=.4, depth=.7,
         leg=.8, limb=.12, head=.45),
    Kind("giraffe", 4, "gold", "cream", mark="rust", trim="rust", pattern="patches", size=1., length=.45, depth=.45,
         leg=.95, limb=.3, neck=1., carriage=.9, head=.3, snout=.55, ears="pointed", horns="short", tail="tufted",
         crest=.3),
    Kind("rabbit", 4, "sand", "white", trim="cream", size=.2, length=.35, depth=.6, leg=.22, limb=.4, upright=.2,
         neck=.1, carriage=.6, head=.6, snout=.2, ears="long", tail="short"),
    Kind("shark", 0, "grey", "white", trim="grey", size=.9, length=1., depth=.4, head=.4, snout=.6, tail="fish",
         fins=1.),
    Kind("lion", 4, "gold", "cream", mark="rust", trim="rust", size=.8, length=.7, depth=.5, leg=.45, limb=.5,
         neck=.15, carriage=.5, head=.6, snout=.3, ears="round", tail="tufted", ruff=1.),
    Kind("penguin", 2, "black", "white", trim="orange", size=.4, length=.55, depth=.6, leg=.06, limb=.4, upright=1.,
         neck=.05, carriage=.8, head=.55, beak=.35, tail="short", wings="folded"),
    Kind("hedgehog", 4, "umber", "cream", mark="brown", trim="cream", size=.15, length=.4, depth=.75, leg=.12, limb=.3,
         neck=.05, carriage=.2, head=.5, snout=.55, ears="round", tail="short", spikes=.55),
    Kind("camel", 4, "sand", "cream", mark="brown", trim="brown", size=.9, length=.55, depth=.5, leg=.8, limb=.3,
         neck=.6, carriage=.5, head=.35, snout=.55, ears="round", tail="tufted", hump=1.),
    Kind("snake", 0, "teal", "yellow", mark="navy", trim="navy", pattern="bands", size=.3, length=1., depth=.12,
         head=.25, snout=.3),
    Kind("fox", 4, "orange", "white", trim="umber", size=.4, length=.55, depth=.35, leg=.45, limb=.28, neck=.2,
         carriage=.4, head=.5, snout=.6, ears="pointed", tail="bushy", socks=.6),
    Kind("crab", 8, "red", "orange", trim="red", size=.2, length=.5, depth=.6, leg=.5, limb=.25, head=.1, shell=.6,
         claws=1.),
    Kind("peacock", 2, "blue", "green", mark="gold", trim="charcoal", size=.5, length=.4, depth=.4, leg=.4, limb=.12,
         upright=.35, neck=.5, carriage=.8, head=.3, beak=.2, tail="fan", wings="folded", crest=.6),
    Kind("rhino", 4, "charcoal", "grey", trim="grey", size=.9, length=.75, depth=.8, leg=.4, limb=.75, neck=.15,
         carriage=.2, head=.62, snout=.75, ears="pointed", horns="nose", tail="tufted"),
    Kind("zebra", 4, "white", "white", mark="black", trim="black", pattern="stripes", size=.8, length=.6, depth=.5,
         leg=.7, limb=.33, neck=.45, carriage=.6, head=.38, snout=.7, ears="pointed", tail="tufted", crest=.6),
    Kind("ladybird", 6, "red", "black", mark="black", trim="black", pattern="spots", size=.05, length=.45, depth=.9,
         leg=.2, limb=.15, head=.45, horns="feelers", shell=.9),
    Kind("boar", 4, "umber", "brown", mark="black", trim="black", size=.5, length=.6, depth=.75, leg=.35, limb=.35,
         neck=.15, carriage=.15, head=.65, snout=.75, ears="pointed", tail="curly", tusks=.4, crest=.5, hump=.25,
         spikes=.15),
    Kind("squirrel", 4, "rust", "cream", trim="umber", size=.15, length=.35, depth=.45, leg=.22, limb=.35, upright=.6,
         neck=.1, carriage=.6, head=.55, snout=.3, ears="pointed", tail="bushy"),
    Kind("whale", 0, "navy", "silver", trim="navy", size=1., length=.85, depth=.9, head=.6, tail="fluke", fins=.4),
    Kind("leopard", 4, "gold", "white", mark="umber", pattern="spots", size=.7, length=.72, depth=.45, leg=.42,
         limb=.5, neck=.15, carriage=.4, head=.52, snout=.28, ears="round", tail="long"),
    Kind("parrot", 2, "green", "yellow", mark="red", trim="black", size=.3, length=.45, depth=.45, leg=.12, limb=.2,
         upright=.7, neck=.08, carriage=.6, head=.6, beak=.35, tail="long", wings="folded"),
    Kind("goat", 4, "white", "white", mark="grey", trim="charcoal", size=.5, length=.5, depth=.55, leg=.5, limb=.28,
         neck=.3, carriage=.6, head=.38, snout=.5, ears="floppy", horns="curved", tail="short", shaggy=.5),
    Kind("kangaroo", 4, "rust", "cream", trim="brown", size=.7, length=.5, depth=.5, leg=.5, limb=.5, upright=.75,
         neck=.2, carriage=.5, head=.38, snout=.55, ears="long", tail="thick"),
    Kind("dragonfly", 6, "teal", "green", mark="navy", trim="navy", pattern="bands", size=.1, length=1., depth=.14,
         leg=.2, limb=.08, head=.5, wings="clear"),
    Kind("moose", 4, "umber", "brown", trim="sand", size=1., length=.6, depth=.6, leg=.8, limb=.33, neck=.3,
         carriage=.45, head=.45, snout=.85, ears="pointed", horns="antlers", tail="short", hump=.45, shaggy=.15,
         socks=.7),
    Kind("panda", 4, "white", "white", mark="black", trim="black", size=.7, length=.55, depth=.85, leg=.35, limb=.85,
         neck=.12, carriage=.4, head=.72, snout=.25, ears="round", tail="none", pattern="bands", socks=1.),
    Kind("stork", 2, "white", "white", mark="black", trim="red", size=.5, length=.4, depth=.42, leg=.9, limb=.1,
         upright=.25, neck=.6, carriage=.8, head=.32, beak=.9, tail="short", wings="folded"),
    Kind("hippo", 4, "mauve", "pink", trim="mauve", size=.9, length=.7, depth=.9, leg=.3, limb=.75, neck=.1,
         carriage=.3, head=.95, snout=.65, ears="round", tail="short"),
    Kind("clownfish", 0, "orange", "orange", mark="white", trim="black", size=.15, length=.6, depth=.55, head=.5,
         tail="fish", fins=.5, pattern="bands"),
    Kind("skunk", 4, "black", "black", mark="white", trim="white", size=.25, length=.5, depth=.45, leg=.25, limb=.3,
         neck=.15, carriage=.3, head=.42, snout=.45, ears="round", tail="bushy", pattern="saddle"),
    Kind("bison", 4, "brown", "umber", mark="umber", trim="umber", size=.9, length=.65, depth=.75, leg=.42, limb=.4,
         neck=.15, carriage=.1, head=.6, snout=.4, ears="none", horns="curved", tail="tufted", hump=.7, shaggy=.7,
         ruff=.65),
    Kind("cheetah", 4, "sand", "white", mark="black", pattern="spots", size=.6, length=.75, depth=.32, leg=.68,
         limb=.28, neck=.2, carriage=.5, head=.36, snout=.25, ears="round", tail="long"),
    Kind("llama", 4, "cream", "white", mark="sand", trim="brown", size=.6, length=.42, depth=.55, leg=.58, limb=.32,
         neck=.7, carriage=.95, head=.36, snout=.4, ears="long", tail="short", shaggy=.6),
    Kind("porcupine", 4, "charcoal", "umber", mark="white", trim="umber", size=.25, length=.5, depth=.65, leg=.18,
         limb=.35, neck=.08, carriage=.2, head=.45, snout=.4, ears="round", tail="short", spikes=1.),
    Kind("ostrich", 2, "black", "charcoal", mark="white", trim="pink", size=.8, length=.4, depth=.7, leg=.9, limb=.25,
         upright=.1, neck=.85, carriage=.95, head=.3, beak=.25, tail="bushy", wings="folded"),
    Kind("mammoth", 4, "rust", "umber", mark="umber", trim="umber", size=1., length=.6, depth=.95, leg=.5, limb=.9,
         neck=.1, carriage=.6, head=.8, snout=.1, ears="floppy", tail="tufted", trunk=.9, tusks=1., hump=.6,
         shaggy=1.),
    Kind("lynx", 4, "sand", "white", mark="brown", trim="umber", pattern="spots", size=.5, length=.5, depth=.48,
         leg=.6, limb=.6, neck=.15, carriage=.5, head=.55, snout=.2, ears="pointed", tail="short", ruff=.35),
)
# fmt: on

NAMES: tuple[str, ...] = tuple(kind.name for kind in KINDS)

_AMOUNTS = (
    "size", "length", "depth", "leg", "limb", "upright", "neck", "carriage", "head", "snout", "beak", "fins", "shell",
    "claws", "trunk", "tusks", "ruff", "crest", "hump", "spikes", "shaggy", "socks",
)  # fmt: skip
_CHOICES = {"ears": EARS, "horns": HORNS, "tail": TAILS, "wings": WINGS, "pattern": PATTERNS}
_COLOURS = ("main", "belly", "mark", "trim")


def attribute_table() -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """(C, A) attributes of the kinds as numbers in [0, 1], and the A names.

    Amounts are used as they are, legs divided by 8, a choice becomes a column for each value, a colour three channels.
    """
    rows = [_numbers(kind) for kind in KINDS]
    return np.array([list(row.values()) for row in rows], dtype=np.float64), tuple(rows[0])


def _numbers(kind: Kind) -> dict[str, float]:
    numbers = {"legs": kind.legs / 8}
    numbers |= {name: float(getattr(kind, name)) for name in _AMOUNTS}
    for name, values in _CHOICES.items():
        numbers |= {f"{name}_{value}": float(getattr(kind, name) == value) for value in values}
    for name in _COLOURS:
        channels = zip(("red", "green", "blue"), PALETTE[getattr(kind, name)], strict=True)
        numbers |= {f"{name}_{channel}": round(value / 255, 3) for channel, value in channels}
    return numbers
