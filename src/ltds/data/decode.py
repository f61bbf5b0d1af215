"""From an image file of any kind to RGB pixels, or an error that names the file."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from PIL import ExifTags, Image, ImageFile, UnidentifiedImageError

from ltds.core.errors import DataError, expected
from ltds.core.locks import acquire
from ltds.core.text import count

if TYPE_CHECKING:  # processes that only decode start sooner without it
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

ImageSource = str | Path | bytes | Image.Image  # a file, its content, or a Pillow image

# The content of a file chooses its decoder, not its name: without this list, PostScript bytes named cat.jpg would start
# Ghostscript. All of these are decoded inside Pillow; its JPEG reader also takes the MPO files of cameras.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000", "PPM")
PLUGIN_FORMATS = ("AVIF", "HEIF")  # where this Pillow has them
MOST_PIXELS = 89_478_485  # of one image: the number above which Pillow warns
MANY_PIXELS = 24_000_000  # larger images are decoded one at a time, over all processes: they take up to a gigabyte

# What Pillow's plugins raise on damaged files: SyntaxError for a broken header, RuntimeError for an AVIF, TypeError for
# a TIFF that gives text where a number belongs, the others where a number of the file leads nowhere.
DAMAGE: tuple[type[Exception], ...] = (OSError, EOFError, SyntaxError, ValueError, TypeError)
DAMAGE += (LookupError, ArithmeticError, RuntimeError, struct.error)

REMEDY = (
    "Copy the file again from its source, or leave it out: in a dataset, delete its line from manifest.csv "
    'and the line "checksum" from manifest.json.'
)
CONVERT = "Save it as an 8-bit RGB PNG or JPEG."

_LARGEST = "largest value of 16-bit grey"  # key in the info of a decoded image
_UPRIGHT = {  # EXIF orientation -> what turns the stored pixels upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode(path: Path, size: int | None) -> NDArray[np.uint8]:
    """(h,w,3) RGB pixels of the file, as `decoded` gives them."""
    import numpy as np

    return np.array(decoded(path, size))


def decode_tensor(source: ImageSource, size: int | None) -> Tensor:
    """(3,h,w) uint8 pixels, bit for bit those that the cache stores for this file.

    A Pillow image whose pixels were read before may differ in the last bit: large JPEGs are decoded at a reduced scale.
    """
    import numpy as np
    import torch

    return torch.from_numpy(np.array(decoded(source, size))).permute(2, 0, 1)


def decoded(source: ImageSource, size: int | None) -> Image.Image:
    """The file as an RGB image; a shorter side above `size` is reduced to it, antialiased, with the same aspect ratio.

    A smaller image is returned as it is: the transforms, which know the size of their output, enlarge it once.
    Transparent pixels become white; of an animation only the first frame is read; the camera's orientation (EXIF) is
    applied. Grey of 16 bits, or 12 in a TIFF, is scaled to 8 bits. Large JPEGs are decoded at 1/2, 1/4 or 1/8 of their
    size, but never below twice the wanted size, so that the antialiased resize decides about the quality.
    """
    if not is_image(source):
        raise not_an_image(source)
    if ImageFile.LOAD_TRUNCATED_IMAGES:
        remedy = "Another library set it, and incomplete files would go unnoticed: set it back to False."
        raise DataError(expected("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", "False", "True", remedy))
    path = source if isinstance(source, str | Path) else f"<{type(source).__name__}>"
    try:
        return _decode(source, path, size)
    except DataError:
        raise
    except FileNotFoundError as error:
        got = "a link to a file that does not exist" if os.path.islink(path) else "nothing: it does not exist"
        raise DataError(expected(f"image '{path}'", "a file", got, REMEDY)) from error
    except UnidentifiedImageError as error:
        kinds = ", ".join((*FORMATS, *PLUGIN_FORMATS))
        got = "an empty file (0 bytes)" if _is_empty(source) else f"a file that is none of {kinds}"
        raise DataError(expected(f"image '{path}'", "a readable image", got, REMEDY)) from error
    except DAMAGE as error:
        raise DataError(expected(f"image '{path}'", "a complete, readable image", f"'{error}'", REMEDY)) from error


def is_image(source: object) -> bool:
    """Whether this is something that can be decoded: an ImageSource, another kind of path, or an open file."""
    return isinstance(source, ImageSource | os.PathLike) or hasattr(source, "read")


def not_an_image(source: object) -> DataError:
    """The error for something else, such as an array of pixels."""
    shape = getattr(source, "shape", None)
    got = f"{type(source).__name__}{f' of shape {tuple(shape)}' if isinstance(shape, tuple) else ''}"
    remedy = (
        "Give an array of pixels as PIL.Image.fromarray(array), and feature vectors, to a model that takes them, as an "
        "array (N,D)."
    )
    return DataError(expected("an image", "a path, the content of a file (bytes) or a Pillow image", got, remedy))


def open_image(source: str | Path | IO[bytes]) -> ImageFile.ImageFile:
    """`PIL.Image.open` for files from strangers: only images of FORMATS, and of at most MOST_PIXELS pixels.

    Nothing is decoded yet: a small file that would unpack to gigabytes is refused by its header.
    """
    name = source if isinstance(source, str | Path) else f"<{type(source).__name__}>"
    try:
        image = _identified(source)
    except Image.DecompressionBombError as error:
        raise _too_many_pixels(name, f"'{error}'") from error
    image.filename = ""  # or Pillow maps the file of a TIFF into memory, with its sides exchanged if it is to be turned
    width, height = image.size
    if width * height > MOST_PIXELS:
        image.close()
        raise _too_many_pixels(name, f"{width} x {height} = {width * height / 1e6:.0f} million")
    return image


def _identified(source: str | Path | IO[bytes]) -> ImageFile.ImageFile:
    try:
        return Image.open(source, formats=FORMATS)
    except UnidentifiedImageError:
        Image.init()
        more = [name for name in PLUGIN_FORMATS if name in Image.OPEN]
        if not more:
            raise
        return Image.open(source, formats=more)


def _too_many_pixels(name: str | Path, got: str) -> DataError:
    remedy = "If it is what it should be, put a smaller copy in its place; otherwise leave it out."
    return DataError(expected(f"image '{name}'", f"of at most {MOST_PIXELS / 1e6:.0f} million pixels", got, remedy))


@contextmanager
def _one_at_a_time(image: Image.Image) -> Iterator[None]:
    """Let only one thread of one process at a time decode a large image. The lock is on this source file."""
    if image.width * image.height <= MANY_PIXELS:
        yield
        return
    with open(__file__, "rb") as lock:
        with suppress(OSError):  # such as NFS, which has no locks on files open for reading
            acquire(lock.fileno(), wait=True)
        yield


def _is_empty(source: ImageSource) -> bool:
    return not source if isinstance(source, bytes) else isinstance(source, str | Path) and not os.stat(source).st_size


def _opened(source: ImageSource) -> Image.Image:
    if isinstance(source, Image.Image):
        content = _unread_content(source)
        if content is None:
            return source.copy()  # the caller's image must not change
        source = content
    return open_image(io.BytesIO(source) if isinstance(source, bytes) else source)


def _unread_content(image: Image.Image) -> bytes | None:
    """The content of the file that an image was opened from, as long as its pixels have not been read.

    Also None for a further page or frame: the content alone would be decoded as the first.
    """
    if not isinstance(image, ImageFile.ImageFile) or not image.tile or image.fp is None or image.tell():
        return None
    position = image.fp.tell()
    image.fp.seek(0)
    try:
        return image.fp.read()
    finally:
        image.fp.seek(position)


def _decode(source: ImageSource, path: str | Path, size: int | None) -> Image.Image:
    with _opened(source) as file, _one_at_a_time(file):
        if 0 in file.size:
            got = f"{file.width} x {file.height} pixels"
            raise DataError(expected(f"image '{path}'", "at least one pixel large", got, "Leave it out."))
        wanted = _wanted(file.size, size)
        drafted = file.draft(None, (2 * wanted[0], 2 * wanted[1]))  # None for anything but a JPEG
        file.load()
        if drafted is None:  # loading a TIFF applies its orientation, so only now is its size known
            wanted = _wanted(file.size, size)
        image = _rgb(file, path)
        if image.size != wanted:
            # After a reduced decoding the last row and column may be partly outside the image: the box cuts there.
            image = image.resize(wanted, Image.Resampling.BILINEAR, box=None if drafted is None else drafted[1])
        turn = _UPRIGHT.get(file.getexif().get(ExifTags.Base.Orientation, 1))
        return image if turn is None else image.transpose(turn)


def _wanted(stored: tuple[int, int], size: int | None) -> tuple[int, int]:
    """(w,h) with the shorter side at most `size`, the longer one rounded down as torchvision's Resize does."""
    short, long = min(stored), max(stored)
    if size is None or short <= size:
        return stored
    longer = int(size * long / short)
    return (size, longer) if stored[0] <= stored[1] else (longer, size)


