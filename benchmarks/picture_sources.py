"""What each picture of docs/images is drawn from, as a checksum that it carries, so that a test can say it is stale.

Light to import: neither matplotlib nor a browser.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from ltds.bestiary import DOMAINS, NAMES, render
from ltds.core.image_grid import draw_grid
from ltds.data.datasets.bestiary import BestiaryConfig, list_pictures
from ltds.evaluation.significance import PairedDifference
from studies import Study

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
KEY = "drawn-from"  # the PNG's text entry with the checksum
KINDS = range(0, 50, 6)
PAGE = ROOT / "src" / "ltds" / "reporting" / "formats" / "html"
BENCHMARKS = {
    "pacs_odg_stages": "PACS-ODG, last stage of a network trained",
    "pacs_odg_features": "PACS-ODG, frozen features",
    "pacs_lt_50": "PACS, ratio 50, frozen features",
    "pacs_lt_20": "PACS, ratio 20, frozen features",
    "bestiary_120_epochs": "Bestiary, whole network trained",
}
RIVALS = ("agg", "bsce", "dc")
LEAD_METRICS = ("acc_u", "acc")


def contact_sheet(size: int = 96) -> Image.Image:
    """A few kinds (columns) of Bestiary in every style (rows)."""
    return draw_grid(
        DOMAINS,
        [NAMES[kind] for kind in KINDS],
        lambda domain, column: render(KINDS[column], domain, size=size, seed=0),
        size,
    )


def train_counts() -> np.ndarray:
    """(styles, kinds) training images of Bestiary."""
    counts = np.zeros((len(DOMAINS), len(NAMES)), int)
    for picture in list_pictures(BestiaryConfig()):
        counts[picture.domain, picture.kind] += picture.split == "train"
    return counts


def leads() -> dict[tuple[str, str, str], PairedDifference]:
    """ltds minus each rival, by benchmark, rival and metric."""
    found = {}
    for benchmark in BENCHMARKS:
        study = Study.read(benchmark).only(["ltds", *RIVALS])
        for rival in RIVALS:
            for metric in LEAD_METRICS:
                lead = study.difference("ltds", rival, metric)
                assert lead is not None, f"results/{benchmark}.json has no pairs of ltds and {rival}"
                found[benchmark, rival, metric] = lead
    return found


def _of_leads() -> bytes:
    script = (ROOT / "benchmarks" / "lead_picture.py").read_bytes()
    numbers = [
        (*key, *(value and round(value, 1) for value in (lead.mean, lead.low, lead.high)))
        for key, lead in leads().items()
    ]
    return script + repr((BENCHMARKS, numbers)).encode()


def _of_counts() -> bytes:
    script = (ROOT / "benchmarks" / "problem_pictures.py").read_bytes()
    return script + train_counts().astype("<i8").tobytes() + ",".join((*DOMAINS, *NAMES)).encode()


def _of_page() -> bytes:
    """The templates and styles of the page: what a reader would see change. Its numbers are those of some demo."""
    files = (file for file in sorted(PAGE.iterdir()) if file.suffix in (".j2", ".css"))
    return b"".join(file.read_bytes() for file in files if file.name != "new_data.html.j2")  # another page


SOURCES: dict[str, Callable[[], bytes]] = {
    "lead.png": _of_leads,
    "bestiary.png": lambda: np.asarray(contact_sheet().convert("RGB")).tobytes(),
    "long-tail.png": _of_counts,
    "pairs.png": _of_counts,
    "report.png": _of_page,
}


def checksum(name: str) -> str:
    """What the picture would carry if it were drawn now."""
    return hashlib.sha256(SOURCES[name]()).hexdigest()[:16]


def carried(name: str) -> str:
    """What the stored picture carries; "" if nothing."""
    with Image.open(IMAGES / name) as image:
        return str(image.info.get(KEY, ""))
