"""Composed form in linear time, and words on one line."""

import time
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.unicode import MOST_MARKS, composed, is_composed, on_one_line

MARKS = "゙̣́"  # combining classes 220, 230 and 8: out of order


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_ordinary_words_get_the_composed_form_of_unicode(word: str):
    assert composed(word) == unicodedata.normalize("NFC", word)
    assert is_composed(word) == unicodedata.is_normalized("NFC", word)


@given(st.text(alphabet="ae" + MARKS, min_size=MOST_MARKS, max_size=400))
def test_composing_twice_changes_nothing_more_and_drops_no_mark(word: str):
    once = composed(word)
    assert composed(once) == once
    assert is_composed(once)
    kept = sorted(unicodedata.normalize("NFD", once).replace("\N{COMBINING GRAPHEME JOINER}", ""))
    assert kept == sorted(unicodedata.normalize("NFD", word))


def test_a_word_of_many_marks_is_quick():
    word = "a" + MARKS * 330_000  # a megabyte; sorted as one run it would take an hour
    started = time.process_time()
    text = Corpus.from_text([Sentence((word, "b"))])
    assert time.process_time() - started < 10
    assert len(text.words[0]) > 900_000


def test_words_on_one_line():
    assert on_one_line("a\tb\r\nc\u2028d\x85e\x0bf") == "a b c d e f"
    assert on_one_line("New York") == "New York"