def _rgb(image: Image.Image, path: str | Path) -> Image.Image:
    if image.mode.startswith("I"):
        return _from_integers(image, path)
    if image.mode in ("F", "LAB"):
        what = "32-bit floats, whose range is unknown" if image.mode == "F" else "CIELAB colours"
        raise DataError(expected(f"image '{path}'", "of integers in grey, RGB or CMYK", what, CONVERT))
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")


def _from_integers(image: Image.Image, path: str | Path) -> Image.Image:
    """16-bit grey scaled to 8 bits: 65535 becomes 255 (Pillow's own conversion would clip at 255).

    Of a TIFF that says that it has fewer bits, its largest possible value: scanners and cameras write 12, up to 4095.
    """
    import numpy as np

    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        got = f"values from {values.min()} to {values.max()}"
        raise DataError(expected(f"image '{path}'", "of 8 or 16 bits", got, CONVERT))
    most = 2 ** min(16, _stated_bits(image)) - 1
    grey = ((255 * values + most // 2) // most).astype(np.uint8)
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        grey[values == transparent] = 255
    image = Image.fromarray(grey).convert("RGB")
    if most == 65535:
        image.info[_LARGEST] = int(values.max())
    return image


def narrow_grey(image: Image.Image) -> int | None:
    """The largest value of 16-bit grey that uses at most 1/16 of its range, of a `decoded` image; None for others.

    Such an image is almost black. Its values are mostly those of 12 bits, as in a PNG that was made from a DICOM file.
    """
    largest = image.info.get(_LARGEST, 0)
    return largest if 0 < largest < 2**12 else None


def narrow_note(largest: Collection[int]) -> str:
    """A sentence about images for which `narrow_grey` gave these values."""
    number = count(len(largest), "16-bit image uses", "16-bit images use")
    it = "it is almost black: rescale it" if len(largest) == 1 else "they are almost black: rescale them"
    return f"{number} at most 1/16 of the range (largest value {max(largest)}), so {it}"


def _stated_bits(image: Image.Image) -> int:
    """The bits of a grey value, where a TIFF says so; Pillow scales other formats to 16 bits itself."""
    tags = getattr(image, "tag_v2", {})  # only a TIFF has them
    return int(tags.get(ExifTags.Base.BitsPerSample, (16,))[0])
