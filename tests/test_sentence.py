"""Sentences and corpora keep what they were given."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfill.errors import DataError
from crossfill.sentence import EMPTY, Corpus, Sentence

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


def test_content_hash_depends_on_every_column():
    corpora = [
        [SPACED],
        [Sentence(("Dakar", "mooy", "pée"), SPACED.labels)],
        [Sentence(SPACED.words, ("B-LOC", "O", "B-LOC"))],
        [Sentence(SPACED.words, SPACED.labels, (True, False, True))],
        [Sentence(SPACED.words[:2], SPACED.labels[:2]), Sentence(SPACED.words[2:], SPACED.labels[2:])],
    ]
    hashes = {Corpus.from_sentences(sentences).content_hash() for sentences in corpora}
    assert len(hashes) == len(corpora)
    assert Corpus.from_sentences([SPACED]).content_hash() in hashes


def test_wrong_number_of_labels_is_refused():
    with pytest.raises(DataError, match="expected 2 labels, one per word, got 1"):
        Sentence(("a", "b"), ("X",))
    with pytest.raises(DataError, match="labels in every sentence"):
        Corpus.from_sentences([SPACED, Sentence(("a",))])


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
    assert corpus.take(chosen).content_hash() == Corpus.from_sentences([kept[i] for i in chosen]).content_hash()
