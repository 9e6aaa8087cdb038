"""How the page is laid out, on a desktop and on a phone, and what it shows while it waits."""

import itertools
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.registry import build_model
from crossfill.tagger.tagger import Tagger
from crossfill.web.app import build_app
from tests.scenarios import SMALL
from tests.web.browsing import needs_chromium, wait_until
from tests.web.servers import running

pytestmark = needs_chromium
LANGUAGES = ("ara", "cym", "ell", "est", "eus", "fin", "fra", "heb", "hin", "hun", "ind", "ita", "jpn", "kor")
LANGUAGES += ("lit", "nld", "pol", "spa", "swe", "tam", "tha", "tur", "vie", "wol", "yor")
LABELS = {"ner": ("B-LOC", "B-PER", "I-LOC", "I-PER", "O"), "pos": ("ADJ", "NOUN", "PUNCT", "VERB")}
SEEN = [Cell(task, code) for task in LABELS for i, code in enumerate(LANGUAGES) if (i % 2 == 0) == (task == "pos")]
APART = {"latents.mean_scale": 1.0, "latents.rho_range": [-4, -3], "latents.factor_range": [0, 0.1]}
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def app(method: str):
    """A server of a model that was not trained: 25 languages, each seen in one of two tasks."""
    config = SMALL.change({"method": method, **APART})
    model = build_model(config, Inventory.of(LABELS, LANGUAGES), SEEN)
    return build_app(Tagger(model, config), name="many", examples={})


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(app("pf-lr")) as found:
        yield found


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    opened = []

    def open_page(size, at: str = address) -> Page:
        page = browser.new_page(viewport=size, base_url=at)
        opened.append(page)
        page.goto("/")
        expect(page.locator(".word").first).to_be_visible()
        return page

    yield open_page
    for page in opened:
        page.close()


def boxes(page: Page, selector: str) -> list[tuple[float, float, float, float]]:
    """Left, right, top and bottom of elements, in pixels."""
    sides = "({ left, right, top, bottom }) => [left, right, top, bottom]"
    return page.locator(selector).evaluate_all(f"all => all.map(one => one.getBoundingClientRect()).map({sides})")


def test_while_the_server_works_the_page_says_so(open_page: Callable[..., Page]):
    page = open_page(DESKTOP)
    held: list[Route] = []
    page.route("**/api/tag", lambda asked: held.append(asked))
    page.get_by_role("button", name="Another example").click()
    expect(page.locator("#status")).to_have_text("Tagging in ner/ara…")
    expect(page.locator("main.waiting #tag[aria-busy=true]")).to_be_visible()
    expect(page.locator("#taggings[aria-busy=true] .word").first).to_be_visible()  # what was there stays, in grey
    held[0].continue_()
    expect(page.locator("#status")).to_contain_text("Tagged in ner/ara")
    expect(page.locator(".waiting, [aria-busy]")).to_have_count(0)
    assert len(held) == 1  # one click, one request


def test_a_phone_opens_on_the_text_and_goes_to_the_result(open_page: Callable[..., Page]):
    page = open_page(PHONE)
    assert page.evaluate("scrollY") == 0
    for first in ("#text", "#tag", ".word"):
        box = page.locator(first).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < PHONE["height"]
    page.get_by_role("button", name="Tag", exact=True).click()
    wait_until(page, "() => Math.abs(document.querySelector('#outcome').getBoundingClientRect().top) < 20")


@pytest.mark.parametrize("method", ["pf-lr", "jm"])
def test_no_third_of_a_desktop_is_blank(open_page: Callable[..., Page], method: str):
    with running(app(method)) as at:
        page = open_page(DESKTOP, at)
        assert page.locator("#atlas").is_visible() is (method == "pf-lr")
        shown = boxes(page, ".picker, .work > *, .atlas, .reading")
        for left, right in ((0, 427), (427, 853), (853, 1280)):
            reach = max(bottom for x, end, _, bottom in shown if x < right - 20 and end > left + 20)
            assert reach > 0.7 * DESKTOP["height"], f"nothing between {left} and {right} below {reach}"
        page.close()


def test_names_on_the_map_do_not_collide_and_ellipses_are_inside(open_page: Callable[..., Page]):
    page = open_page(DESKTOP)
    frame = page.locator("#map svg").bounding_box()
    assert frame is not None

    for code in LANGUAGES[::4]:
        page.locator(f".point[data-code='{code}']").dispatch_event("click")
        expect(page.locator(".names .a:not(.crowded)")).to_have_text(code)
        names = boxes(page, ".names .name:not(.crowded)")
        assert len(names) > len(LANGUAGES) / 2
        for one, other in itertools.combinations(names, 2):
            beside = one[1] < other[0] or other[1] < one[0]
            assert beside or one[3] <= other[2] + 3 or other[3] <= one[2] + 3  # boxes of text are higher than letters
        ((left, right, top, bottom),) = boxes(page, ".spread.a")
        assert right - left > 4
        assert left >= frame["x"]
        assert right <= frame["x"] + frame["width"]
        assert top >= frame["y"]
        assert bottom <= frame["y"] + frame["height"]


def test_unseen_means_the_same_in_grid_legend_and_badge(open_page: Callable[..., Page]):
    page = open_page(DESKTOP)
    legend = page.locator("#grid-legend li").all_inner_texts()
    for cell, status in (("ner/ara", "unseen"), ("pos/ara", "seen")):
        page.locator(f"[data-cell='{cell}']").click()
        expect(page.locator(".tagging .chip").first).to_have_text(status)
        meaning = page.locator(".tagging .chip").first.get_attribute("title")
        assert meaning in legend
        assert meaning in (page.locator(f"[data-cell='{cell}']").get_attribute("title") or "").split("\n")


def test_every_language_has_several_examples_and_the_word_looked_at_goes_with_the_text(open_page: Callable[..., Page]):
    page = open_page(DESKTOP)
    shown = set()
    for _ in range(3):
        shown.add(page.locator("#text").input_value())
        title = page.locator("#inspector-title").inner_text()
        least = page.locator(".word").evaluate_all(
            "all => all.map(one => [+one.style.getPropertyValue('--sure'), one.querySelector('.form').textContent])"
        )
        assert title == min(least)[1]
        page.get_by_role("button", name="Another example").click()
        wait_until(page, "() => !document.querySelector('[aria-busy]')")
    assert len(shown) == 3


def test_a_model_without_a_posterior_has_nothing_to_average(open_page: Callable[..., Page]):
    with running(app("jm")) as at:
        page = open_page(DESKTOP, at)
        expect(page.locator("#mode")).to_be_hidden()
        expect(page.locator("#status")).to_have_text(re.compile(r"Tagged in ner/ara, \d+ ms\."))
        assert page.locator(".word").count() > 0
        assert page.locator(".whisker").count() == 0
        page.close()
