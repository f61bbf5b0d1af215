"""The page in a real browser: sorting, filtering and switching by mouse and keyboard, on screen, phone and paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browsing import PATIENCE, launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


class Visit:
    """An open page, with every complaint of the browser and every address that the page asked for."""

    def __init__(
        self, browser: Browser, file: Path, width: int = 1280, scheme: str = "light", script: bool = True
    ) -> None:
        size = {"width": width, "height": 844}
        self.context = browser.new_context(viewport=size, color_scheme=scheme, java_script_enabled=script)
        self.context.set_default_timeout(PATIENCE)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.route(lambda address: not address.startswith(("file:", "data:")), lambda route: route.abort())
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.resolve().as_uri())

    def wide(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def colour(self) -> str:
        return str(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    def of_kind(self, selector: str) -> Locator:
        return self.page.locator(selector).filter(visible=True)

    def status(self) -> str:
        return self.page.get_by_role("status").inner_text()


@pytest.fixture
def visit(browser: Browser, report_page: Path) -> Iterator[Visit]:
    """The page on a screen. Whatever a test does there, nothing complains and nothing is asked of a network."""
    visit = Visit(browser, report_page)
    yield visit
    visit.context.close()
    assert visit.complaints == []
    assert [address for address in visit.asked if not address.startswith(("file:", "data:"))] == []


def first_column(table: Locator) -> list[str]:
    return table.locator("tbody tr:visible > th").all_inner_texts()


def test_sorting_by_mouse_and_by_keyboard(visit: Visit) -> None:
    table = visit.page.locator("#dataset-2 table").first
    head = table.locator("th[data-column='1']")
    head.get_by_role("button").click()
    assert (head.get_attribute("aria-sort"), first_column(table)) == ("descending", ["dc", "agg"])
    visit.page.keyboard.press("Enter")  # the button has the focus
    assert (head.get_attribute("aria-sort"), first_column(table)) == ("ascending", ["agg", "dc"])
    method = table.locator("th[data-column='0']")
    method.get_by_role("button").focus()
    visit.page.keyboard.press("Space")
    visit.page.keyboard.press("Space")
    assert (method.get_attribute("aria-sort"), first_column(table)) == ("descending", ["dc", "agg"])
    assert head.get_attribute("aria-sort") == "none"


def test_words_sort_as_words_and_seeds_as_numbers(visit: Visit) -> None:
    visit.page.get_by_text("The numbers of every run").click()
    table = visit.page.locator("table", has=visit.page.locator("#numbers"))
    table.get_by_role("button", name="Held out").click()
    places = table.locator("tbody td:nth-child(2)").all_inner_texts()
    assert places == sorted(places)
    table.get_by_role("button", name="Acc-U").click()
    shares = [float(text) for text in table.locator("tbody td:nth-child(4)").all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 52.0


def test_a_link_to_a_run_opens_it(visit: Visit) -> None:
    visit.page.get_by_text("The numbers of every run").click()
    visit.page.get_by_role("link", name="run 2", exact=True).click()
    command = visit.page.locator("#run-2 pre").first
    command.wait_for()  # the page opens the run when the browser tells it of the new address, after the click
    assert command.inner_text().startswith("ltds train --set method.name=")


def test_filtering_by_method_domain_and_seed(visit: Visit) -> None:
    page = visit.page
    assert visit.status() == "All 9 runs are shown."
    page.get_by_text("Show only some runs").click()
    page.get_by_role("checkbox", name="dc").check()
    assert visit.status() == "4 of 9 runs are shown."
    table = page.locator("#dataset-2 table").first
    assert first_column(table) == ["dc"]
    assert not page.locator("#dataset-1").is_visible()  # none of its runs is left
    page.get_by_role("checkbox", name="sketch").focus()
    page.keyboard.press("Space")
    assert visit.status() == "2 of 9 runs are shown."
    assert table.locator("th[scope='colgroup']:visible").all_inner_texts() == ["sketch", "Average", "Cost"]
    assert table.locator("tbody tr:visible > td:visible").count() == 3 + 3 + 2
    page.get_by_role("checkbox", name="1", exact=True).check()
    assert visit.of_kind("details.run > summary").all_inner_texts()[0].startswith("dc, held out: sketch, seed 1")
    assert visit.status() == "1 of 9 runs are shown."
    page.get_by_role("checkbox", name=EVIL).check()
    page.get_by_role("checkbox", name="dc").uncheck()
    assert visit.status() == "No run is shown: no run matches everything that is ticked."
    page.get_by_role("button", name="Show everything").click()
    assert visit.status() == "All 9 runs are shown."
    assert first_column(table) == ["agg", "dc"]
    assert page.locator("tr[hidden], td[hidden], th[hidden], figure[hidden]").count() == 0


def test_figures_switch_by_keyboard_and_follow_the_filter(visit: Visit) -> None:
    page = visit.page
    page.locator("#dataset-2 summary", has_text="Training of each method").click()
    part = page.locator("#dataset-2 .switch").last
    assert part.locator("figure:visible h3").all_inner_texts() == ["Training of agg"]
    part.get_by_label("Method").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert part.locator("figure:visible h3").all_inner_texts() == ["Training of dc"]
    page.get_by_text("Show only some runs").click()
    page.get_by_role("checkbox", name="agg").check()
    assert part.locator("figure:visible h3").all_inner_texts() == ["Training of agg"]
    assert part.locator("option:not([disabled])").all_text_contents() == ["agg"]


def test_names_are_shown_as_they_are(visit: Visit) -> None:
    visit.page.locator("#dataset-2 summary", has_text="Every class").click()
    table = visit.page.locator("#dataset-2 table").last
    names = {"ant", "bee", EVIL, "q\"&'", "$x_1$", "🦊", "قطة", "_under"}
    assert set(first_column(table)) == names
    assert visit.page.get_by_role("heading", level=1).inner_text() == 'other "&" <b>, toy'
    assert visit.page.locator("script").count() == 1


def test_the_policy_stops_any_other_script_and_any_address(browser: Browser, report_page: Path) -> None:
    visit = Visit(browser, report_page)
    stopped: list[tuple[str, str | None]] = []
    visit.page.on("requestfailed", lambda request: stopped.append((request.url, request.failure)))
    visit.page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "document.title = 'broken'";
      const image = new Image();
      image.src = "https://example.org/a.png";
      document.body.append(script, image);
    }""")
    visit.page.wait_for_timeout(200)
    said = " ".join(visit.complaints)
    assert visit.page.title().startswith("ltds report")
    assert said.count("Content Security Policy") == 2
    assert stopped == [("https://example.org/a.png", "csp")]
    visit.context.close()


