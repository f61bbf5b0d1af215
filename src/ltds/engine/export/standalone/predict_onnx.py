"""Name the class of images, or "unknown". Needs numpy, Pillow and onnxruntime: python predict_onnx.py a.jpg b.png"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

HERE = Path(__file__).parent
MODEL = json.loads((HERE / "model.json").read_text(encoding="utf-8"))
IMAGES = MODEL["preprocessing"].get("images", MODEL["preprocessing"])
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")  # not those that start other programs, such as EPS
SIZE, MEAN, STD = (IMAGES["transform"][name] for name in ("size", "mean", "std"))


def scaled(size: tuple[int, int], side: int) -> tuple[int, int]:
    return int(side * size[0] / min(size)), int(side * size[1] / min(size))


def network_input(file: str) -> np.ndarray:
    with Image.open(file, formats=FORMATS) as image:
        wanted = scaled(image.size, min(*image.size, IMAGES["decoded_side"]))
        draft = image.draft(None, (2 * wanted[0], 2 * wanted[1]))  # large JPEGs are decoded at a reduced scale
        colours = image.convert("RGBA") if image.has_transparency_data else image.convert("RGB")
        if colours.mode == "RGBA":  # transparent pixels become white
            colours = Image.alpha_composite(Image.new("RGBA", colours.size, "white"), colours).convert("RGB")
        small = colours.resize(wanted, Image.Resampling.BILINEAR, box=draft[1] if draft else None)
    small = ImageOps.exif_transpose(small)
    small = small.resize(scaled(small.size, SIZE), Image.Resampling.BILINEAR)
    left, top = round((small.width - SIZE) / 2), round((small.height - SIZE) / 2)
    pixels = np.asarray(small.crop((left, top, left + SIZE, top + SIZE)), np.float32) / 255
    return ((pixels - np.float32(MEAN)) / np.float32(STD)).transpose(2, 0, 1)


def score(logits: np.ndarray) -> float:
    """The confidence that is compared with the threshold: softmax at the temperature of the model."""
    return float(1 / np.exp((logits.astype(np.float64) - logits.max()) / MODEL["unknown"]["temperature"]).sum())


def main(files: list[str]) -> None:
    session = onnxruntime.InferenceSession(str(HERE / "model.onnx"), providers=["CPUExecutionProvider"])
    known = np.array([name not in MODEL["open_classes"] for name in MODEL["classes"]])
    threshold = MODEL["unknown"]["threshold"]
    for file in files:
        logits, shares, _ = session.run(None, {"inputs": network_input(file)[None]})
        unknown = threshold is not None and score(logits[0][known]) < threshold
        label = "unknown" if unknown else MODEL["classes"][shares[0].argmax()]
        print(file, label, f"{shares[0].max():.4f}", sep="\t")


if __name__ == "__main__":
    main(sys.argv[1:])
