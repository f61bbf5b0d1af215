"""A real browser for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
ALONE = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
PATIENCE = 120_000  # milliseconds: a busy machine is no fault of the page


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser, or a skipped test that says what is missing."""
    reason = "needs Playwright, which drives the browser: pip install 'ltds[test]'"
    api = pytest.importorskip("playwright.sync_api", reason=reason)
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is on the PATH. On Debian: apt install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ALONE.split(), timeout=PATIENCE)
        yield browser
        browser.close()
