"""Teaching in a real browser: by keys alone, by pointer, in two tabs, on a phone, and through a crash of the server."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser, BrowserContext, Page, expect

import crossfill
from crossfill.data.readers import read_corpus
from crossfill.data.reading import NO_HINTS
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.tagger.tagger import load
from crossfill.teaching.service import Teacher
from crossfill.web.app import build_app
from crossfill.web.serve_settings import ServeSettings
from tests.scenarios import SMALL, small_grid
from tests.web.browsing import needs_chromium, serious, wait_until
from tests.web.conftest import CODES
from tests.web.servers import running

pytestmark = needs_chromium
LINES = ["Dakar mooy péeyu Senegaal", "Ndar nekk na ci Senegaal", "Awa Diop dem na Tuubaa", "Dafa rafet", "Lii lan la"]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
EXPECTED_PROBLEMS = ("ERR_CONNECTION", "ERR_SOCKET_NOT_CONNECTED", "ERR_EMPTY_RESPONSE", "422", "Password forms")
"""What a browser says of a server that was killed, of input that is refused, and of a token field."""


@pytest.fixture
def teacher(model: Path, tmp_path: Path) -> Teacher:
    return Teacher(load(model), tmp_path / "taught", 0, model)


@pytest.fixture
def address(teacher: Teacher) -> Iterator[str]:
    with running(build_app(teacher.tagger, ServeSettings(), "tiny", {}, teacher)) as found:
        yield found


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the view to teach a cell in; nothing may go wrong in the browser meanwhile."""
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def visit(address: str, cell: str, size=DESKTOP, **options) -> Page:
        context = browser.new_context(base_url=address, viewport=size, **options)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda told: problems.append(told.text) if told.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda sent: None if sent.url.startswith(("blob:", address)) else problems.append(sent.url))
        page.goto(f"/teach#cell={cell}")
        expect(page.locator("#main")).to_be_visible()
        expect(page.locator("#told")).not_to_be_empty()
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not [told for told in problems if not any(known in told for known in EXPECTED_PROBLEMS)]


def add(page: Page, *lines: str) -> None:
    page.locator("#adding").evaluate("element => { element.open = true; }")
    page.locator("#pasted").fill("\n".join(json.dumps({"words": line.split()}) for line in lines))
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#words [role=option]:focus")).to_be_visible()


def words(page: Page) -> list[str]:
    return page.locator("#words .form").all_inner_texts()


def labels(page: Page) -> list[str]:
    """The labels of the words, as a screen reader is told them."""
    said = page.locator("#words [role=option]").evaluate_all("all => all.map(word => word.ariaLabel)")
    return [text.rpartition(": ")[2].partition(",")[0] for text in said]


def press(page: Page, *keys: str) -> None:
    """Press keys, and wait until the sentence that is shown can be corrected."""
    for key in keys:
        page.keyboard.press(key)
        if key in ("Enter", "PageDown", "Control+z", "Control+y"):
            expect(page.locator("#words[aria-busy=true]")).to_have_count(0)


def accepted(teacher: Teacher, cell: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(" ".join(entry.sentence.words), entry.sentence.labels) for entry in teacher.active(cell)]


def gold_of(task: str) -> tuple[str, list[Sentence], list[Sentence]]:
    """An unseen cell of the model with sentences to teach, and others to test on."""
    made, partition = small_grid()
    names = dict(zip(made.grid.languages, CODES, strict=True))
    cell = next(cell for cell in sorted(partition.unseen) if cell.task == task)
    splits = made.grid[cell][0]
    return str(Cell(task, names[cell.language])), list(splits.train), [*splits.dev, *splits.test]


def score(address: str, cell: str, sentences: list[Sentence]) -> float:
    asked = {"cells": [cell], "sentences": [sentence.words for sentence in sentences], "samples": 0}
    found = requests.post(f"{address}/api/tag", json=asked, timeout=60).json()["taggings"][0]["sentences"]
    pairs = [
        pair for one, s in zip(found, sentences, strict=True) for pair in zip(one["labels"], s.labels, strict=True)
    ]
    return sum(label == right for label, right in pairs) / len(pairs)


