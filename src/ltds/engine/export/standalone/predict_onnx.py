"""Name the class of images, or "unknown". Needs numpy, Pillow and onnxruntime.

Prints a line for each image: its path, the class and the confidence, with tabs between them.
Images that cannot be read are named and skipped; the exit code is then 1.
"""

import argparse
import io
import json
import os
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import ExifTags, Image

HERE = Path(__file__).parent
MODEL = json.loads((HERE / "model.json").read_text(encoding="utf-8"))
IMAGES = MODEL["preprocessing"].get("images", MODEL["preprocessing"])
Image.init()
FORMATS = ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000", "PPM"]  # none that starts other programs, as EPS
FORMATS += [name for name in ("AVIF", "HEIF") if name in Image.OPEN]  # where this Pillow has them
SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".bmp", ".gif", ".tif", ".tiff", ".webp"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k", ".j2c", ".jpc", ".jpf", ".jpx", ".avif", ".heic", ".heif"),
)
warnings.simplefilter("error", Image.DecompressionBombWarning)  # too many pixels
CONVERT = "Save it as an 8-bit RGB PNG or JPEG."
TURNS = {  # EXIF orientation -> what turns the stored pixels upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SIZE, MEAN, STD = (IMAGES["transform"][name] for name in ("size", "mean", "std"))


def scaled(size: tuple[int, int], side: int) -> tuple[int, int]:
    return int(side * size[0] / min(size)), int(side * size[1] / min(size))


def grey(image: Image.Image) -> Image.Image:
    """Grey of 16 bits, or as many as a TIFF says that it has, scaled to 8 bits: Pillow would clip it at 255."""
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise ValueError(f"values from {values.min()} to {values.max()}, which are more than 16 bits. {CONVERT}")
    bits = getattr(image, "tag_v2", {}).get(ExifTags.Base.BitsPerSample, (16,))[0]
    most = 2 ** min(16, int(bits)) - 1
    levels = ((255 * values + most // 2) // most).astype(np.uint8)
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        levels[values == transparent] = 255
    return Image.fromarray(levels).convert("RGB")


def rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        return grey(image)
    if image.mode in ("F", "LAB"):
        what = "32-bit floats" if image.mode == "F" else "CIELAB colours"
        raise ValueError(f"{what} instead of integers in grey, RGB or CMYK. {CONVERT}")
    if image.has_transparency_data:  # transparent pixels become white
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return image.convert("RGB")


def decoded(file: str) -> Image.Image:
    """The upright image, its shorter side at most as long as in training."""
    with Image.open(file, formats=FORMATS) as image:
        image.filename = ""  # or Pillow maps the file of a TIFF into memory, and exchanges its sides when it turns it
        wanted = scaled(image.size, min(*image.size, IMAGES["decoded_side"]))
        draft = image.draft(None, (2 * wanted[0], 2 * wanted[1]))  # large JPEGs are decoded at a reduced scale
        image.load()
        if draft is None:  # loading a TIFF turns it upright, so only now is its size known
            wanted = scaled(image.size, min(*image.size, IMAGES["decoded_side"]))
        turn = TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))  # of the file: new images lack it
        small = rgb(image).resize(wanted, Image.Resampling.BILINEAR, box=draft[1] if draft else None)
    return small if turn is None else small.transpose(turn)


def without_ends(image: Image.Image) -> Image.Image:
    """The middle of a long image: resized as a whole, one of 65,000 x 1 pixels would take gigabytes."""
    left, top = (max(0, side - 8 * min(image.size)) // 2 for side in image.size)
    return image.crop((left, top, image.width - left, image.height - top))


def network_input(file: str) -> np.ndarray:
    small = without_ends(decoded(file))
    small = small.resize(scaled(small.size, SIZE), Image.Resampling.BILINEAR)
    left, top = round((small.width - SIZE) / 2), round((small.height - SIZE) / 2)
    pixels = np.asarray(small.crop((left, top, left + SIZE, top + SIZE)), np.float32) / 255
    return ((pixels - np.float32(MEAN)) / np.float32(STD)).transpose(2, 0, 1)


def score(logits: np.ndarray) -> float:
    """The confidence that is compared with the threshold: softmax at the temperature of the model."""
    return float(1 / np.exp((logits.astype(np.float64) - logits.max()) / MODEL["unknown"]["temperature"]).sum())


def inert(text: str) -> str:
    """Control characters spelled out, and marks that reorder a line: a name must not give commands to a terminal."""
    commands = [c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in REORDERING]
    return text.translate({ord(c): c.encode("unicode_escape").decode() for c in commands})


def shown(name: str) -> str:
    """A class that is called "unknown" is told from the answer "unknown"."""
    return f"{name} (a class)" if name == "unknown" else inert(name)


def images_below(folder: str, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """All images in the folder and below it, sorted folder by folder, as ltds finds them: hidden files never.

    A link to a folder above itself, which would never end, is ignored.
    """
    own = os.path.realpath(folder)
    if own in above:
        return
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if not name.startswith(".")]
    images = (path for path in paths if path.lower().endswith(SUFFIXES) and not os.path.isdir(path))
    yield from (path for path in images if os.path.isfile(path) or os.path.islink(path))
    for path in paths:
        if os.path.isdir(path):
            yield from images_below(path, above | {own})


def named_files(words: list[str]) -> list[str]:
    """The files among the words and the images in the folders; a folder without any stays, to be named as skipped."""
    files: list[str] = []
    for word in words:
        below = list(images_below(word)) if os.path.isdir(word) else []
        files += below or [word]
    return files


def main(words: list[str]) -> int:
    """Print a line for each image. Returns the exit code: 1 if some could not be read."""
    session = onnxruntime.InferenceSession(str(HERE / "model.onnx"), providers=["CPUExecutionProvider"])
    known = np.array([name not in MODEL["open_classes"] for name in MODEL["classes"]])
    threshold = MODEL["unknown"]["threshold"]
    code = 0
    for file in named_files(words):
        try:
            if os.path.isdir(file):
                raise ValueError("no image in it or below it")
            inputs = network_input(file)[None]
        except Exception as error:  # Pillow raises anything on a damaged file
            print(inert(f"Skipped {file}: {error}"), file=sys.stderr)
            code = 1
            continue
        logits, shares, _ = session.run(None, {"inputs": inputs})
        if not np.isfinite(logits[0][known].max()):
            print(inert(f"Skipped {file}: the model computes NaN or infinity"), file=sys.stderr)
            code = 1
            continue
        unknown = threshold is not None and not score(logits[0][known]) >= threshold
        label = "unknown" if unknown else shown(MODEL["classes"][shares[0].argmax()])
        print(inert(file), label, f"{shares[0].max():.4f}", sep="\t")
    return code


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names that the terminal cannot show
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", nargs="+", metavar="IMAGES", help="files, and folders that are searched for images")
    words = [f"./{word}" if word.startswith("-") and os.path.exists(word) else word for word in sys.argv[1:]]
    sys.exit(main(parser.parse_args(words).images))
