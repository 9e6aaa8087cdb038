"""Words, pieces and windows against loops over characters."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crossfill.encoders.alignment import NO_PIECE, PieceRange, align, rebuild, windows
from crossfill.grid.sentence import Sentence


@given(st.lists(st.text(max_size=4), max_size=6), st.data())
def test_text_is_that_of_the_sentence_and_words_stand_where_they_are_said_to(words: list[str], data: st.DataObject):
    spaces = data.draw(st.one_of(st.just([]), st.lists(st.booleans(), min_size=len(words), max_size=len(words))))
    text = rebuild(tuple(words), tuple(spaces))
    assert text.string.rstrip(" ") == Sentence(tuple(words), (), tuple(spaces)).text.rstrip(" ")
    assert [text.string[a:b] for a, b in zip(text.starts, text.ends, strict=True)] == words


@given(st.lists(st.text("ab", max_size=3), min_size=1, max_size=6), st.data())
def test_words_get_the_pieces_they_share_a_character_with(words: list[str], data: st.DataObject):
    text = rebuild(tuple(words), tuple(data.draw(st.booleans()) for _ in words))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text.string)))) | {0, len(text.string)})
    bounds = np.array(list(pairwise(cuts)), dtype=np.int64).reshape(-1, 2)
    blank = np.array([not text.string[a:b].strip() for a, b in bounds], dtype=np.bool_)
    span = align(text, bounds[:, 0], bounds[:, 1], blank)
    for start, end, first, last in zip(text.starts, text.ends, span.first, span.last, strict=True):
        mine = [i for i, (a, b) in enumerate(bounds) if max(a, start) < min(b, end) and not blank[i]]
        assert (first, last) == ((mine[0], mine[-1]) if mine else (NO_PIECE, NO_PIECE))


@given(st.lists(st.integers(0, 14), min_size=1, max_size=20), st.integers(3, 9), st.integers(0, 2))
def test_every_word_is_whole_in_its_window_where_one_can_hold_it(lengths: list[int], capacity: int, overlap: int):
    ends = np.cumsum(lengths)
    empty = np.array(lengths) == 0
    span = PieceRange(np.where(empty, NO_PIECE, ends - lengths), np.where(empty, NO_PIECE, ends - 1))
    made = windows(span, int(ends[-1]), capacity, overlap)
    assert ((made.starts >= 0) & (made.ends <= max(capacity, ends[-1]))).all()
    assert (made.ends - made.starts <= capacity).all()
    for word, length in enumerate(lengths):
        if length:
            start, end = made.starts[made.window_of[word]], made.ends[made.window_of[word]]
            assert start <= span.first[word]
            assert min(span.last[word], span.first[word] + capacity - 1) < end