def test_a_new_user_teaches_ten_sentences_by_keyboard_alone_and_the_score_rises(
    visit: Callable[..., Page], address: str, teacher: Teacher
):
    cell, training, held_out = gold_of("pos")
    right = {sentence.words: sentence.labels for sentence in training[:10]}
    before = score(address, cell, held_out)
    page = visit(address, cell)
    while page.evaluate("document.activeElement.id") != "pasted":
        press(page, "Tab")
    page.keyboard.insert_text("\n".join(json.dumps({"words": sentence}) for sentence in right))
    press(page, "Tab", "Enter")  # Add
    keys = page.locator("#kinds button").evaluate_all("all => all.map(one => [one.dataset.kind, one.ariaKeyShortcuts])")
    key_of = dict(keys)
    for n in range(len(right)):
        expect(page.locator("#words [role=option]:focus")).to_be_visible()
        shown = tuple(words(page))
        press(page, "Home")
        for found, wanted in zip(labels(page), right[shown], strict=True):
            if found != wanted:
                press(page, key_of[wanted])
            press(page, "ArrowRight")
        assert tuple(labels(page)) == right[shown]
        press(page, "Enter")
        expect(page.locator("#done")).to_have_text(f"{n + 1} sentence{'s' * (n > 0)}")
    assert {entry.sentence.words: entry.sentence.labels for entry in teacher.active(cell)} == right
    while page.evaluate("document.activeElement.id") != "learn":
        press(page, "Shift+Tab" if page.evaluate("document.activeElement.closest('.panel') !== null") else "Tab")
    press(page, "Enter")
    expect(page.locator("#told")).to_contain_text("Learned from 10 sentences")
    expect(page.locator("#score")).to_have_text(re.compile(r"\d+\s%"), timeout=60_000)
    expect(page.locator("#curve svg circle")).to_have_count(5)
    assert page.evaluate("document.activeElement.id") == "learn"
    after = score(address, cell, held_out)
    assert after > before + 0.05


