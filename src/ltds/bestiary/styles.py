"""The five styles: each draws a scene in its own technique."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from ltds.bestiary.brush import Strokes, brush_strokes
from ltds.bestiary.paint import (
    Ints,
    chalk_grain,
    contrasting,
    flat_colours,
    grid,
    nearest_ink,
    noise,
    outlines,
    rays,
    shrink,
    soften,
    to_bytes,
    vivid,
    wood_grain,
)
from ltds.bestiary.scene import Scene
from ltds.bestiary.surroundings import CREATURE, FRONT

Pixels = NDArray[np.uint8]
DrawStyle = Callable[[Scene, np.random.Generator], Pixels]


def plain(scene: Scene, rng: np.random.Generator) -> Pixels:
    """A snapshot: soft light and shade, mottled surroundings out of focus, fur, a colour cast and noise."""
    light = soften(scene.lit, scene.side // 24)
    tones = 164 + (np.arange(256) - 110) * round(80 * scene.contrast) // 100
    tone = np.where(scene.parts < CREATURE, 270, tones[light])
    tone = np.where(scene.far[scene.parts], tone * 3 // 4, tone)
    colour = flat_colours(scene, scene.colours, scene.mark) * tone.astype(np.int32)[..., None] >> 8
    picture = shrink(colour, scene.over).astype(np.float32)
    behind = _share(scene, np.where(scene.parts < CREATURE, 255, 0))
    cast = (0.84 + 0.32 * rng.random(3)).astype(np.float32)
    mottle = grid(rng, scene.size, 11, 11) + grid(rng, scene.size, 5, 5) - 1
    fur = grid(rng, scene.size, min(scene.size, 40), 24) - 0.5
    picture += (mottle[..., None] * behind * 90 + fur[..., None] * (1 - behind) * 50).astype(np.float32)
    fall = np.linspace(12, -12, scene.size, dtype=np.float32)[:, None, None]
    return to_bytes(picture * cast + fall + noise(rng, scene.size, 18)[..., None])


def anime(scene: Scene, rng: np.random.Generator) -> Pixels:
    """Flat bright fills, one hard step to a cool shade, ink lines, a glowing backdrop."""
    draws = rng.random(4)
    colours, mark = vivid(scene.colours, 150), vivid(scene.mark[None], 150)[0]
    backdrop = np.array(_BACKDROPS[int(draws[0] * len(_BACKDROPS))], np.int32)
    colours[:CREATURE] = (backdrop * 3 + vivid(scene.colours[:CREATURE], 120)) // 4 + 14
    colours[0] = backdrop
    fill = np.clip(flat_colours(scene, colours, mark), 0, 255)
    shade = ((scene.lit == 0) & (scene.parts >= CREATURE)) | scene.far[scene.parts]
    fill[shade] = fill[shade] * np.array((150, 148, 190)) // 256
    if draws[1] < 0.5:
        spokes = rays(scene.side, float(draws[2]), float(draws[3])) & (scene.parts == 0)
        fill[spokes] = fill[spokes] * 3 // 4 + 63
    fill[outlines(scene, max(2, round(scene.side * 0.02)))] = (28, 20, 38)
    return to_bytes(shrink(fill, scene.over))


def pastel(scene: Scene, rng: np.random.Generator) -> Pixels:
    """Chalk under an evening sky: pale colours, soft edges, tinted shade, the paper's tooth."""
    top, low, paper = (np.array(c, np.float32) for c in _EVENINGS[int(rng.integers(len(_EVENINGS)))])
    light = 0.5 + (_share(scene, soften(scene.lit, scene.side // 10)) - 0.5) * np.float32(scene.contrast)
    behind = _share(scene, np.where(scene.parts < CREATURE, 255, 0))
    flat = Image.fromarray(shrink(flat_colours(scene, scene.colours, scene.mark), scene.over))
    base = np.asarray(flat.filter(ImageFilter.BoxBlur(scene.size / 80))).astype(np.float32)
    chalk = base * 0.76 + (low * light + top * (1 - light)) * 0.3 - 12
    height = np.linspace(0, 1, scene.size, dtype=np.float32)[:, None, None]
    sky = top * (1 - height) + low * height
    picture = chalk + (sky - chalk) * behind * 0.7
    return to_bytes(picture + (paper - picture) * chalk_grain(rng, scene.size)[..., None])


def _share(scene: Scene, mask: NDArray[Any]) -> NDArray[np.float32]:
    """(s, s, 1) a mask of 0..255 averaged down to shares of the picture's pixels."""
    return np.divide(shrink(mask, scene.over), 255, dtype=np.float32)[..., None]


def impasto(scene: Scene, rng: np.random.Generator) -> Pixels:
    """Thick paint: broad strokes behind, finer ones on the creature, each in one colour with a lit ridge."""
    light = soften(scene.lit, scene.side // 20)
    _, behind = _painted(scene, light, rng, broad=True, jitter=34)
    fine, creature = _painted(scene, light, rng, broad=False, jitter=22)
    covered = (scene.parts[fine.rows, fine.columns] >= CREATURE)[fine.which]
    return to_bytes(shrink(np.where(covered[..., None], creature, behind), scene.over))


def _painted(
    scene: Scene, light: NDArray[np.uint8], rng: np.random.Generator, *, broad: bool, jitter: int
) -> tuple[Strokes, Ints]:
    """A cover of strokes, and (S, S, 3) what it shows: each stroke in the colour under its middle, changed a little."""
    cover = brush_strokes(scene.side, int(rng.integers(6)), broad).turned(int(rng.integers(8)))
    parts, lit = scene.parts[cover.rows, cover.columns], light[cover.rows, cover.columns].astype(np.int32)
    marked = scene.marked[cover.rows, cover.columns, None]
    tone = np.where(parts < CREATURE, 214, 185 + (lit - 128) * round(50 * scene.contrast) // 100)[:, None]
    colour = vivid(np.where(marked, scene.mark, scene.colours[parts]), 135) * tone // 224
    colour += rng.integers(-jitter, jitter + 1, (len(colour), 1))
    return cover, colour.astype(np.int32)[cover.which] + cover.relief[..., None]


def woodblock(scene: Scene, rng: np.random.Generator) -> Pixels:
    """A print: key lines, three inks on paper, hatched shade, grain, and blocks that do not quite register."""
    chosen = np.array(_INKS, np.int32)[rng.permutation(len(_INKS))[:3]]
    colour = _inked(scene, chosen)
    slip = tuple(int(v) * max(1, scene.side // 64) for v in rng.integers(-2, 3, 2))
    colour = np.roll(colour, slip, (0, 1))
    pitch, weave = max(3, round(scene.side / 26)), max(1, scene.side // 18)
    y, x = np.ogrid[: scene.side, : scene.side]
    shade = (scene.lit == 0) & (scene.parts >= CREATURE) & (scene.parts < FRONT)
    hatch = ((x + y) % pitch < pitch * 2 // 5) & (shade | scene.far[scene.parts])
    ground = (scene.parts > 0) & (scene.parts < CREATURE)
    colour[ground & ((y + x // weave % 2) % (pitch * 2) < pitch // 2)] = chosen[1]
    colour[hatch | outlines(scene, max(2, round(scene.side * 0.022)))] = _KEY
    picture = shrink(colour, scene.over).astype(np.float32)
    return to_bytes(picture + (_PAPER - picture) * wood_grain(rng, scene.size)[..., None])


def _inked(scene: Scene, chosen: Ints) -> Ints:
    """(S, S, 3) every part in the nearest ink, tint or paper, under a sky that fades from the first ink to paper."""
    paper, key = np.array(_PAPER, np.int32), np.array(_KEY, np.int32)
    inks = np.concatenate([paper[None], (paper + chosen) // 2, chosen, key[None]])
    nearest = nearest_ink(scene.colours, inks)
    nearest[:CREATURE] = nearest_ink(scene.colours[:CREATURE], inks[:4])
    printed = nearest[scene.parts]
    mark = int(nearest_ink(scene.mark[None], inks)[0])
    printed[scene.marked] = contrasting(printed[scene.marked], mark, inks)
    fade = np.clip(266 - 450 * np.arange(scene.side) // scene.side, 0, 205)[:, None]
    sky = paper + (chosen[0] - paper) * fade // 256
    colour: Ints = np.where((scene.parts == 0)[..., None], sky[:, None, :], inks[printed]).astype(np.int32)
    return colour


STYLES: dict[str, DrawStyle] = {
    "plain": plain,
    "anime": anime,
    "pastel": pastel,
    "impasto": impasto,
    "woodblock": woodblock,
}

_BACKDROPS = ((120, 210, 250), (255, 170, 190), (255, 226, 130), (170, 240, 200), (200, 170, 250), (250, 250, 250))
_EVENINGS = (
    ((150, 180, 235), (255, 214, 196), (250, 244, 232)),
    ((186, 170, 226), (255, 226, 170), (244, 236, 226)),
    ((160, 214, 224), (246, 236, 190), (252, 250, 240)),
    ((226, 176, 200), (200, 220, 246), (246, 240, 244)),
)
_PAPER, _KEY = (236, 224, 196), (30, 26, 34)
_INKS = ((66, 98, 150), (200, 84, 56), (206, 158, 76), (104, 132, 84), (130, 92, 120), (124, 118, 116))
