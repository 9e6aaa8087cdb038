"""The page in a real browser: headless Chromium against a server of a small model."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, Page, expect

from crossfill.data.segmentation import Segmenter
from crossfill.data.streams import Item
from crossfill.evaluation.expected import Expectations, ExpectedScore
from crossfill.grid.cells import Cell
from crossfill.tagger import render
from crossfill.tagger.tagger import Tagger, load
from crossfill.web.app import build_app
from crossfill.web.serve_settings import ServeSettings
from tests.data.folders import read_bio
from tests.web.browsing import ARABIC, THAI, WOLOF, alike, labels, needs_chromium, serious, visit, words
from tests.web.servers import running

pytestmark = needs_chromium
EXPECTED_PROBLEMS = ("401", "413", "ERR_CONNECTION_REFUSED")
"""What the browser itself logs where a test is about a refused request or a server that is gone."""


@pytest.fixture(scope="module")
def address(tagger: Tagger) -> Iterator[str]:
    with running(build_app(tagger, ServeSettings(), "tiny", {"wol": [WOLOF]})) as found:
        yield found


@pytest.fixture(scope="module")
def watched(browser: Browser, address: str) -> Iterator[tuple[Page, list[str]]]:
    """A page, and what went wrong on it: console errors, and requests to anywhere else."""
    context = browser.new_context(base_url=address)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(10_000)
    problems: list[str] = []
    found = context.new_page()
    found.on("console", lambda told: problems.append(told.text) if told.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("request", lambda sent: None if sent.url.startswith(address) else problems.append(sent.url))
    yield found, problems
    context.close()


@pytest.fixture
def page(watched: tuple[Page, list[str]]) -> Iterator[Page]:
    """The page on a laptop, in the light."""
    found, problems = watched
    problems.clear()
    found.set_viewport_size({"width": 1300, "height": 900})
    found.emulate_media(color_scheme="light")
    yield found
    assert not [told for told in problems if not any(known in told for known in EXPECTED_PROBLEMS)]


def test_it_shows_the_grid_and_tags_at_once(page: Page, tagger: Tagger):
    page.goto("/")
    expect(page.locator(".word").first).to_be_visible()
    for result in tagger.results:
        cell = page.locator(f"[data-cell='{result.cell}']")
        expect(cell).to_have_text(str(round(100 * result.score)))
        assert ("seen" if result.seen else "unseen") in (cell.get_attribute("class") or "").split()
    expect(page.locator(".cell[data-cell]")).to_have_count(len(tagger.cells))
    expect(page.locator(".point")).to_have_count(4)
    assert page.locator("#model").inner_text().startswith("tiny: pf-lr over compact, 4 tasks × 4 languages")


def test_cells_without_test_data_show_what_they_are_expected_to_score(browser: Browser, model: Path):
    tagger = load(model)
    expected = ExpectedScore(Cell("ner", "wol"), 0.4321, 0.25, 0.7, 0.3)
    tagger.expectations = Expectations((), (expected, replace(expected, cell=tagger.results[0].cell)))
    with running(build_app(tagger, ServeSettings(), "tiny", {})) as address:
        context = browser.new_context(base_url=address)
        found = context.new_page()
        found.goto("/")
        cell = found.locator("[data-cell='ner/wol']")
        expect(cell).to_have_text("~43")
        assert "expected span f1 43\u00a0%, from 25\u00a0% to 70\u00a0%" in (cell.get_attribute("title") or "")
        expect(found.locator("#grid-legend")).to_contain_text("expected score, no test data")
        scored = tagger.results[0]  # a score that was measured comes first
        expect(found.locator(f"[data-cell='{scored.cell}']")).to_have_text(str(round(100 * scored.score)))
        context.close()


def test_pick_a_cell_type_and_tag_as_the_tagger_does(page: Page, tagger: Tagger):
    visit(page, "ner/ara", "abc")
    page.locator("[data-cell='pos/wol']").click()
    page.locator("#text").fill(WOLOF)
    page.get_by_role("button", name="Tag", exact=True).click()
    expect(page.locator(".tagging .sentence")).to_have_count(2)
    expected = list(tagger.tag_many(list(Segmenter("wol").split_text(WOLOF)), "pos/wol"))
    assert words(page) == [word for tagging in expected for word in tagging.sentence.words]
    assert labels(page) == [label for tagging in expected for label in tagging.labels]
    expect(page.locator("#status")).to_contain_text("Tagged in pos/wol, averaged over 7 samples")


def test_hover_a_word_for_its_distribution(page: Page, tagger: Tagger):
    visit(page, cell="pos/wol", text=WOLOF)
    page.locator(".word").nth(2).hover()
    expect(page.locator("#inspector-title")).to_have_text("péeyu")
    tagging = tagger.tag(next(Segmenter("wol").split_text(WOLOF)), "pos/wol")
    rows = page.locator(".distribution tbody tr")
    expect(rows).to_have_count(len(tagging.task.labels))
    shown = dict(
        zip(rows.locator("th").all_inner_texts(), rows.locator("td:nth-child(3)").all_inner_texts(), strict=True)
    )
    assert {name: float(p) for name, p in shown.items()} == pytest.approx(tagging.distribution(2), abs=1e-3)
    expect(page.locator(".whisker")).to_have_count(len(tagging.task.labels))
    expect(page.locator(".entropy")).to_contain_text(f"Entropy {tagging.entropy[2]:.3f}")
    expect(page.locator(".entropy")).to_contain_text(f"epistemic {tagging.mutual_information[2]:.3f}")
    page.locator("#status").hover()
    expect(page.locator("#inspector-title")).not_to_have_text("")


def test_switch_between_averaged_and_plug_in(page: Page, tagger: Tagger):
    visit(page, cell="pos/wol", text=WOLOF)
    page.locator("#mode").get_by_text("Plug-in").click()
    expect(page.locator("#status")).to_contain_text("posterior means plugged in")
    expect(page.locator(".whisker")).to_have_count(0)
    expected = tagger.tag(next(Segmenter("wol").split_text(WOLOF)), "pos/wol", samples=0)
    page.locator(".word").first.hover()
    expect(page.locator(".entropy")).to_contain_text(f"{expected.entropy[0]:.3f}")
    assert "mode=plug-in" in page.url


def test_compare_two_cells_and_two_languages_side_by_side(page: Page, tagger: Tagger):
    visit(page, cell="pos/wol", text=WOLOF)
    page.get_by_role("button", name="+ compare with another cell").click()
    page.locator("[data-cell='ner/wol']").click()
    expect(page.locator(".tagging")).to_have_count(2)
    boxes = [page.locator(f".tagging.{panel}").bounding_box() for panel in "ab"]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] < boxes[1]["x"]
    expect(page.locator(".distribution h3")).to_have_text(["pos/wol", "ner/wol"])
    page.locator(".slot.b").click()
    page.locator(".point[data-code='fin']").click()  # the map picks a language for the chosen cell
    expect(page.locator(".distribution h3")).to_have_text(["pos/wol", "ner/fin"])
    expected = list(tagger.tag_many(list(Segmenter("wol").split_text(WOLOF)), "ner/fin"))
    assert labels(page, "b") == [label for tagging in expected for label in tagging.labels]
    page.get_by_role("button", name="Stop comparing").click()
    expect(page.locator(".tagging")).to_have_count(1)


def test_copies_are_what_the_command_line_writes(page: Page, tagger: Tagger):
    visit(page, cell="pos/wol", **{"with": "ner/fin"}, text=WOLOF)
    expected = list(tagger.tag_cells(list(Segmenter("wol").split_text(WOLOF)), ["pos/wol", "ner/fin"]))

    def copied(name: str) -> str:
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator("#status")).to_have_text(f"{name} copied.")
        return page.evaluate("navigator.clipboard.readText()")

    items = [Item(taggings[0].sentence) for taggings in expected]
    numbered = enumerate(zip(items, expected, strict=True), start=1)
    rendered = [render.conllu(item, list(both), False, number) for number, (item, both) in numbered]
    assert alike(copied("CoNLL-U"), "".join(rendered))
    bio = copied("BIO")
    columns = [render.columns(list(both), False) for both in expected]
    assert alike(bio, render.header(list(expected[0]), False) + "".join(columns))
    assert [s.labels for s in read_bio(bio.encode(), "copied")] == [both[1].labels for both in expected]
    lines = [render.json_line(item, list(both), False) for item, both in zip(items, expected, strict=True)]
    assert alike(
        json.dumps([json.loads(line) for line in copied("JSON").splitlines()]), json.dumps([*map(json.loads, lines)])
    )
    assert copied("Link") == page.url


def test_a_link_restores_everything(page: Page, browser: Browser, address: str):
    visit(page, cell="ner/fin", **{"with": "pos/tha"}, mode="plug-in", text="Näin & noin = 50 % #1")
    link = page.url
    shown = page.locator("#taggings").inner_text()
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator(".tagging")).to_have_count(2)
    assert page.locator("#text").input_value() == "Näin & noin = 50 % #1"
    assert page.locator("[value=plug-in]").is_checked()
    assert page.locator("#taggings").inner_text() == shown
    page.evaluate("location.hash = 'cell=pos/ara&mode=averaged&text=a'")
    expect(page.locator("#status")).to_contain_text("Tagged in pos/ara, averaged")
    page.goto("/#cell=pos/xxx")
    expect(page.get_by_role("alert")).to_contain_text("no cell pos/xxx")


def test_right_to_left_and_unspaced_scripts(page: Page):
    visit(page, cell="pos/ara", text=ARABIC)
    expect(page.locator(".sentence")).to_have_attribute("dir", "rtl")
    assert words(page)[:2] == ["داكار", "هي"]
    first, second = (page.locator(".word").nth(i).bounding_box() for i in (0, 1))
    assert first is not None
    assert second is not None
    assert first["x"] > second["x"]
    page.locator(".word").first.focus()
    page.keyboard.press("ArrowLeft")  # onwards, in this script
    expect(page.locator("#inspector-title")).to_have_text("هي")
    page.locator("[data-cell='pos/tha']").click()
    page.locator("#text").fill(THAI)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".sentence")).to_have_attribute("lang", "th")
    found = words(page)
    assert len(found) > 3
    assert "".join(found) == THAI
    expect(page.locator(".sentence")).to_have_attribute("dir", "ltr")


def test_the_keyboard_is_enough(page: Page):
    visit(page, cell="pos/fin", text=WOLOF)
    page.locator("[data-cell='pos/fin']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Tagged in pos/tha")
    page.keyboard.press("Home")
    page.keyboard.press("b")
    expect(page.locator("#status")).to_contain_text("Tagged in pos/tha and chunk/tha")
    page.keyboard.press("Tab")  # past the grid, to the map
    for _ in range(12):
        if page.evaluate("document.activeElement.matches('.point')"):
            break
        page.keyboard.press("Tab")
    before = page.evaluate("document.activeElement.dataset.code")
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    page.evaluate("document.querySelector('#status').textContent = ''")  # the same cell again says the same
    page.keyboard.press("Enter")
    after = page.evaluate("document.activeElement.dataset.code")
    assert {before, after} <= {"ara", "fin", "tha", "wol"}
    expect(page.locator("#status")).to_contain_text(f"Tagged in pos/{after} and chunk/tha")
    while not page.evaluate("document.activeElement.matches('.word')"):
        page.keyboard.press("Tab")
    page.keyboard.press("End")
    expect(page.locator("#spoken")).to_contain_text("Entropy")
    expect(page.locator("#inspector-title")).to_have_text(words(page)[-1])


def test_no_serious_accessibility_issue(page: Page):
    visit(page, cell="pos/wol", **{"with": "ner/fin"}, text=WOLOF)
    assert not serious(page)
    page.emulate_media(color_scheme="dark")
    assert not serious(page, runOnly=["color-contrast"])
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 900, 1300])
def test_no_serious_accessibility_issue_anywhere(page: Page, scheme, width: int):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    for mode, more in (("averaged", {}), ("plug-in", {"with": "ner/fin"})):
        visit(page, "pos/ara", ARABIC, mode, **more)
        assert not serious(page)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.locator("#text").fill("a " * 11_000)
    page.get_by_role("button", name="Tag", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert not serious(page)
    page.goto("/docs")
    expect(page.locator("#TagRequest")).to_be_visible()
    assert not serious(page)


def test_a_server_that_goes_away_is_told_and_comes_back(browser: Browser, tagger: Tagger):
    page = browser.new_page()
    with running(build_app(tagger)) as address:
        page.goto(address)
        expect(page.locator(".word").first).to_be_visible()
    page.get_by_role("button", name="Tag", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    expect(page.locator(".word").first).to_be_visible()  # what was there stays
    with running(build_app(tagger), int(address.rpartition(":")[2])):
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("alert")).to_be_hidden()
        assert page.locator(".word").count() > 0
    page.close()


def test_limits_are_told(page: Page):
    visit(page, cell="pos/wol", text=WOLOF)
    page.locator("#text").fill("a " * 11_000)
    page.get_by_role("button", name="Tag", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert "expected at most 20,000 characters" in page.get_by_role("alert").inner_text()


def test_a_token_is_asked_for(browser: Browser, tagger: Tagger):
    with running(build_app(tagger, ServeSettings(token="correct-horse"))) as address:
        found = browser.new_page()
        found.goto(address)
        found.get_by_label("This server asks for a token").fill("wrong-horse")
        found.keyboard.press("Enter")
        expect(found.get_by_label("This server asks for a token")).to_have_value("")
        found.get_by_label("This server asks for a token").fill("correct-horse")
        found.keyboard.press("Enter")
        expect(found.locator(".word").first).to_be_visible()
        assert not found.get_by_label("This server asks for a token").is_visible()
        found.close()


def test_the_call_in_the_docs_can_be_pasted_into_a_shell(browser: Browser, tagger: Tagger):
    text = "Côte d'Ivoire'; echo \"$HOME\" '"
    with running(build_app(tagger, ServeSettings(), "tiny", {tagger.cells[0].language: [text]})) as address:
        found = browser.new_page()
        found.goto(f"{address}/docs")
        call = found.get_by_role("region", name="Example call of /api/tag").inner_text()
        assert json.loads(shlex.split(call)[-1])["text"] == text
        document = requests.get(f"{address}/api/openapi.json", timeout=10).json()
        assert found.locator("h2 .chip").count() == sum(map(len, document["paths"].values()))
        assert not found.locator("#problem").is_visible()
        found.close()
