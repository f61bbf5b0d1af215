"""The page in a real browser: choose, drop, read the answer; nothing is asked of another machine."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ltds
from browsing import PATIENCE, launched
from ltds.data.manifest import Manifest
from ltds.serving.server import PredictionServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const carried = new DataTransfer();
  carried.items.add(new File([bytes], name, { type: "image/png" }));
  const how = { dataTransfer: carried, bubbles: true, cancelable: true };
  document.getElementById("zone").dispatchEvent(new DragEvent("drop", how));
}"""


@pytest.fixture(scope="module")
def page(server: PredictionServer) -> Iterator[Page]:
    with launched() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 844})
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        complaints: list[str] = []
        asked: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(server.url)
        yield page
        assert [text for text in complaints if "422" not in text] == []
        assert [url for url in asked if not url.startswith((server.url, "data:", "blob:"))] == []
        context.close()


def test_choosing_a_file_shows_its_class(page: Page, toy: Manifest, model: ltds.Model) -> None:
    page.get_by_text("This model knows 5 classes: ant, bee, cat, dog, elk.").wait_for()
    file = toy.root / toy.paths[int(toy.rows("train", "ink")[0])]
    (wanted,) = model.predict([file], top=3, nearest=3)
    page.locator("#files").set_input_files(file)
    result = page.locator("li.result[data-done]").first
    result.wait_for()
    assert result.locator(".label").inner_text() == wanted.label
    assert result.locator(".bars dt").all_inner_texts() == [name for name, _ in wanted.classes]
    assert f"{100 * wanted.confidence:.1f} %" in result.inner_text()
    near = result.locator(".near li")
    assert [near.nth(i).get_attribute("title") for i in range(3)] == [image.path for image in wanted.nearest]
    assert near.first.locator("img").evaluate("(image) => image.naturalWidth") == 16
    assert f"{wanted.nearest[0].domain} · {wanted.nearest[0].similarity:.2f}" in near.first.inner_text()
    assert page.get_by_role("status").inner_text() == ""


def test_dropping_a_file_and_one_that_is_no_image(page: Page, toy: Manifest, model: ltds.Model, tmp_path: Path) -> None:
    before = page.locator("li.result[data-done]").count()
    file = toy.root / toy.paths[int(toy.rows("test")[-1])]
    page.evaluate(DROP, ["<b>fox</b>.png", base64.b64encode(file.read_bytes()).decode()])
    page.locator("li.result[data-done]").nth(before).wait_for()
    newest = page.locator("li.result").first
    assert newest.locator(".label").inner_text() == model.predict([file])[0].label
    assert newest.locator(".file").inner_text() == "<b>fox</b>.png"
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    page.locator("#files").set_input_files(bad)
    page.locator("li.result[data-done]").nth(before + 1).wait_for()
    newest = page.locator("li.result").first
    assert newest.locator(".label").inner_text() == "No answer"
    assert "not an image that can be read" in newest.inner_text()
    large = tmp_path / "large.png"
    large.write_bytes(b"x" * 300_000)
    page.locator("#files").set_input_files(large)
    page.locator("li.result[data-done]").nth(before + 2).wait_for()
    assert "at most 0.2 MB are taken" in page.locator("li.result").first.inner_text()


def test_it_fits_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1280, "height": 844})
