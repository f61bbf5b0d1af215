"""Images per second of the Loader (crop, flip, jitter, normalise) against a bare Pillow decode + crop + resize loop.

    python benchmarks/input_pipeline.py
    python benchmarks/input_pipeline.py --folder my/images --size 224 --cache-size 256

Only ratios of one run count: both ways are timed in turns, and medians compared. Without --folder it makes JPEGs of
227 pixels. Nothing is written beside your images.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ltds.data.cache import ImageCache
from ltds.data.inputs import ImageInputs
from ltds.data.loading import Loader
from ltds.data.manifest import Manifest
from ltds.data.sampling import DomainBalanced
from ltds.data.transforms import EvalTransform, TrainTransform

ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}


def generated(folder: Path, count: int) -> list[Path]:
    """JPEGs of 227 x 227 with coarse and fine structure, so that they take as long to decode as photographs."""
    rng = np.random.default_rng(0)
    files = []
    for i in range(count):
        pixels = np.zeros((227, 227, 3))
        for cells in (4, 16, 64):
            noise = Image.fromarray(rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
            pixels += np.asarray(noise.resize((227, 227), Image.Resampling.BICUBIC), dtype=np.float64) / 3
        files.append(folder / f"{i}.jpg")
        Image.fromarray(pixels.astype(np.uint8)).save(files[-1], quality=90)
    return files


def images_under(folder: Path) -> list[Path]:
    """The image files in a folder, searched through, in order."""
    return sorted(f for f in folder.rglob("*") if f.suffix.lower() in ENDINGS)


def manifest_of(files: list[Path], root: Path) -> Manifest:
    """One class, one domain. Absolute paths leave the images where they are; the cache goes to `root`."""
    zeros = np.zeros(len(files), dtype=np.int64)
    return Manifest(root, "benchmark", ("any",), ("any",), tuple(str(f.resolve()) for f in files), zeros, zeros, zeros)


def bare_pillow(files: list[Path], size: int, rng: np.random.Generator) -> torch.Tensor:
    """(N,3,size,size): each file decoded, a random square crop of it resized; neither flip, colours nor threads."""
    images = []
    for file in files:
        with Image.open(file) as image:
            side = int(min(image.size) * rng.uniform(0.3, 1.0))
            left, top = rng.integers(0, image.width - side + 1), rng.integers(0, image.height - side + 1)
            box = (int(left), int(top), int(left) + side, int(top) + side)
            crop = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, box=box)
        images.append(torch.from_numpy(np.array(crop)))
    return torch.stack(images).permute(0, 3, 1, 2).float() / 255


def rates(ways: dict[str, Callable[[], int]], repeats: int) -> dict[str, list[float]]:
    """Images per second of each way, timed in turns, after one turn to warm up."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, run in ways.items():
            start = time.perf_counter()
            images = run()
            if turn:
                found[name].append(images / (time.perf_counter() - start))
    return found


def compare(files: list[Path], root: Path, options: argparse.Namespace) -> None:
    manifest = manifest_of(files, root)
    start = time.perf_counter()
    cache = ImageCache.open(manifest, options.cache_size)
    built = len(files) / (time.perf_counter() - start)
    batch = min(options.batch, len(files))
    sampler = DomainBalanced([manifest.rows("train")], batch, 0, manifest.domains)
    loader = Loader(
        ImageInputs(cache, TrainTransform(options.size), EvalTransform(options.size)),
        manifest,
        manifest.task(None),
        sampler,
        0,
    )
    rng = np.random.default_rng(0)
    steps = max(1, options.images // batch)
    ways: dict[str, Callable[[], int]] = {
        "bare Pillow loop": lambda: len(bare_pillow(files[: options.images], options.size, rng)),
        "Loader, no prefetch": lambda: sum(len(b) for b in loader.batches(0, steps, threads=0)),
        "Loader, 2 threads": lambda: sum(len(b) for b in loader.batches(0, steps, threads=2)),
    }
    found = rates(ways, options.repeats)
    base = statistics.median(found["bare Pillow loop"])
    print(f"{len(files)} images, cache at {options.cache_size} px, {options.size} px out, batches of {batch}")
    print(f"{'way':<24}{'images/s':>12}{'ratio':>8}{'lowest':>12}{'highest':>12}")
    for name, values in found.items():
        middle = statistics.median(values)
        print(f"{name:<24}{middle:>12,.0f}{middle / base:>8.1f}{min(values):>12,.0f}{max(values):>12,.0f}")
    print(f"{'building the cache once':<24}{built:>12,.0f}{built / base:>8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="images to use (searched through), instead of generated ones")
    parser.add_argument("--size", type=int, default=64, help="pixels out")
    parser.add_argument("--cache-size", type=int, default=227, help="shorter side in the cache")
    parser.add_argument("--images", type=int, default=384, help="images per timed turn")
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1, help="torch's threads within one operation")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        if options.folder is None:
            files = generated(root, options.images)
        else:
            files = images_under(options.folder)[: 4 * options.images]
            if not files:
                parser.error(f"no image with an ending of {sorted(ENDINGS)} under '{options.folder}'")
        compare(files, root, options)


if __name__ == "__main__":
    main()
