"""Which decoders a file can reach, and how much memory it can take: both are decided before anything is decoded."""

from __future__ import annotations

import ast
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest
from PIL import Image

import ltds
from ltds.core.errors import DataError
from ltds.data import decode as module
from ltds.data.decode import decode, open_image
from ltds.evaluation.thumbnails import thumbnail

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nnewpath showpage\n%%EOF\n"
REFUSED = {
    "EPS": EPS,
    "PDF": b"%PDF-1.4\n1 0 obj\n",
    "PSD": b"8BPS\x00\x01" + bytes(40),
    "WMF": b"\xd7\xcd\xc6\x9a" + bytes(60),
}


def png_of_zeros(width: int, height: int) -> bytes:
    """A complete grey PNG whose pixels compress to almost nothing."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packer = zlib.compressobj(9)
    row, rows = bytes(1 + width), bytearray()
    for _ in range(height):
        rows += packer.compress(row)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", bytes(rows + packer.flush()))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", REFUSED)
def test_content_of_other_formats_reaches_no_decoder(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EPS bytes named cat.jpg would start Ghostscript."""
    monkeypatch.setattr(subprocess, "Popen", None)  # starting any program would fail with a TypeError
    file = tmp_path / "cat.jpg"
    file.write_bytes(REFUSED[kind])
    with pytest.raises(DataError, match=r"cat\.jpg' to be a readable image, but got a file that is none of JPEG"):
        decode(file, 8)
    assert thumbnail(file) is None


def test_a_small_file_of_many_pixels_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    """In a process that may not allocate a fifth of what the pixels would take."""
    bomb = png_of_zeros(12_000, 12_000)
    assert len(bomb) < 150_000
    (tmp_path / "bomb.png").write_bytes(bomb)
    code = (
        "import resource, sys; from pathlib import Path; from ltds.data.decode import decode; import numpy;"
        "resource.setrlimit(resource.RLIMIT_DATA, (200 << 20,) * 2); decode(Path(sys.argv[1]), 8)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "bomb.png")], capture_output=True, text=True)
    assert "MemoryError" not in done.stderr
    assert "to be of at most 89 million pixels, but got 12000 x 12000 = 144 million. If it is" in done.stderr


def test_pillows_own_limit_is_the_same_sentence(tmp_path: Path) -> None:
    (tmp_path / "bomb.png").write_bytes(png_of_zeros(20_000, 20_000))
    with pytest.raises(DataError, match=r"bomb\.png' to be of at most 89 million pixels, but got '.*400000000"):
        decode(tmp_path / "bomb.png", 8)
    with pytest.raises(DataError, match=r"<BytesIO>' to be of at most 89 million"):
        module.decoded((tmp_path / "bomb.png").read_bytes(), 8)


def test_large_images_are_decoded_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY_PIXELS", 99)
    Image.new("RGB", (10, 10)).save(tmp_path / "large.png")
    Image.new("RGB", (9, 11)).save(tmp_path / "small.png")
    finished: list[str] = []

    def start(name: str) -> threading.Thread:
        thread = threading.Thread(target=lambda: (decode(tmp_path / name, None), finished.append(name)))
        thread.start()
        return thread

    with open_image(tmp_path / "large.png") as image, module._one_at_a_time(image):
        waiting = start("large.png")
        start("small.png").join(20)
        waiting.join(0.2)
        assert finished == ["small.png"]
    waiting.join(20)
    assert finished == ["small.png", "large.png"]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000", "PPM", "AVIF", "MPO"])
def test_photographers_formats_are_read(tmp_path: Path, kind: str) -> None:
    if kind not in (Image.init(), Image.SAVE)[1]:
        pytest.skip(f"this Pillow writes no {kind}")
    Image.new("RGB", (12, 8), (200, 30, 40)).save(tmp_path / "a.jpg", kind)  # the content decides, not the name
    assert decode(tmp_path / "a.jpg", None).shape == (8, 12, 3)


def test_every_image_is_opened_with_a_list_of_formats() -> None:
    for file in Path(ltds.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Image.open":
                assert "formats" in {keyword.arg for keyword in node.keywords}, f"{file}:{node.lineno}"
