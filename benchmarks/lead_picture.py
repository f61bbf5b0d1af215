"""docs/images/lead.png: how far ltds is ahead of plain and of balanced training on each benchmark, from results/*.json.

python benchmarks/lead_picture.py      # or, with the other pictures: make pictures
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from PIL import Image

from ltds.evaluation.significance import PairedDifference
from ltds.reporting.glossary import METRICS
from picture_sources import BENCHMARKS, LEAD_METRICS, RIVALS, leads
from problem_pictures import BLUE, GREY, RED, as_image

COLOURS = dict(zip(RIVALS, ("#555555", BLUE, RED), strict=True))
MEANING = {"agg": "plain training", "bsce": "balanced classes", "dc": "its own loss alone"}
STEP = 0.24  # between two rivals, where benchmarks are 1 apart


def lead_picture(numbers: dict[tuple[str, str, str], PairedDifference]) -> Image.Image:
    """A panel for each metric: a point with its 95 % interval for each benchmark and rival."""
    figure, panels = plt.subplots(1, len(LEAD_METRICS), figsize=(10, 3.6), sharey=True)
    for axes, metric in zip(panels, LEAD_METRICS, strict=True):
        _panel(axes, metric, numbers)
    panels[0].set_yticks(range(len(BENCHMARKS)), BENCHMARKS.values())
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=len(RIVALS), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    return as_image(figure)


def _panel(axes: Axes, metric: str, numbers: dict[tuple[str, str, str], PairedDifference]) -> None:
    for place, rival in enumerate(RIVALS):
        rows = [row + (place - 1) * STEP for row in range(len(BENCHMARKS))]
        found = [numbers[benchmark, rival, metric] for benchmark in BENCHMARKS]
        for row, lead in zip(rows, found, strict=True):
            if lead.low is not None and lead.high is not None:
                axes.plot([lead.low, lead.high], [row, row], color=COLOURS[rival], linewidth=2, alpha=0.5)
        label = f"ltds minus {rival} ({MEANING[rival]})"
        axes.plot([lead.mean for lead in found], rows, "o", color=COLOURS[rival], markersize=6, label=label)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_title(f"{METRICS[metric].name}: points ahead, with 95 % intervals", fontsize=10)
    axes.grid(axis="x", color=GREY)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def main() -> None:
    from pictures import save

    save(lead_picture(leads()), "lead.png", colours=64)


if __name__ == "__main__":
    main()
