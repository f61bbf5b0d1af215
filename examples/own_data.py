"""Your own data: a folder of images becomes a dataset, a model is trained on it, and the model names new images.

    python examples/own_data.py

Replace `draw_photos` with your own folder PHOTOS/<domain>/<class>/*.png. On the command line the same is:
ltds data build folder --source photos --out data/photos; ltds train data/photos --held-out night ...
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

import ltds

CLASSES = {"apple": (200, 40, 40), "leaf": (40, 180, 60), "sky": (60, 90, 220)}
BRIGHTNESS = {"noon": 1.0, "dusk": 0.7, "night": 0.45}
IMAGES = {"apple": 12, "leaf": 8, "sky": 4}  # a long tail


def draw_photos(folder: Path) -> Path:
    """Small noisy images: the colour tells the class, the brightness tells the domain."""
    rng = np.random.default_rng(0)
    for domain, brightness in BRIGHTNESS.items():
        for name, colour in CLASSES.items():
            place = folder / domain / name
            place.mkdir(parents=True, exist_ok=True)
            for i in range(IMAGES[name]):
                noisy = brightness * np.array(colour) + rng.normal(0, 25, size=(32, 32, 3))
                Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(place / f"{i}.png")
    return folder


def main(folder: Path = Path("runs/own-data")) -> list[ltds.ImagePrediction]:
    photos = draw_photos(folder / "photos")
    data = ltds.build_data("folder", source=photos, out=folder / "dataset")
    settings = {"backbone.name": "tiny", "data.size": 32, "data.batch_size": 8, "schedule.steps_per_epoch": 10}
    run = ltds.RunDirectory(folder / "run")
    if not run.done:
        run = ltds.train(data, method="dc", held_out="night", epochs=3, out=run.path, settings=settings)
    model = ltds.load_model(run.path)
    return model.predict([photos / "night" / name / "0.png" for name in CLASSES])


if __name__ == "__main__":
    for name, prediction in zip(CLASSES, main(), strict=True):
        best, probability = prediction.classes[0]
        print(f"{name}: {prediction.label} (most probable: {best}, {probability:.0%})")
