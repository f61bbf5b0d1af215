"""The pictures of README.md and docs/, made from real output: Bestiary, its counts, results, and the page of a report.

    python benchmarks/pictures.py                    # trains agg and ltds for a few epochs, then draws all pictures
    python benchmarks/pictures.py --runs runs/mine   # the page of runs that are there

The page needs chromium and Playwright (`make pictures` installs them).
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

import lead_picture
import ltds
import problem_pictures
from ltds.core.files import atomic
from picture_sources import IMAGES, KEY, checksum, contact_sheet

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LARGEST = 300_000  # bytes: pages with pictures should load at once
WIDTH, HEIGHT = 1100, 765  # down to the end of the first table


def report_page(runs: Path, height: int = HEIGHT) -> Image.Image:
    """The top of the report page of these runs, as a browser shows it."""
    from playwright.sync_api import sync_playwright

    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        sys.exit(
            f"Expected a browser, but none of {', '.join(BROWSERS)} is on the PATH. On Debian: apt install chromium"
        )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        ltds.report(runs, out=page_file)
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
        page.goto(page_file.as_uri())
        shot = page.screenshot()
        browser.close()
    return Image.open(io.BytesIO(shot)).convert("RGB")


def save(image: Image.Image, name: str, colours: int = 128) -> None:
    """A small PNG, with a palette, that carries a checksum of what it was drawn from."""
    file = IMAGES / name
    content = io.BytesIO()
    origin = PngInfo()
    origin.add_text(KEY, checksum(name))
    image.quantize(colours, method=Image.Quantize.MEDIANCUT).save(content, format="PNG", optimize=True, pnginfo=origin)
    if content.tell() > LARGEST:
        sys.exit(f"Expected {name} to have at most {LARGEST} bytes, but got {content.tell()}. Make it smaller.")
    with atomic(file) as stream:
        stream.write(content.getvalue())
    print(f"{file}: {image.width} x {image.height} pixels, {content.tell() / 1000:.0f} kB")


def short_runs() -> Path:
    """A short demo, in the folder `runs/pictures`; a finished one is reused."""
    runs = Path("runs/pictures")
    ltds_command = Path(sys.executable).parent / "ltds"
    subprocess.run([ltds_command, "demo", "--out", runs, "--set", "schedule.epochs=6"], check=True)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, help="folder of runs to show on the page (default: a short demo)")
    runs = parser.parse_args().runs
    problem_pictures.main()
    lead_picture.main()
    save(contact_sheet(), "bestiary.png")
    save(report_page(runs or short_runs()), "report.png")


if __name__ == "__main__":
    main()
