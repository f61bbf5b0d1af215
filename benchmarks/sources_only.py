"""Bestiary without one style, to choose settings for it: no image of the style takes part, and no test image at all.

    python benchmarks/sources_only.py --without plain --out data/bestiary-without-plain
    ltds benchmark --data data/bestiary-without-plain --methods agg,bsce,ltds --seeds 0

The test images of the benchmark are the first 42 of each (style, kind). Here the tests are on images that are drawn in
the same way, the next 42, so that a choice among these runs leaves the table's test images unseen. Kinds that only the
left-out style has in training are left out, too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import ltds
from ltds.data.datasets.bestiary import BestiaryConfig
from ltds.data.splits import SPLITS


def without_style(whole: ltds.Manifest, style: str, first: int) -> ltds.Manifest:
    """The dataset without this style, tested on images from number `first` on."""
    others = whole.domain_ids != whole.domain_index(style)
    trained = whole.split_ids == SPLITS.index("train")
    kinds = np.unique(whole.labels[others & trained])
    number = np.array([int(Path(path).stem) for path in whole.paths])
    kept = others & np.isin(whole.labels, kinds) & ((whole.split_ids != SPLITS.index("test")) | (number >= first))
    return whole.with_rows(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", required=True, help="the style that settings are chosen for")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    words = parser.parse_args()
    shown = BestiaryConfig().test_per_pair
    whole = ltds.build_data("bestiary", out=words.out, settings={"test_per_pair": 2 * shown}, progress=ltds.Bars())
    without_style(whole, words.without, shown).write()
    print(words.out)


if __name__ == "__main__":
    main()
