"""What stands behind the creature and in front of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from ltds.bestiary.pose import Variety

SKY, GROUND, HILL, THING, SHADOW, CREATURE, FRONT = 0, 1, 2, 3, 15, 16, 200
"""Part numbers: below CREATURE the background, from FRONT what stands in front, the creature's shapes between."""

_SKIES = ((168, 204, 232), (206, 222, 230), (236, 214, 186), (150, 176, 196), (222, 232, 214), (190, 186, 206))
_GROUNDS = ((128, 150, 92), (196, 176, 132), (150, 132, 108), (164, 176, 150), (204, 204, 200), (110, 126, 116))
_THINGS = ((84, 120, 70), (130, 128, 122), (126, 98, 70), (96, 140, 104), (168, 156, 128), (178, 120, 96))


def draw_behind(parts: Image.Image, colours: NDArray[np.int32], rng: np.random.Generator, variety: Variety) -> int:
    """Draw sky, ground, hills and things, fill in their colours, and return the height of the horizon."""
    side = parts.width
    draw = ImageDraw.Draw(parts)
    draws = rng.random(8)
    horizon = round(side * (0.62 + 0.5 * (float(draws[0]) - 0.5) * variety.clutter))
    jitter = (rng.random((THING + 9, 3)) - 0.5) * 60
    for number, choices, draw_at in ((SKY, _SKIES, draws[1]), (GROUND, _GROUNDS, draws[2])):
        colours[number] = np.clip(np.array(choices[int(draw_at * len(choices))]) + jitter[number], 0, 255)
    colours[HILL] = (colours[SKY] + colours[GROUND]) // 2
    colours[SHADOW] = colours[GROUND] * 7 // 10
    draw.rectangle((0, horizon, side, side), fill=GROUND)
    if draws[3] < variety.clutter:
        x, rise = round(side * draws[4]), round(side * (0.1 + 0.25 * draws[5]))
        draw.ellipse((x - side // 2, horizon - rise, x + side // 2, horizon + rise), fill=HILL)
        draw.rectangle((0, horizon, side, side), fill=GROUND)
    count = round(9 * variety.clutter * draws[6])
    spots = rng.random((9, 4))
    for k in range(min(count, 9)):
        colours[THING + k] = np.clip(np.array(_THINGS[int(spots[k, 3] * len(_THINGS))]) + jitter[THING + k], 0, 255)
        _thing(draw, side, horizon, spots[k], THING + k)
    return horizon


def _thing(draw: ImageDraw.ImageDraw, side: int, horizon: int, spot: NDArray[np.float64], number: int) -> None:
    """A bush, a stone, or a tree."""
    x, y = round(side * spot[0]), horizon + round((side - horizon) * 0.6 * spot[1])
    w, form = round(side * (0.05 + 0.1 * spot[2])), spot[3] * len(_THINGS) % 1.0
    if form < 0.4:
        draw.ellipse((x - w, y - w, x + w, y + w // 2), fill=number)
    elif form < 0.7:
        draw.polygon((x - w, y, x - w // 2, y - w, x + w // 2, y - w, x + w, y), fill=number)
    else:
        draw.rectangle((x - w // 5, y - 3 * w, x + w // 5, y), fill=number)
        draw.ellipse((x - w, y - 5 * w, x + w, y - 2 * w), fill=number)


def draw_front(
    parts: Image.Image,
    lit: Image.Image,
    colours: NDArray[np.int32],
    groups: NDArray[np.uint8],
    rng: np.random.Generator,
    variety: Variety,
) -> None:
    """Perhaps draw grass, a rock or a branch in front of the creature."""
    draws, spots = rng.random(6), rng.random((14, 3))
    if draws[0] >= variety.occlusion:
        return
    side, number = parts.width, FRONT
    colours[number] = np.clip(np.array(_THINGS[int(draws[1] * len(_THINGS))]) + (draws[2] - 0.5) * 60, 0, 255)
    groups[number] = FRONT
    shapes: list[list[int]] = []
    if draws[3] < 0.45:
        for u, v, lean in spots:
            x, tall, w = side * u, side * (0.12 + 0.3 * v), 0.022 * side
            shapes.append([round(p) for p in (x - w, side, x + (lean - 0.5) * 0.15 * side, side - tall, x + w, side)])
    elif draws[3] < 0.75:
        x, w, tall = side * draws[4], side * (0.12 + 0.14 * draws[5]), side * (0.14 + 0.16 * spots[0, 0])
        steps = ((-1, 0), (-0.8, 0.6), (-0.2, 1.0), (0.5, 0.85), (0.95, 0.4), (1, 0))
        shapes.append([round(p) for u, v in steps for p in (x + u * w, side - v * tall)])
    else:
        x, top, w = side * draws[4], side * (draws[5] - 0.5), 0.035 * side
        shapes.append([round(p) for p in (x - w, 0, x + w, 0, x + top + 0.6 * w, side, x + top - 0.6 * w, side)])
    pen, shade = ImageDraw.Draw(parts), ImageDraw.Draw(lit)
    for shape in shapes:
        pen.polygon(shape, fill=number)
        shade.polygon(shape, fill=255)
