"""The corpus that ships with crossfill: every file is whole, valid, and says the same as the others."""

import unicodedata
from collections import Counter
from importlib.resources import files
from itertools import takewhile

import pytest

from crossfill.data.labels import UPOS
from crossfill.data.parallel_corpus import TASKS, parallel_grid, parallel_languages, parallel_sentences
from crossfill.errors import DataError
from crossfill.grid.cells import Cell

SCRIPTS = {
    "ara": {"ARABIC"},
    "ell": {"GREEK"},
    "heb": {"HEBREW"},
    "hin": {"DEVANAGARI"},
    "jpn": {"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "CJK"},
    "kor": {"HANGUL"},
    "rus": {"CYRILLIC"},
    "zho": {"CJK"},
}
"""Scripts by language, as the first words of the names of their characters; Latin elsewhere."""
N_SENTENCES, MOST_BYTES = 60, 300_000
LANGUAGES = parallel_languages()


def entities(labels):
    """The start, the end and the type of each entity."""
    starts = [i for i, label in enumerate(labels) if label.startswith("B-")]
    lengths = [len(list(takewhile(lambda label: label.startswith("I-"), labels[start + 1 :]))) for start in starts]
    return [(start, start + 1 + more, labels[start][2:]) for start, more in zip(starts, lengths, strict=True)]


def types(sentence):
    """The entity types of a sentence, with their number."""
    return Counter(kind for _, _, kind in entities(sentence.labels))


def test_there_are_a_dozen_languages_and_more_in_four_scripts_and_more():
    assert len(LANGUAGES) >= 13
    assert set(SCRIPTS) < set(LANGUAGES)
    assert len(set().union(*SCRIPTS.values())) >= 5


def test_the_corpus_is_small():
    assert sum(len(file.read_bytes()) for file in files("crossfill.data").joinpath("parallel").iterdir()) < MOST_BYTES


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_file_has_all_sentences_with_valid_labels(language):
    pos, ner = (parallel_sentences(task, language) for task in TASKS)
    assert len(pos) == len(ner) == N_SENTENCES
    for classes, names in zip(pos, ner, strict=True):
        assert classes.words == names.words
        assert set(classes.labels) <= set(UPOS), classes.text
        for before, label in zip(("O", *names.labels), names.labels, strict=False):
            assert label == "O" or label in {f"{part}-{kind}" for part in "BI" for kind in ("PER", "LOC", "ORG")}
            if label.startswith("I-"):
                assert before[2:] == label[2:], names.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_names_the_same_kinds_of_things_as_in_english(language):
    for here, english in zip(parallel_sentences("ner", language), parallel_sentences("ner", "eng"), strict=True):
        assert types(here) == types(english), f"{here.text} / {english.text}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_of_names_are_proper_nouns_or_belong_to_them(language):
    pos, ner = (parallel_sentences(task, language) for task in TASKS)
    for classes, names in zip(pos, ner, strict=True):
        for start, end, _ in entities(names.labels):
            assert "PROPN" in classes.labels[start:end], classes.text
            assert set(classes.labels[start:end]) <= {"PROPN", "NOUN", "ADJ", "ADP", "DET", "PUNCT"}, classes.text
        punctuated = [label == "PUNCT" for label in classes.labels]
        assert punctuated == [unicodedata.category(word[0])[0] == "P" and len(word) == 1 for word in classes.words]


@pytest.mark.parametrize("language", LANGUAGES)
def test_letters_are_of_the_language_and_composed(language):
    for sentence in parallel_sentences("pos", language):
        assert unicodedata.is_normalized("NFC", sentence.text)
        letters = [character for word in sentence.words for character in word if character.isalpha()]
        found = {unicodedata.name(character).split(" ")[0] for character in letters}
        assert found <= SCRIPTS.get(language, {"LATIN"}), sentence.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_offsets_rebuild_the_text(language):
    raw = files("crossfill.data").joinpath("parallel", f"{language}.txt").read_text(encoding="utf-8")
    for line, sentence in zip(raw.splitlines(), parallel_sentences("ner", language), strict=True):
        assert sentence.text == " ".join(item.split("/")[0] for item in line.split(" ")).replace(" ~", "")
        assert tuple(sentence.text[start:end] for start, end in sentence.offsets) == sentence.words
        assert "  " not in sentence.text
        assert sentence.text == sentence.text.strip()


def test_no_translation_of_a_test_sentence_trains():
    grid = parallel_grid()
    assert grid.languages == LANGUAGES
    assert grid.tasks == tuple(sorted(TASKS))
    numbers = {
        language: {s.words: i for i, s in enumerate(parallel_sentences("pos", language))} for language in LANGUAGES
    }
    roles = {}
    for cell in grid.cells:
        (splits,) = grid[cell]
        sizes = {name: len(part) for name, part in splits.parts.items()}
        assert sizes == {"train": 36, "dev": 6, "test": 18, "surplus": 0}
        for name, part in splits.parts.items():
            for sentence in part:
                roles.setdefault(numbers[cell.language][sentence.words], set()).add(name)
    assert len(roles) == N_SENTENCES
    assert all(len(names) == 1 for names in roles.values())


def test_english_reads_as_written():
    sentence = parallel_sentences("ner", "en")[44]
    assert sentence.text == "Dimitris Kostas works at the University of Athens."
    assert entities(sentence.labels) == [(0, 2, "PER"), (5, 8, "ORG")]
    assert parallel_grid()[Cell("ner", "eng")][0].test[0].text == "My brother works for Nordwind."


def test_what_is_not_there_is_refused():
    with pytest.raises(DataError, match="wol"):
        parallel_sentences("pos", "wol")
    with pytest.raises(DataError, match="chunk"):
        parallel_sentences("chunk", "eng")
