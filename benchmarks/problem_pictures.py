"""docs/images/long-tail.png and pairs.png: the three difficulties, drawn from the counts of Bestiary.

python benchmarks/problem_pictures.py      # or, with the other pictures: make pictures
"""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from PIL import Image

from ltds.bestiary import DOMAINS, NAMES
from picture_sources import train_counts

HELD_OUT = "woodblock"
BLUE, RED, GREY = "#2b6cb0", "#c0392b", "#e8e8e8"


def long_tail(counts: np.ndarray) -> Image.Image:
    """Training images of each kind, the most frequent first."""
    totals = counts.sum(axis=0)
    order = np.argsort(-totals, kind="stable")
    figure, axes = plt.subplots(figsize=(9, 2.6))
    axes.bar(range(len(totals)), totals[order], color=BLUE)
    axes.set(ylabel="training images", xlim=(-0.7, len(totals) - 0.3))
    axes.set_xticks(range(len(totals)), [NAMES[k] for k in order], rotation=90, fontsize=7)
    axes.annotate(f"{NAMES[order[0]]}: {totals[order[0]]}", (0, totals[order[0]]), (3, totals[order[0]] * 0.93))
    axes.annotate(f"{NAMES[order[-1]]}: {totals[order[-1]]}", (len(totals) - 1, totals[order[-1]]), (43, 60), ha="left")
    axes.spines[["top", "right"]].set_visible(False)
    return as_image(figure)


def pairs(counts: np.ndarray) -> Image.Image:
    """Which (style, kind) pairs have training images; one style held out, and the kinds that are open then."""
    held = DOMAINS.index(HELD_OUT)
    kinds = np.argsort(-counts.sum(axis=0), kind="stable")
    state = (counts > 0).astype(int)
    state[held] = 2  # not trained on, whatever it has
    opened = (np.delete(counts, held, axis=0) > 0).sum(axis=0) == 0
    state[:, opened] = 3
    figure, axes = plt.subplots(figsize=(9, 2.2))
    axes.imshow(state[:, kinds], cmap=ListedColormap([GREY, BLUE, "#f2c48d", RED]), vmin=0, vmax=3, aspect="auto")
    axes.set_xticks(range(len(kinds)), [NAMES[k] for k in kinds], rotation=90, fontsize=7)
    axes.set_yticks(range(len(DOMAINS)), [f"{d} (held out)" if d == HELD_OUT else d for d in DOMAINS])
    axes.set_xticks(np.arange(-0.5, len(kinds)), minor=True)
    axes.set_yticks(np.arange(-0.5, len(DOMAINS)), minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    return as_image(figure)


def as_image(figure: Figure) -> Image.Image:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110, bbox_inches="tight")
    plt.close(figure)
    return Image.open(content).convert("RGB")


def main() -> None:
    from pictures import save

    counts = train_counts()
    save(long_tail(counts), "long-tail.png", colours=32)
    save(pairs(counts), "pairs.png", colours=32)


if __name__ == "__main__":
    main()
