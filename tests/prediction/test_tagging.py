"""What a tagging shows of itself: in a notebook, as JSON values and as a data frame."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from crossfill.errors import ConfigError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind, Unit
from crossfill.prediction.tagging import HUES, LITTLE_DOUBT, MUCH_DOUBT, Span, Tagging, hue

STATIC = Path(__file__).parents[2] / "src" / "crossfill" / "web" / "static"
LABELS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")


def made(
    words: tuple[str, ...] = ("Dakar", "<b>", "mooy"), labels: tuple[str, ...] = ("B-LOC", "I-LOC", "O")
) -> Tagging:
    """A tagging whose words are less and less sure."""
    confidence = np.array([0.95, 0.7, 0.4])[: len(words)]
    rest = (1 - confidence) / (len(LABELS) - 1)
    p = np.repeat(rest[:, None], len(LABELS), axis=1)
    p[np.arange(len(words)), [LABELS.index(label) for label in labels]] = confidence
    sentence = Sentence(words, spaces=(True, False, True)[: len(words)])
    spans = (Span(0, 2, "LOC", "Dakar <b>", 0.6, 0, 9),) if words else ()
    entropy = -(p * np.log(p)).sum(-1)
    return Tagging(
        Cell("ner", "wol"), sentence, labels, p, Task("ner", LABELS), confidence, entropy, entropy / 2, spans
    )


class Shown(HTMLParser):
    """Text, titles and styles of some HTML, whose elements have to be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[dict[str, str | None]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.attributes.append(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_notebook_shows_words_labels_and_doubt():
    shown = Shown(made()._repr_html_())
    assert [text for text in shown.texts if text.strip()][1:] == [
        ", 3 words, mean confidence 68%, entropy " + f"{made().entropy.mean():.3f} nats", "Dakar", "LOC", "<b>", "mooy",
    ]  # fmt: skip
    titles = [a["title"] for a in shown.attributes if "title" in a]
    assert titles[0].startswith("Dakar: B-LOC, 95%; entropy")  # type: ignore[union-attr]
    styles = [a.get("style") or "" for a in shown.attributes]
    assert sum("dotted" in s for s in styles) == sum("wavy" in s for s in styles) == 1
    assert sum("oklch(.86 .09 250)" in s for s in styles) == 2  # both words of the span, and not the one outside
    assert "script" not in made()._repr_html_()


def test_no_words_show_nothing_but_the_cell():
    assert "no words" in made((), ())._repr_html_()


def test_colours_and_doubt_are_those_of_the_page():
    script = (STATIC / "colours.js").read_text()
    theirs = {name: int(value) for name, value in re.findall(r"\b([A-Z]+): (\d+)", script)}
    assert theirs == HUES
    limits = re.search(r"sure < ([\d.]+) \? \"most\" : sure < ([\d.]+)", (STATIC / "words.js").read_text())
    assert limits is not None
    assert (float(limits[1]), float(limits[2])) == (MUCH_DOUBT, LITTLE_DOUBT)
    labels = ["Fem", "Masc", "_"]
    assert hue("_", labels) is None
    assert hue("Masc", labels) == pytest.approx((20 + 137.508) % 360)  # the page's rule for other labels
    assert hue("B-PER", LABELS) == hue("I-PER", LABELS) == 25


def test_json_values_say_all():
    tagging = made()
    found = json.loads(json.dumps(tagging.to_dict(distributions=True)))
    assert found["text"] == "Dakar <b>mooy"
    assert [found["text"][a:b] for a, b in found["offsets"]] == found["words"] == list(tagging.sentence.words)
    assert found["spans"][0]["text"] == "Dakar <b>"
    assert found["labels"] == list(tagging.labels)
    for word, distribution in enumerate(found["distributions"]):
        assert distribution == pytest.approx(tagging.distribution(word), abs=1e-6)
    assert "distributions" not in tagging.to_dict()
    assert tagging.task.kind is TaskKind.SPANS


def test_data_frames_have_a_row_a_word():
    pandas = pytest.importorskip("pandas")
    frame = made().to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["text"]) == ["Dakar", "<b>", "mooy"]
    assert list(frame["label"]) == ["B-LOC", "I-LOC", "O"]
    np.testing.assert_array_equal(frame["confidence"], made().confidence)


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="pip install pandas"):
        made().to_pandas()


def whole() -> Tagging:
    """A sentence with one label in all."""
    sentence = Sentence(("Dakar", "<b>", "mooy"), ("sport",), (True, False, True), unit=Unit.SENTENCE)
    numbers = np.array([0.5])
    cell, p = Cell("topic", "wol"), np.array([[0.3, 0.7]])
    return Tagging(
        cell, sentence, ("sport",), p, Task("topic", ("news", "sport"), Unit.SENTENCE), p[:, 1], numbers, numbers
    )


def test_a_sentence_with_one_label_shows_it_once():
    shown = [text for text in Shown(whole()._repr_html_()).texts if text.strip()]
    assert shown == ["topic/wol", ", 1 sentence, mean confidence 70%, entropy 0.500 nats", "Dakar <b>mooy", "sport"]
    assert whole().to_dict()["label"] == "sport"
