"""Seconds to decode a dataset into its cache, against a bare Pillow decode + resize loop in as many processes.

    python benchmarks/cache.py --folder PACS
    python benchmarks/cache.py --folder PACS --sizes 96 64 --out results/cache.json

Only the ratio counts: both ways are timed in turns, after one turn to warm up, and medians compared. The bare loop
keeps no pixels and writes none; the cache does, and flushes them to the disk. Nothing is written beside your images.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from PIL import Image

from input_pipeline import ENDINGS, images_under, manifest_of
from ltds.data.cache import ImageCache


def bare(file: Path, size: int) -> int:
    """What the cache needs of an image, by Pillow alone: decoded, in colours, its shorter side at `size` if larger."""
    with Image.open(file) as image:
        scale = min(1.0, size / min(image.size))
        pixels = image.convert("RGB")
        if scale < 1:
            sides = (round(image.width * scale), round(image.height * scale))
            pixels = pixels.resize(sides, Image.Resampling.BILINEAR)
        return len(pixels.tobytes())


def bare_seconds(files: list[Path], size: int, workers: int) -> float:
    start = time.perf_counter()
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        pool.map(partial(bare, size=size), files, chunksize=64)
    return time.perf_counter() - start


def cache_seconds(files: list[Path], size: int, workers: int) -> float:
    with tempfile.TemporaryDirectory() as root:
        manifest = manifest_of(files, Path(root))
        start = time.perf_counter()
        ImageCache.open(manifest, size, workers=workers)
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="images to use (searched through)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[96, 64], help="shorter sides in the cache")
    parser.add_argument("--images", type=int, default=10_000, help="at most so many of them")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the figures here (.json)")
    options = parser.parse_args()
    files = images_under(options.folder)[: options.images]
    if not files:
        parser.error(f"no image with an ending of {sorted(ENDINGS)} under '{options.folder}'")
    record = []
    for size in options.sizes:
        turns = [
            (bare_seconds(files, size, options.workers), cache_seconds(files, size, options.workers))
            for _ in range(options.repeats + 1)
        ][1:]
        base, ours = (statistics.median(way) for way in zip(*turns, strict=True))
        print(
            f"{len(files)} images to {size} px, {options.workers} workers: bare {base:.2f} s, cache {ours:.2f} s, "
            f"ratio {ours / base:.2f}"
        )
        record.append(
            {
                "images": len(files),
                "size": size,
                "workers": options.workers,
                "ratio": ours / base,
                "bare_seconds": [t[0] for t in turns],
                "cache_seconds": [t[1] for t in turns],
            }
        )
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