def test_a_phone_scrolls_down_only_and_dark_is_dark(browser: Browser, report_page: Path) -> None:
    visit = Visit(browser, report_page, width=390, scheme="dark")
    visit.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert visit.wide() == 390
    assert visit.colour() == "rgb(21, 24, 28)"
    visit.page.emulate_media(color_scheme="light")
    assert visit.colour() == "rgb(253, 253, 252)"
    visit.page.set_viewport_size({"width": 1280, "height": 844})
    assert visit.wide() == 1280
    assert visit.complaints == []
    visit.context.close()


def test_paper_shows_the_folded_parts_and_every_figure(visit: Visit) -> None:
    page = visit.page
    page.set_viewport_size({"width": 1032, "height": 700})  # A4 on its side, without the margins
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert visit.wide() == 1032
    count = page.locator("figure").count()
    assert visit.of_kind("figure").count() == count >= 12
    assert not page.locator(".chooser:visible").count()
    assert not page.locator("#filters summary").is_visible()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.locator("details[open]").count() == 0
    assert page.pdf(landscape=True).startswith(b"%PDF")


def test_without_scripts_everything_is_there(browser: Browser, report_page: Path) -> None:
    visit = Visit(browser, report_page, script=False)
    page = visit.page
    assert not page.locator("#filters").is_visible()
    page.locator("#dataset-2 summary", has_text="Training of each method").click()
    assert page.locator("#dataset-2 .switch").last.locator("figure:visible").count() == 2
    assert page.locator(".chooser:visible, .arrow:visible").count() == 0
    visit.context.close()


def test_no_table_is_cut_at_1280_pixels(browser: Browser, wide_page: Path) -> None:
    visit = Visit(browser, wide_page)
    visit.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    cut = visit.page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter((part) => part.scrollWidth > part.clientWidth)"
        ".map((part) => part.innerText.slice(0, 60))"
    )
    assert cut == []
    assert visit.wide() == 1280
    captions = visit.page.locator("#dataset-1 caption").all_inner_texts()[:5]
    names = ("Acc-U", "Macro-U", "Acc", "Macro", "H oracle")  # the last class has few test images: they are uneven
    assert captions == [f"{name} on each held-out domain" for name in names]
    assert visit.complaints == []
    visit.context.close()


