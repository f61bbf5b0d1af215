"""Features instead of images: train any method on vectors that another network computed, of any modality.

    python examples/features.py

The dataset names samples, not files: no image is read. Replace `make_samples` with your own vectors.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ltds

CLASSES = ("rain", "traffic", "voices")
DOMAINS = ("street", "park", "station")
COUNTS = (30, 12, 5)  # samples of each class in each domain
TRAIN, VAL, TEST = 0, 1, 2


def make_samples(folder: Path) -> tuple[ltds.Manifest, NDArray[np.float32]]:
    """A dataset of sounds, and the vector of each: a centre for its class, a shift for its domain, and noise."""
    rng = np.random.default_rng(0)
    centres, shifts = rng.normal(size=(3, 16)), 0.5 * rng.normal(size=(3, 16))
    rows = [(d, c, i) for d in range(3) for c in range(3) for i in range(COUNTS[c])]
    domains, labels, numbers = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    vectors = centres[labels] + shifts[domains] + 0.4 * rng.normal(size=(len(rows), 16))
    splits = np.choose(numbers % 5, [TRAIN, TRAIN, TRAIN, VAL, TEST])
    names = tuple(f"{DOMAINS[d]}/{CLASSES[c]}/{i}.wav" for d, c, i in rows)
    folder.mkdir(parents=True, exist_ok=True)
    manifest = ltds.Manifest(folder, "sounds", CLASSES, DOMAINS, names, labels, domains, splits)
    manifest.write()
    return manifest, vectors.astype(np.float32)


def main(folder: Path = Path("runs/features")) -> list[ltds.ImagePrediction]:
    manifest, vectors = make_samples(folder / "dataset")
    file = folder / "dataset" / "features.npz"
    ltds.write_features(file, vectors, manifest.paths)
    settings = {"data.features": str(file), "data.batch_size": 8, "schedule.steps_per_epoch": 10}
    run = ltds.RunDirectory(folder / "run")
    if not run.done:
        run = ltds.train(manifest, method="dc", held_out="station", epochs=3, out=run.path, settings=settings)
    model = ltds.load_model(run.path)
    station = manifest.rows("test", "station")
    return model.predict(vectors[station])


if __name__ == "__main__":
    for prediction in main():
        best, probability = prediction.classes[0]
        print(f"{prediction.label} (most probable: {best}, {probability:.0%})")
