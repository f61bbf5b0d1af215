"""Every kind of image file becomes RGB; every bad one an error that names it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image, ImageFile, ImageSequence, features

from ltds.core.errors import DataError
from ltds.data.build.images import damage
from ltds.data.decode import decode, decode_tensor, decoded

RED, BLUE = (200, 30, 40), (10, 60, 220)
PACS = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "pacs96" / "PACS"


def halves(mode: str, left: object, right: object) -> Image.Image:
    """24 wide, 16 high: the left half of one colour, the right half of another."""
    image = Image.new(mode, (24, 16), left)
    image.paste(right, (12, 0, 24, 16))
    return image


def sides(pixels: np.ndarray) -> tuple[list[int], list[int]]:
    return pixels[8, 3].tolist(), pixels[8, 20].tolist()


def test_rgb_png_is_returned_byte_for_byte(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(decode(tmp_path / "a.png", None), pixels)


def test_grey(tmp_path: Path) -> None:
    halves("L", 40, 250).save(tmp_path / "a.png")
    assert sides(decode(tmp_path / "a.png", None)) == ([40] * 3, [250] * 3)


def test_one_bit(tmp_path: Path) -> None:
    halves("1", 0, 1).save(tmp_path / "a.png")
    assert sides(decode(tmp_path / "a.png", None)) == ([0] * 3, [255] * 3)


def test_palette(tmp_path: Path) -> None:
    halves("RGB", RED, BLUE).quantize(4).save(tmp_path / "a.png")
    assert sides(decode(tmp_path / "a.png", None)) == (list(RED), list(BLUE))


@pytest.mark.parametrize("ending", ["png", "gif"])
def test_palette_with_transparency_shows_white(tmp_path: Path, ending: str) -> None:
    image = Image.new("P", (24, 16), 0)
    image.putpalette([*RED, *BLUE])
    image.paste(1, (12, 0, 24, 16))
    image.save(tmp_path / f"a.{ending}", transparency=0)
    assert sides(decode(tmp_path / f"a.{ending}", None)) == ([255] * 3, list(BLUE))


def test_alpha_is_laid_over_white(tmp_path: Path) -> None:
    halves("RGBA", (*RED, 0), (0, 0, 0, 128)).save(tmp_path / "a.png")
    left, right = sides(decode(tmp_path / "a.png", None))
    assert left == [255] * 3
    assert right == [127] * 3  # 255 * (1 - 128/255)


def test_grey_with_alpha(tmp_path: Path) -> None:
    halves("LA", (0, 0), (60, 255)).save(tmp_path / "a.png")
    assert sides(decode(tmp_path / "a.png", None)) == ([255] * 3, [60] * 3)


def test_rgb_with_a_transparent_colour(tmp_path: Path) -> None:
    halves("RGB", RED, BLUE).save(tmp_path / "a.png", transparency=RED)
    assert sides(decode(tmp_path / "a.png", None)) == ([255] * 3, list(BLUE))


def test_cmyk_jpeg(tmp_path: Path) -> None:
    halves("CMYK", (0, 255, 255, 0), (0, 0, 0, 255)).save(tmp_path / "a.jpg", quality=100)
    left, right = sides(decode(tmp_path / "a.jpg", None))
    np.testing.assert_allclose(left, [255, 0, 0], atol=4)
    np.testing.assert_allclose(right, [0, 0, 0], atol=4)


def test_16_bit_grey_is_scaled_not_clipped(tmp_path: Path) -> None:
    values = np.array([[0, 257, 32768, 65535]], dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "a.png")
    Image.fromarray(values).save(tmp_path / "a.tif")
    for ending in ("png", "tif"):
        assert decode(tmp_path / f"a.{ending}", None)[0, :, 0].tolist() == [0, 1, 128, 255]


def twelve_bit_tiff(*values: int) -> bytes:
    """A TIFF of one row of grey values of 12 bits, two in three bytes, which Pillow reads but does not write."""
    packed = b"".join((a << 12 | b).to_bytes(3, "big") for a, b in zip(values[::2], values[1::2], strict=True))
    short, long = 3, 4
    entries = [(256, short, len(values)), (257, short, 1), (258, short, 12), (259, short, 1), (262, short, 1)]
    entries += [(273, long, 8), (277, short, 1), (278, short, 1), (279, long, len(packed))]
    tags = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    header = struct.pack("<2sHI", b"II", 42, 8 + len(packed))
    return header + packed + struct.pack("<H", len(entries)) + tags + bytes(4)


def test_12_bit_grey_has_its_own_scale(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_bytes(twelve_bit_tiff(0, 16, 2048, 4095))
    assert decode(tmp_path / "a.tif", None)[0, :, 0].tolist() == [0, 1, 128, 255]


def test_every_16_bit_value_is_rounded_to_the_nearest(tmp_path: Path) -> None:
    values = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    Image.fromarray(values).save(tmp_path / "a.tif")
    expected = np.round(values / 257).astype(np.uint8)
    np.testing.assert_array_equal(decode(tmp_path / "a.tif", None)[:, :, 0], expected)


def test_integers_beyond_16_bits_and_floats_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 70000]], dtype=np.int32)).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match=r"a\.tif' to be of 8 or 16 bits, but got values from 0 to 70000\. Save it as"):
        decode(tmp_path / "a.tif", None)
    Image.fromarray(np.array([[0.0, 1.0]], dtype=np.float32)).save(tmp_path / "f.tif")
    with pytest.raises(DataError, match=r"f\.tif' .* but got 32-bit floats, whose range is unknown\. Save it as"):
        decode(tmp_path / "f.tif", None)


@pytest.mark.parametrize("size", [None, 8])
@pytest.mark.parametrize("ending", ["png", "tif"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(tmp_path: Path, orientation: int, ending: str, size: int | None) -> None:
    upright = np.zeros((16, 24, 3), dtype=np.uint8)
    upright[:8, :12], upright[:8, 12:], upright[8:, :12] = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, 1),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    Image.fromarray(np.ascontiguousarray(stored)).save(tmp_path / f"a.{ending}", exif=exif)
    pixels = decode(tmp_path / f"a.{ending}", size)
    assert pixels.shape == ((16, 24, 3) if size is None else (8, 12, 3))
    h, w = pixels.shape[:2]
    corners = [pixels[1, 1], pixels[1, w - 2], pixels[h - 2, 1], pixels[h - 2, w - 2]]
    assert [c.tolist() for c in corners] == [[255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0]]


@pytest.mark.parametrize("orientation", [1, 3, 5, 6, 7, 8])
@pytest.mark.parametrize("mode", ["L", "I;16", "CMYK", "RGBA", "RGB", "P", "1"])
def test_a_tiff_is_the_same_by_its_path_and_by_its_content(tmp_path: Path, mode: str, orientation: int) -> None:
    """Of a file that it knows by its path, Pillow maps uncompressed pixels into memory, with sides that do not fit."""
    values = np.arange(97 * 150).reshape(97, 150)
    grey = Image.fromarray(values.astype(np.uint16)) if mode == "I;16" else Image.fromarray(values.astype(np.uint8))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    file = tmp_path / "a.tif"
    (grey if mode in ("L", "I;16") else grey.convert(mode)).save(file, exif=exif)
    pixels = decode(file, None)
    assert pixels.shape[:2] == ((97, 150) if orientation < 5 else (150, 97))
    assert np.array_equal(pixels, np.array(decoded(file.read_bytes(), None)))


@pytest.mark.parametrize(
    ("stored", "size", "shape"),
    [((100, 50), 20, (20, 40)), ((50, 101), 20, (40, 20)), ((30, 30), 20, (20, 20)), ((12, 40), 20, (40, 12))],
)
def test_shorter_side_is_brought_down_never_up(
    tmp_path: Path, stored: tuple[int, int], size: int, shape: tuple[int, int]
) -> None:
    Image.new("RGB", stored, RED).save(tmp_path / "a.png")
    pixels = decode(tmp_path / "a.png", size)
    assert pixels.shape == (*shape, 3)
    assert (pixels == RED).all()


def test_large_jpeg_decoded_at_a_fraction_is_what_the_full_decode_gives(tmp_path: Path) -> None:
    y, x = np.mgrid[:640, :801]
    pixels = np.stack([127 + 100 * np.sin(x / 40), 127 + 100 * np.cos(y / 30), (x + y) / 6], axis=2)
    image = Image.fromarray(pixels.astype(np.uint8))
    image.save(tmp_path / "a.jpg", quality=95)
    quick = decode(tmp_path / "a.jpg", 64)
    with Image.open(tmp_path / "a.jpg") as file:
        full = np.asarray(file.convert("RGB").resize((80, 64), Image.Resampling.BILINEAR))
    assert quick.shape == (64, 80, 3)
    assert np.abs(quick.astype(int) - full).max() <= 2
    assert np.abs(quick.astype(int) - full).mean() < 0.3


@pytest.mark.parametrize("ending", ["tif", "gif"])
@pytest.mark.parametrize("size", [None, 8])
def test_each_page_of_an_open_image_is_itself(tmp_path: Path, ending: str, size: int | None) -> None:
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    first, *others = (Image.new("RGB", (24, 16), colour) for colour in colours)
    first.save(tmp_path / f"a.{ending}", save_all=True, append_images=others)
    with Image.open(tmp_path / f"a.{ending}") as image:
        found = [decode_tensor(page, size)[:, 0, 0].tolist() for page in ImageSequence.Iterator(image)]
    assert found == [list(colour) for colour in colours]


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"image '.*gone\.jpg' to be a file, but got nothing: it does not exist\. Copy"):
        decode(tmp_path / "gone.jpg", 8)


def test_zero_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    with pytest.raises(DataError, match=r"a\.jpg' to be a readable image, but got an empty file \(0 bytes\)\. Copy"):
        decode(tmp_path / "a.jpg", 8)


def test_no_image(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_text("<html>404</html>")
    with pytest.raises(DataError, match=r"a\.jpg' .* but got a file that is none of JPEG, PNG, .*HEIF\. Copy"):
        decode(tmp_path / "a.jpg", 8)


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="to be a complete, readable image, but got"):
        decode(tmp_path, 8)


@pytest.mark.parametrize(
    ("ending", "options"),
    [("jpg", {}), ("jpg", {"progressive": True}), ("png", {}), ("bmp", {}), ("gif", {}), ("tif", {}), ("webp", {})],
)
@pytest.mark.filterwarnings("ignore:.*(Corrupt EXIF|Truncated File)")
def test_a_file_cut_anywhere_is_refused_unless_all_pixels_are_there(
    tmp_path: Path, ending: str, options: dict[str, bool]
) -> None:
    whole, cut = tmp_path / f"whole.{ending}", tmp_path / f"cut.{ending}"
    noise = np.random.default_rng(1).integers(0, 256, (24, 20, 3), dtype=np.uint8)
    Image.fromarray(noise).save(whole, **options)
    content, pixels = whole.read_bytes(), decode(whole, None)
    refused = 0
    for length in range(0, len(content), max(1, len(content) // 60)):
        cut.write_bytes(content[:length])
        try:
            found = decode(cut, None)
        except DataError:
            refused += 1
        else:
            np.testing.assert_array_equal(found, pixels)
    assert refused >= 55


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow reads no AVIF")
def test_a_damaged_avif_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.avif"
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(file)
    content = bytearray(file.read_bytes())
    start = content.index(b"mdat") + 4
    content[start : start + 64] = bytes(64)
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.avif' to be a complete, readable image, but got '.*failed"):
        decode(file, None)


def test_a_tiff_with_text_in_place_of_a_number_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.tif"
    Image.new("RGB", (8, 8), RED).save(file)
    content, where = file.read_bytes(), struct.pack("<HH", 273, 4)  # the place of the pixels, a long
    assert content.count(where) == 1
    file.write_bytes(content.replace(where, struct.pack("<HH", 273, 2)))  # as text
    with pytest.raises(DataError, match=r"a\.tif' to be a complete, readable image, but got '.*integer'\. Copy"):
        decode(file, None)


@pytest.mark.parametrize("kind", [KeyError, OverflowError, ZeroDivisionError, struct.error])
def test_whatever_a_decoder_raises_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def fail(image: ImageFile.ImageFile) -> None:
        raise kind("no such thing")

    Image.new("RGB", (8, 8), RED).save(tmp_path / "a.png")
    monkeypatch.setattr(ImageFile.ImageFile, "load", fail)
    with pytest.raises(DataError, match=r"a\.png' to be a complete, readable image, but got .*no such thing"):
        decode(tmp_path / "a.png", None)


def test_truncated_jpeg_says_so(tmp_path: Path) -> None:
    Image.new("RGB", (64, 64), RED).save(tmp_path / "a.jpg")
    content = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "a.jpg").write_bytes(content[: len(content) - 30])
    with pytest.raises(DataError, match=r"a\.jpg' to be a complete, readable image, but got '.*truncated.*'\. Copy"):
        decode(tmp_path / "a.jpg", 8)


def test_truncated_files_cannot_be_allowed_behind_our_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(DataError, match="LOAD_TRUNCATED_IMAGES to be False, but got True"):
        decode(tmp_path / "a.jpg", 8)


def test_real_pacs_files() -> None:
    if not PACS.is_dir():
        pytest.skip(f"PACS is not at {PACS}")
    jpgs, pngs = sorted(PACS.glob("*/*/*.jpg"))[::2000], sorted(PACS.glob("sketch/*/*.png"))[::2000]
    assert jpgs
    for file in (*jpgs, *pngs):
        pixels = decode(file, 48)
        assert pixels.dtype == np.uint8
        assert min(pixels.shape[:2]) == 48
        assert pixels.std() > 5
    for file in pngs:
        pixels = decode(file, None)
        assert (pixels == pixels[:, :, :1]).all()


def test_the_damage_of_an_image_is_told_from_its_name(tmp_path: Path) -> None:
    """The reason is not found in the sentence by its words: a name may contain them."""
    empty, folder = tmp_path / "Dr. Who, but got lost. jpg", tmp_path / "a. b.jpg"
    empty.write_bytes(b"")
    folder.mkdir()
    assert damage(empty) == "an empty file (0 bytes)"
    assert damage(folder) == f"'[Errno 21] Is a directory: '{folder}''"