def test_numbers_of_too_few_images_are_grey_and_say_why(browser: Browser, wide_page: Path) -> None:
    visit = Visit(browser, wide_page)
    table = visit.page.locator("#dataset-1 table", has_text="H oracle on each held-out domain")
    few = table.locator("td.too-few")
    assert few.count() == 7  # art only: the others have no open class
    assert (few.first.get_attribute("title") or "").startswith(
        "Too few images to trust it: 4 open images of 1 class; chance"
    )
    assert "‡" in few.first.inner_text()
    colour = "(cell) => getComputedStyle(cell).color"
    assert few.first.evaluate(colour) != table.locator("td:not(.too-few)").nth(1).evaluate(colour)
    assert "4 open" in table.locator("tfoot").inner_text()
    visit.context.close()


SHOWN_METHODS = """(part) => [...new Set([...part.querySelectorAll("svg [data-method]")]
  .filter((group) => group.getBoundingClientRect().width).map((group) => group.dataset.method))].sort()"""


def test_filters_hide_methods_within_figures(browser: Browser, wide_page: Path) -> None:
    visit = Visit(browser, wide_page)
    page = visit.page
    everyone = [f"method {m}" for m in range(7)]
    figure = page.locator("figure", has_text="Accuracy from head to tail")
    assert figure.evaluate(SHOWN_METHODS) == everyone
    page.get_by_text("Show only some runs").click()
    for name in ("method 1", "method 2"):
        page.get_by_role("checkbox", name=name).check()
    assert figure.evaluate(SHOWN_METHODS) == ["method 1", "method 2"]
    assert page.locator("figure.mistakes:visible p bdi").first.inner_text() == "method 1"
    page.locator("#dataset-1 summary", has_text="Accuracy of each class in each domain").click()
    matrices = page.locator("#dataset-1 .switch", has_text="Held-out domain").locator("figure:visible h3")
    assert matrices.all_inner_texts() == ["method 1, held out: photo", "method 2, held out: photo"]
    assert page.locator("table.domains th[scope='colgroup']:visible").all_inner_texts() == ["method 1", "method 2"]
    page.get_by_role("button", name="Show everything").click()
    assert figure.evaluate(SHOWN_METHODS) == everyone
    assert matrices.count() == 7  # every method has its own, not the first four
    assert visit.complaints == []
    visit.context.close()


def test_a_drawing_is_cut_to_what_the_filter_leaves(browser: Browser, wide_page: Path) -> None:
    visit = Visit(browser, wide_page)
    page = visit.page
    page.locator("#dataset-1 summary", has_text="Open classes and calibration").click()
    drawing = page.locator("figure", has_text="Reliability").locator("svg")
    whole = drawing.get_attribute("viewBox")
    page.get_by_text("Show only some runs").click()
    page.get_by_role("checkbox", name="method 6").check()
    assert drawing.evaluate(SHOWN_METHODS.replace("svg [", ":scope [")) == ["method 6"]
    left = [float(number) for number in (drawing.get_attribute("viewBox") or "").split()]
    assert left[2] < float((whole or "").split()[2]) / 2  # one of three panels
    page.get_by_role("button", name="Show everything").click()
    assert drawing.get_attribute("viewBox") == whole
    visit.context.close()


def test_the_gallery_shows_the_surest_mistakes(browser: Browser, wide_page: Path) -> None:
    visit = Visit(browser, wide_page)
    gallery = visit.page.locator("figure.mistakes:visible .gallery")
    loaded = gallery.locator("img").evaluate_all("(all) => all.map((one) => one.complete ? one.naturalWidth : 0)")
    assert 1 < len(loaded) <= 18
    assert set(loaded) == {24}
    sure = [float(text.split()[-3]) for text in gallery.locator(".sure").all_inner_texts()]
    assert sure == sorted(sure, reverse=True)
    assert set(gallery.locator(".where").all_inner_texts()) == {"photo"}  # the held-out domain
    visit.context.close()


def test_labels_of_a_matrix_do_not_touch(browser: Browser, wide_page: Path) -> None:
    visit = Visit(browser, wide_page)
    visit.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    boxes = visit.page.locator(".figure-group .switch figure:visible .card svg").first.evaluate(
        "(svg) => [...svg.querySelectorAll('text')].map((text) => text.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) == 2 + 3 + 8  # the scale, the domains, the classes
    for a, b in combinations(boxes, 2):
        beside = a["right"] <= b["left"] + 1 or b["right"] <= a["left"] + 1
        assert beside or a["bottom"] <= b["top"] + 1 or b["bottom"] <= a["top"] + 1
    visit.context.close()