def test_spans_by_keys_and_by_dragging(visit: Callable[..., Page], address: str, teacher: Teacher):
    page = visit(address, "ner/wol")
    add(page, LINES[2])
    none, one, other = (
        "0",
        *sorted({label[2:] for label in teacher.tagger.model.inventory.task("ner").labels if label != "O"})[:2],
    )
    press(page, "Home", "Shift+End", none)
    assert labels(page) == ["no label"] * 5
    press(page, "Home", "Shift+ArrowRight", "1", "End", "2")
    assert labels(page) == [f"B-{one}", f"I-{one}", "no label", "no label", f"B-{other}"]
    press(page, "Home", "2")  # a lone word stands for its span
    assert labels(page)[:2] == [f"B-{other}", f"I-{other}"]
    options = page.locator("#words [role=option]")
    boxes = [options.nth(i).bounding_box() for i in (1, 3)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    page.mouse.move(boxes[0]["x"] + 5, boxes[0]["y"] + 5)
    page.mouse.down()
    page.mouse.move(boxes[1]["x"] + 5, boxes[1]["y"] + 5, steps=5)
    page.mouse.up()
    expect(page.locator("#words [aria-selected=true]")).to_have_count(3)
    page.locator(f"#kinds button[data-kind={one}]").click()
    assert labels(page) == [f"B-{other}", f"B-{one}", f"I-{one}", f"I-{one}", f"B-{other}"]
    press(page, "Enter")
    expect(page.locator("#told")).to_contain_text("Nothing waits")
    assert accepted(teacher, "ner/wol") == [
        (LINES[2], (f"B-{other}", f"B-{one}", f"I-{one}", f"I-{one}", f"B-{other}"))
    ]


def test_undo_takes_back_edits_and_then_what_was_accepted_and_redo_brings_it_again(
    visit: Callable[..., Page], address: str, teacher: Teacher
):
    page = visit(address, "pos/wol")
    add(page, *LINES[:3])
    first, before = words(page), labels(page)
    press(page, "Home", "1", "2")
    after = labels(page)
    press(page, "Control+z", "Control+z")
    assert labels(page) == before
    press(page, "Control+y", "Control+y")
    assert labels(page) == after
    press(page, "Enter")
    expect(page.locator("#done")).to_have_text("1 sentence")
    expect(page.locator("#words")).not_to_contain_text(first[0])
    second = words(page)
    press(page, "Control+z")
    expect(page.locator("#told")).to_contain_text("Taken back")
    expect(page.locator("#done")).to_have_text("0 sentences")
    assert (words(page), labels(page), accepted(teacher, "pos/wol")) == (first, after, [])
    press(page, "Control+y")
    expect(page.locator("#done")).to_have_text("1 sentence")
    expect(page.locator("#words")).to_contain_text(second[0])
    assert accepted(teacher, "pos/wol") == [(" ".join(first), tuple(after))]
    press(page, "PageDown")
    expect(page.locator("#words")).not_to_contain_text(second[0])
    page.get_by_role("button", name=" ".join(first)).click()  # corrected last: once more
    expect(page.locator("#told")).to_contain_text("again")
    press(page, "Home", "3", "Enter")
    expect(page.locator("#told")).to_contain_text("Saved")
    assert len(accepted(teacher, "pos/wol")) == 1
    assert accepted(teacher, "pos/wol")[0][1] != tuple(after)


def test_words_are_split_and_merged_and_the_text_stays(visit: Callable[..., Page], address: str, teacher: Teacher):
    page = visit(address, "pos/wol")
    add(page, "Dakarmooy pé eyu")
    press(page, "Home", "/")
    page.locator("#parts").fill("Dakar mooy")
    press(page, "Enter")
    shown = page.locator("#words .form")
    expect(shown).to_have_text(["Dakar", "mooy", "pé", "eyu"])  # the dialog tells of its close a little later
    press(page, "End", "ArrowLeft", "+")
    expect(shown).to_have_text(["Dakar", "mooy", "pé eyu"])
    press(page, "Home", "/")
    page.locator("#parts").fill("Da kat")
    press(page, "Enter")
    expect(page.locator("#spoken")).to_contain_text("Not split")
    press(page, "Control+z", "Control+z", "Control+y", "Control+y", "Enter")
    expect(page.locator("#told")).to_contain_text("Nothing waits")
    (entry,) = teacher.active("pos/wol")
    assert (entry.sentence.words, entry.sentence.text) == (("Dakar", "mooy", "pé eyu"), "Dakarmooy pé eyu")


def test_two_tabs_lose_nothing(visit: Callable[..., Page], address: str, teacher: Teacher):
    one, other = visit(address, "pos/wol"), visit(address, "pos/wol")
    add(one, *LINES[:4])
    other.reload()
    expect(other.locator("#words .word").first).to_be_visible()
    assert words(one) != words(other)
    for page, who in ((one, "Anna"), (other, "Ben")):
        page.locator("#who").fill(who)
        page.locator("#words [role=option][tabindex='0']").focus()
    for n in range(2):
        for page in (one, other):
            press(page, "Enter")
            expect(page.locator("#told")).to_contain_text("Saved")
        expect(other.locator("#done")).to_have_text(f"{2 * n + 2} sentences")
    assert {text for text, _ in accepted(teacher, "pos/wol")} == set(LINES[:4])
    assert [entry.who for entry in teacher.active("pos/wol")] == ["Anna", "Ben"] * 2
    one.reload()
    expect(one.locator("#done")).to_have_text("4 sentences")
    for page in (one, other):  # both correct the same sentence: both are kept, the later counts, and that is said
        page.locator("#recent button").first.click()
        page.locator("#words [role=option][tabindex='0']").focus()
    press(one, "Home", "1", "Enter")
    expect(one.locator("#told")).to_contain_text("Saved")
    press(other, "Home", "2", "Enter")
    expect(other.locator("#told")).to_contain_text("had accepted this sentence, too")
    assert len(accepted(teacher, "pos/wol")) == 4


@contextmanager
def process(model: Path, taught: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen]]:
    command = [sys.executable, "-m", "crossfill", "serve", str(model), "--teach", str(taught), "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as found:
        try:
            assert found.stderr is not None
            line = next(line for line in found.stderr if line.startswith("http"))
            yield line.split()[0].rstrip("/"), found
        finally:
            found.kill()


def test_a_killed_server_loses_nothing_that_it_acknowledged(visit: Callable[..., Page], model: Path, tmp_path: Path):
    taught = tmp_path / "taught"
    with process(model, taught) as (address, server):
        page = visit(address, "pos/wol")
        add(page, *LINES)
        told = []
        for _ in range(3):
            told.append(" ".join(words(page)))
            press(page, "Home", "1", "Enter")
            expect(page.locator("#told")).to_contain_text("Saved")
            expect(page.locator("#words")).not_to_contain_text(told[-1].split()[0])
        page.evaluate("() => { document.querySelector('#accept').click(); }")
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
    page.wait_for_timeout(200)
    with process(model, taught, int(address.rpartition(":")[2])):
        found = requests.get(f"{address}/api/teach/sentences", params={"cell": "pos/wol"}, timeout=20)
        corpus = read_corpus(found.content, "x", "pos", NO_HINTS, ".bio", False).corpus
        assert [" ".join(sentence.words) for sentence in corpus][:3] == told
        assert len(corpus) in (3, 4)
        page.reload()
        expect(page.locator("#done")).to_have_text(f"{len(corpus)} sentences")
        expect(page.locator("#words .word").first).to_be_visible()  # what waited still does


def hindrances(page: Page) -> list[str]:
    """What axe finds, in both themes."""
    found = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found += serious(page)
    return found


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everyone_can_use_it_in_both_themes(visit: Callable[..., Page], address: str, teacher: Teacher, size):
    page = visit(address, "pos/fin", size, has_touch=size is PHONE)
    assert hindrances(page) == []
    add(page, *LINES[:4])
    assert hindrances(page) == []
    for _ in range(3):
        if size is PHONE:
            page.get_by_role("button", name="Accept").tap()
        else:
            press(page, "Enter")
        expect(page.locator("#told")).to_contain_text("Saved")
    page.get_by_role("button", name="Learn").click()
    expect(page.locator("#estimate")).to_be_visible(timeout=60_000)
    page.locator("details:has(#states)").evaluate("element => { element.open = true; }")
    assert hindrances(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    small = "all => all.filter(one => one.offsetHeight && one.offsetHeight < 24).map(one => one.outerHTML)"
    assert page.locator("main button, main select, #words .word").evaluate_all(small) == []
    page.get_by_role("button", name="Go to state 0").click()
    expect(page.locator("#done")).to_have_text("0 sentences")
    expect(page.get_by_role("button", name="Go to state 1")).to_have_text("Go forward")
    page.get_by_role("button", name="Split").click()
    expect(page.locator("#splitting")).to_be_visible()
    assert hindrances(page) == []


def test_nothing_is_wider_than_the_window_at_any_width_after_twenty_sentences(
    visit: Callable[..., Page], address: str, teacher: Teacher
):
    cell, training, _ = gold_of("pos")
    few = [training[i % len(training)] for i in range(20)]
    long = [
        Sentence((f"Donaudampfschifffahrtsgesellschaft{i}", *s.words), (s.labels[0], *s.labels))
        for i, s in enumerate(few)
    ]
    teacher.accept(cell, long, "Awa")
    teacher.learn(cell)
    page = visit(address, cell)
    expect(page.locator("#done")).to_have_text("20 sentences")
    expect(page.locator("#estimate")).to_be_visible(timeout=60_000)
    expect(page.locator(".recent li")).to_have_count(20)
    for details in page.locator("details").all():
        details.evaluate("element => { element.open = true; }")
    for width in (320, 360, 768, 1000, 1200, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        wide = """all => all.filter(one => one.offsetHeight && one.getBoundingClientRect().right > innerWidth + 1)
            .map(one => one.outerHTML.slice(0, 80))"""
        assert (
            page.locator("main button, main select, main input, main textarea, main h2, main h3, #learn").evaluate_all(
                wide
            )
            == []
        )


def test_undo_takes_back_what_was_accepted_before_the_page_was_loaded(
    visit: Callable[..., Page], address: str, teacher: Teacher
):
    page = visit(address, "pos/wol")
    add(page, *LINES[:3])
    first, tags = words(page), labels(page)
    press(page, "Enter")
    expect(page.locator("#done")).to_have_text("1 sentence")
    page.reload()
    expect(page.locator("#done")).to_have_text("1 sentence")
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#told")).to_contain_text("Taken back")
    expect(page.locator("#done")).to_have_text("0 sentences")
    assert (words(page), labels(page), accepted(teacher, "pos/wol")) == (first, tags, [])


def test_undo_at_awkward_moments(visit: Callable[..., Page], address: str, teacher: Teacher):
    page, cell = visit(address, "pos/wol"), "pos/wol"
    add(page, *LINES)
    for _ in range(4):
        press(page, "Enter")
        expect(page.locator("#told")).to_contain_text("Saved")
    twice = "() => { for (let i = 0; i < 2; i++) document.getElementById('undo').click(); }"
    for n_left in (3, 2):  # twice at once is once, also for what was accepted before the page was loaded
        page.evaluate(twice)
        expect(page.locator("#done")).to_have_text(f"{n_left} sentences")
        expect(page.locator("#told")).to_contain_text("Taken back")
        expect(page.locator("#problem")).to_be_hidden()
        assert len(teacher.active(cell)) == n_left
        page.reload()
        expect(page.locator("#done")).to_have_text(f"{n_left} sentences")
        expect(page.locator("#told")).not_to_be_empty()
    page.locator("#accept").click()
    expect(page.locator("#done")).to_have_text("3 sentences")
    expect(page.locator("#told")).to_contain_text("Saved")
    last = teacher.active(cell)[-1]
    teacher.withdraw(cell, [last.id])  # in another tab
    page.locator("#undo").click()
    expect(page.locator("#told")).to_contain_text("Taken back")
    expect(page.locator("#problem")).to_be_hidden()
    expect(page.locator("#done")).to_have_text("2 sentences")
    assert words(page) == list(last.sentence.words)


HOSTILE = ('<img src=x onerror="window.hit=1">', "\"'><script>window.hit=1</script>", "\u202eNUON", "__proto__")
HOSTILE += ("constructor", "&lt;b&gt;", "');window.hit=1//", "{{7*7}}", "`${window.hit=1}`", "</style>", "toString")
"""Names of labels that a corpus may have, and that a page must not take for anything else."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of tags and of spans with such names."""
    made, _ = small_grid()
    corpora = {}
    for cell, splits in made.grid.corpora.items():
        if cell.task in ("pos", "ner"):
            names = sorted({label for split in splits for label in split.train.label_counts()} - {"O"})
            kinds = dict(
                zip(dict.fromkeys(name.removeprefix("B-").removeprefix("I-") for name in names), HOSTILE, strict=False)
            )

            def renamed(label: str, kinds=kinds) -> str:
                start = label[:2] if label[:2] in ("B-", "I-") else ""
                return start + kinds.get(label.removeprefix(start), label)

            corpora[Cell(cell.task, dict(zip(made.grid.languages, CODES, strict=True))[cell.language])] = tuple(
                replace(one, **{part: _relabelled(getattr(one, part), renamed) for part in ("train", "dev", "test")})
                for one in splits
            )
    out = tmp_path_factory.mktemp("hostile") / "a&lt;b"
    crossfill.train(Grid(corpora), out=out, config=SMALL.change({"training.steps": 12}))
    return out


def _relabelled(corpus: Corpus, renamed: Callable[[str], str]) -> Corpus:
    return Corpus.from_sentences([replace(s, labels=tuple(map(renamed, s.labels))) for s in corpus])


def test_names_of_labels_are_text_and_nothing_else(visit: Callable[..., Page], hostile: Path, tmp_path: Path):
    teacher = Teacher(load(hostile), tmp_path / "taught", 0, hostile)
    with running(build_app(teacher.tagger, ServeSettings(), hostile.name, {}, teacher)) as address:
        for cell in ("pos/wol", "ner/wol"):
            kinds = teacher.tagger.model.inventory.task(cell[:3]).labels
            assert {kind.removeprefix("B-") for kind in kinds} & set(HOSTILE)
            page = visit(address, cell)
            add(page, *LINES[:2])
            shown = page.locator("#kinds .kind span:not(.share)").all_inner_texts()
            assert set(shown) - {"none"} == {k[2:] if k[:2] in ("B-", "I-") else k for k in kinds} - {"O"}
            press(page, "Home", "1", "Enter")
            expect(page.locator("#done")).to_have_text("1 sentence")
            page.goto(f"/#cell={cell}&text=Dakar%20mooy%20rafet")
            expect(page.locator(".word").first).to_be_visible()
            page.locator(".word").first.hover()
            page.locator(".word").first.click()
            wait_until(page, "() => document.readyState === 'complete'")
            expect(page.locator("body")).to_contain_text(hostile.name)
            assert page.evaluate("window.hit ?? document.querySelectorAll('img[src=x], script:not([src])').length") == 0
    teacher.close()


def test_a_word_list_is_given_and_removed_and_others_are_done_again(
    visit: Callable[..., Page], address: str, teacher: Teacher
):
    cell, training, _ = gold_of("pos")
    teacher.accept(cell, [training[0]], "Awa")
    page = visit(address, cell)
    page.get_by_text("Word list").click()
    page.get_by_label("A form, a tab").fill(f"Dakar\t{training[0].labels[0]}\n")
    page.get_by_role("button", name="Use this list").click()
    expect(page.locator("#listed")).to_have_text("1 form; sentences that say something else win.")
    expect(page.locator("#states li")).to_have_count(2, timeout=60_000)
    page.get_by_label("A form, a tab").fill("Dakar")
    page.get_by_role("button", name="Use this list").click()
    expect(page.locator("#problem")).to_contain_text("the word list:1: expected a form, a tab and its labels")
    page.get_by_role("button", name="Remove the list").click()
    expect(page.locator("#listed")).to_have_text("None.")
    page.get_by_label("Your name").fill("Ben")
    page.get_by_label("Again what others did").check()
    expect(page.locator("#words [role=option]")).to_have_count(len(training[0].words))
    page.get_by_role("button", name="Accept").click()
    expect(page.locator("#told")).to_contain_text("Awa had accepted this sentence, too")


def test_files_come_in_and_go_out(visit: Callable[..., Page], address: str, tmp_path: Path):
    page = visit(address, "ner/ara")
    path = tmp_path / "names.bio"
    path.write_text("داكار\tO\nهي\tO\n\nالسنغال\tO\n", encoding="utf-8")
    page.locator("#file").set_input_files(path)
    expect(page.locator("#waiting")).to_have_text("2 sentences waiting")
    expect(page.locator("#words")).to_have_attribute("dir", "rtl")
    if len(words(page)) == 1:
        press(page, "PageDown")
        expect(page.locator("#words .word")).to_have_count(2)
    press(page, "Home", "ArrowLeft", "1", "Enter")  # to the left is forward
    expect(page.locator("#done")).to_have_text("1 sentence")
    with page.expect_download() as download:
        page.get_by_role("button", name="BIO", exact=True).click()
    assert download.value.suggested_filename == "ner-ara.bio"
    content = Path(download.value.path()).read_text(encoding="utf-8")
    assert content.split("\n")[1].startswith("هي\tB-")


def test_what_is_pasted_is_recognised_and_sent_in_parts(visit: Callable[..., Page], address: str):
    page = visit(address, "pos/wol")
    found = page.evaluate(
        """async () => {
          const { formatOf, partsOf } = await import("/teach_text.js");
          const columns = ["Dakar\\tB-LOC\\nmooy\\tO\\n", "Dakar B-LOC\\nmooy O\\n"];
          const rows = "1\\tDakar" + "\\t_".repeat(8) + "\\n2\\tmooy" + "\\t_".repeat(8) + "\\n";
          const texts = ["Dakar mooy.\\nNdar.", rows, ...columns, '{"text": "a"}'];
          return {
            formats: texts.map(text => formatOf(text)),
            named: formatOf("Dakar mooy", "x.CONLLU"),
            parts: partsOf((rows + "\\n").repeat(9), "conllu", 150),
          };
        }"""
    )
    assert found["formats"] == ["text", "conllu", "bio", "bio", "jsonl"]
    assert found["named"] == "conllu"
    assert "".join(found["parts"]).count("Dakar") == 9
    assert all(len(part) <= 150 and part.endswith("\n\n") for part in found["parts"])


def test_a_cell_learns_by_itself_and_the_next_sentence_shows_it(
    visit: Callable[..., Page], model: Path, tmp_path: Path
):
    teacher = Teacher(load(model), tmp_path / "taught", 2, model)
    with running(build_app(teacher.tagger, ServeSettings(), "tiny", {}, teacher)) as address:
        page = visit(address, "pos/wol")
        add(page, *LINES)
        for _ in range(2):
            before = words(page)
            press(page, "Home", "Shift+End", "1", "Enter")
            deadline = time.monotonic() + 20
            while words(page) == before and time.monotonic() < deadline:  # keys are for the next sentence from then on
                time.sleep(0.05)
        expect(page.locator("#unlearned")).to_contain_text("All learned")
        first = teacher.tagger.model.inventory.task("pos").labels[0]
        deadline = time.monotonic() + 20
        while set(labels(page)) != {first} and time.monotonic() < deadline:  # the sentence is tagged anew after that
            time.sleep(0.05)
        assert labels(page) == [first] * len(words(page))
        page.get_by_role("button", name="Save model").click()
        expect(page.locator("#told")).to_contain_text("adapted/pos-wol.safetensors")
    for file in (model / "adapted").iterdir():
        file.unlink()
    (model / "adapted").rmdir()


def test_a_token_is_asked_for(visit: Callable[..., Page], browser: Browser, teacher: Teacher):
    settings = ServeSettings(token="correct-horse")
    with running(build_app(teacher.tagger, settings, "tiny", {}, teacher)) as address:
        page = browser.new_page(base_url=address)
        page.goto("/teach")
        page.locator("#token").fill("correct-horse")
        page.keyboard.press("Enter")
        add(page, LINES[0])
        page.keyboard.press("Enter")
        expect(page.locator("#done")).to_have_text("1 sentence")
        assert sum(len(teacher.active(cell)) for cell in teacher.tagger.cells) == 1
        assert page.request.get("/api/grid").status == 401  # without the token
        page.goto("/")
        expect(page.locator("#to-teach")).to_be_visible()
        kept = "[JSON.stringify(localStorage), document.cookie, location.href, sessionStorage.getItem('token')]"
        *elsewhere, token = page.evaluate(kept)  # for this tab, until it is closed
        assert (token, "correct-horse" in "".join(elsewhere)) == ("correct-horse", False)
        page.close()
