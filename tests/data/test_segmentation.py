"""Words and sentences stand in the original text where they say, in any script and with any white space."""

import time
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossfill.data import segmentation
from crossfill.data.segmentation import Segmenter, split_at_spaces
from crossfill.grid.sentence import Sentence

THAI = "ฉันเป็นนักเรียน ที่มหาวิทยาลัย ๑๒๓"
ARABIC = "مُحَمَّدٌ رَسُولٌ، في القاهرة؟ نعم."
EMOJI = "ok 👨‍👩‍👧 🇸🇳🇫🇷 👍🏽! Ja 🏴󠁧󠁢󠁥󠁮󠁧󠁿."
DEVANAGARI = "क्षत्रिय हूँ। नमस्ते दुनिया।"
ADLAM = "𞤀𞤣𞤤𞤢𞤥 𞤆𞤵𞤤𞤢𞤪. 𞤋𞤱𞤭!"
PARTS = [
    *THAI, *ARABIC, *EMOJI, *DEVANAGARI, *ADLAM, *normalize("NFD", "Péeyu Ñi Việt"), *"你好。日本語 ខ្មែរ မြန်မာ",
    *" \t\r\n\u00a0\u202f\u3000\u2028\x0b\x0c\x1c\x85\u200b\ufeff\u0301", "  ", "\r\n", "Dr.", "J.", "3,14",
]  # fmt: skip
LANGUAGES = ("wol", "tha", "arb", "hin", "eng", "fra", "jpn", "khm", "und")


def check(text: str, sentences: list[Sentence]) -> None:
    """Every word is a slice of the text; together, in order and without overlap, they are all but white space."""
    end = 0
    for sentence in sentences:
        assert sentence.original == text or not sentence
        for word, (start, stop), space in zip(sentence.words, sentence.offsets, sentence.spaces, strict=True):
            assert not text[end:start].strip()
            assert text[start:stop] == word
            assert not any(character.isspace() for character in word)
            assert space == (stop < len(text) and text[stop].isspace() and (start, stop) != sentence.offsets[-1])
            end = stop
    assert not text[end:].strip()


@pytest.mark.parametrize("language", LANGUAGES)
@settings(deadline=None, max_examples=60)
@given(text=st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
def test_words_are_slices_that_cover_mixed_scripts(language: str, text: str):
    check(text, list(Segmenter(language).split_text(text)))
    check(text, [Segmenter(language).split_words(text)])


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.sampled_from(LANGUAGES))
def test_words_are_slices_that_cover_any_text(text: str, language: str):
    check(text, list(Segmenter(language).split_text(text)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Dakar  mooy\tpéeyu\r\n\u00a0Senegaal.", ["Dakar", "mooy", "péeyu", "Senegaal", "."]),
        (normalize("NFD", "péeyu Việt"), [normalize("NFD", "péeyu"), normalize("NFD", "Việt")]),
        ("👨‍👩‍👧 🇸🇳ok", ["👨‍👩‍👧", "🇸🇳", "ok"]),
        ("𞤀𞤣𞤤𞤢𞤥 𞤆𞤵𞤤𞤢𞤪", ["𞤀𞤣𞤤𞤢𞤥", "𞤆𞤵𞤤𞤢𞤪"]),
        ("ฉันเป็นนักเรียน", ["ฉัน", "เป็น", "นักเรียน"]),
        ("مُحَمَّدٌ رَسُولٌ؟", ["مُحَمَّدٌ", "رَسُولٌ", "؟"]),
        ("12\u202f000 a \u0301b", ["12", "000", "a", "\u0301", "b"]),  # spaces that ICU keeps with their neighbours
    ],
)
def test_words(text: str, words: list[str]):
    assert list(Segmenter("wol").split_words(text).words) == words


def test_sentences_know_where_they_stand():
    text = "\ufeffDakar mooy.  Ñi fa!\r\n\r\n\tJ.\u202fDiop dafa tàng."
    first, second, third = Segmenter("eng").split_text(text)
    assert (second.text, second.offsets) == ("Ñi fa!", ((14, 16), (17, 19), (19, 20)))
    assert third.starts[0] == text.index("J.")  # after an initial, sentencex takes no other space than the common one
    assert first.source is text


def test_words_with_spaces_between_them_keep_their_places():
    text = "  Dakar mooy , \u00a0péeyu\r"
    sentence = split_at_spaces(text)
    assert sentence == Sentence(("Dakar", "mooy", ",", "péeyu"))
    assert [text[start:end] for start, end in sentence.offsets] == list(sentence.words)
    assert split_at_spaces("a b c", 2, 4).offsets == ((2, 3),)


@pytest.mark.parametrize("window", [7, 30, 100])
def test_windows_change_no_sentence_that_fits(window: int, monkeypatch: pytest.MonkeyPatch):
    text = "Dakar mooy. Péeyu la! Ñaata? " * 6
    expected = list(Segmenter("wol").split_text(text))
    monkeypatch.setattr(segmentation, "LONGEST_WINDOW", window)
    found = list(Segmenter("wol").split_text(text))
    check(text, found)
    assert (found == expected) == (window > 12)  # in the smallest window no sentence is whole


def test_a_line_of_quotes_does_not_hang():
    started = time.process_time()
    assert sum(len(sentence) for sentence in Segmenter("wol").split_text('"(“' * 100_000))
    assert time.process_time() - started < 10
