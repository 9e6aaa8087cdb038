"""Sentences and corpora keep what they were given."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfill.errors import DataError
from crossfill.grid.cells import Inventory
from crossfill.grid.sentence import EMPTY, Corpus, Sentence, on_one_line

SPACED = Sentence(("Dakar", "mooy", "péey"), ("B-LOC", "O", "O"))
UNSPACED = Sentence(("你", "好", "!"), ("X", "X", "Y"), (False, False, True))


def test_text_is_rebuilt_from_words_and_spaces():
    assert SPACED.text == "Dakar mooy péey"
    assert UNSPACED.text == "你好!"


def test_corpus_gives_sentences_back():
    corpus = Corpus.from_sentences([SPACED, UNSPACED])
    assert [s.words for s in corpus] == [SPACED.words, UNSPACED.words]
    assert corpus[-1].text == "你好!"
    assert corpus[0].text == SPACED.text
    assert corpus.n_words == 6
    assert list(corpus[1:].labels) == ["X", "X", "Y"]
    assert len(EMPTY) == 0
    with pytest.raises(IndexError):
        corpus[2]


def test_the_hash_of_a_text_depends_on_words_spaces_and_bounds_but_not_on_labels():
    corpora = [
        [SPACED],
        [Sentence(("Dakar", "mooy", "pée"), SPACED.labels)],
        [Sentence(SPACED.words, SPACED.labels, (True, False, True))],
        [Sentence(SPACED.words[:2], SPACED.labels[:2]), Sentence(SPACED.words[2:], SPACED.labels[2:])],
    ]
    hashes = {Corpus.from_sentences(sentences).text_hash for sentences in corpora}
    assert len(hashes) == len(corpora)
    assert Corpus.from_sentences([Sentence(SPACED.words, (), (True, True, True))]).text_hash in hashes


def test_wrong_number_of_labels_is_refused():
    with pytest.raises(DataError, match="expected 2 labels, one per word, got 1"):
        Sentence(("a", "b"), ("X",))
    with pytest.raises(DataError, match="labels in every sentence"):
        Corpus.from_sentences([SPACED, Sentence(("a",))])
    with pytest.raises(DataError, match="labels in every corpus, got them in 1 of 2"):
        Corpus.joined([Corpus.from_sentences([SPACED]), Corpus.from_sentences([Sentence(("a",))])])


def test_text_is_composed_and_without_labels():
    decomposed = "pe\u0301ey"
    sentences = [Sentence(("mooy", decomposed), ("X", "Y")), Sentence((decomposed,)), Sentence(("péey",))]
    corpus = Corpus.from_text(sentences)
    assert list(corpus.words) == ["mooy", "péey", "péey", "péey"]
    assert corpus.words.vocabulary == ("mooy", "péey")
    assert not len(corpus.labels)
    whole = Corpus.from_sentences([SPACED])
    assert whole.composed() is whole


def test_a_corpus_is_not_turned_into_sentences_on_the_way(monkeypatch: pytest.MonkeyPatch):
    """Joining, composing and looking up labels work on columns."""
    corpus = Corpus.from_sentences([SPACED, UNSPACED])
    inventory = Inventory.of({"t": tuple(sorted(corpus.labels.distinct()))}, ("wol",))

    def refuse(*_: object) -> None:
        raise AssertionError("a sentence was made")

    monkeypatch.setattr(Sentence, "__post_init__", refuse)
    assert Corpus.joined([corpus, corpus]).n_words == 12
    assert inventory.label_ids("t", corpus.labels).tolist() == [0, 1, 1, 2, 2, 3]
    assert corpus.composed().n_words == 6
    with pytest.raises(DataError, match="t: unknown label 'Y'"):
        Inventory.of({"t": ("B-LOC", "O", "X")}, ("wol",)).label_ids("t", corpus.labels)


words = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1, max_size=3)
rows = st.lists(st.tuples(words, st.sampled_from("XYZ"), st.booleans()), min_size=1, max_size=4)


@given(st.lists(rows, max_size=5), st.data())
def test_columns_behave_as_the_sentences_do(drawn: list[list[tuple[str, str, bool]]], data: st.DataObject):
    kept = [Sentence(*(tuple(column) for column in zip(*sentence, strict=True))) for sentence in drawn]
    corpus = Corpus.from_sentences(kept)
    assert list(corpus) == kept
    assert list(corpus.words) == [word for s in kept for word in s.words]
    assert corpus.words.counts() == Counter(corpus.words)
    assert corpus.labels.distinct() == {label for s in kept for label in s.labels}
    chosen = data.draw(st.lists(st.integers(0, len(kept) - 1), max_size=6)) if kept else []
    assert list(corpus.take(chosen)) == [kept[i] for i in chosen]
    assert corpus.take(chosen).text_hash == Corpus.from_sentences([kept[i] for i in chosen]).text_hash
    joined = Corpus.joined([corpus.take(chosen), corpus])
    assert list(joined) == [*(kept[i] for i in chosen), *kept]
    assert len(joined.words.vocabulary) == len(joined.words.distinct())


def test_a_sentence_knows_where_its_words_stand():
    text = "  Dakar,\t mooy"
    cut = Sentence.cut(text, [(2, 7), (7, 8), (10, 14)])
    assert (cut.words, cut.spaces, cut.text) == (("Dakar", ",", "mooy"), (False, True, False), "Dakar, mooy")
    assert (cut.original, cut.offsets) == (text, ((2, 7), (7, 8), (10, 14)))
    assert cut == Sentence(cut.words, (), cut.spaces)  # the same words elsewhere are the same sentence
    assert len({cut, Sentence(cut.words, (), cut.spaces)}) == 1
    assert Sentence.cut("  ", []) == Sentence(())


@given(st.lists(st.tuples(words, st.booleans()), max_size=5))
def test_without_a_source_words_stand_in_the_rebuilt_text(drawn: list[tuple[str, bool]]):
    forms, spaces = tuple(word for word, _ in drawn), tuple(space for _, space in drawn)
    for sentence in (Sentence(forms), Sentence(forms, (), spaces)):
        assert sentence.original == sentence.text
        assert [sentence.text[start:end] for start, end in sentence.offsets] == list(forms)


def test_words_that_do_not_stand_in_the_source_are_refused():
    with pytest.raises(DataError, match="expected 'mooy' at character 6 of the text, got 'muy'"):
        Sentence(("Dakar", "mooy"), (), (), "Dakar muy", (0, 6))
    with pytest.raises(DataError, match="expected 'a' at character 1 of the text or later, got 0"):
        Sentence(("a", "a"), (), (), "aa", (0, 0))
    with pytest.raises(DataError, match="expected 2 starts, one per word, got 1"):
        Sentence(("a", "b"), (), (), "ab", (0,))


def test_words_on_one_line():
    assert on_one_line("a\tb\r\nc\u2028d\x85e\x0bf") == "a b c d e f"
    assert on_one_line("New York") == "New York"
