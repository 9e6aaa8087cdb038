"""Random splits, caps, and text that recurs within a corpus."""

from hypothesis import given
from hypothesis import strategies as st

from crossfill.data.splits import capped, eighty_ten_ten, separate_evaluation_text
from crossfill.grid.cells import Cell, Splits
from crossfill.grid.sentence import Corpus, Sentence


def corpus(*texts: str, label: str = "X") -> Corpus:
    return Corpus.from_sentences(Sentence(tuple(t.split(" ")), (label,) * len(t.split(" "))) for t in texts)


@given(st.integers(0, 120), st.integers(0, 3))
def test_eighty_ten_ten(n: int, seed: int):
    whole = corpus(*(f"w{i:03}" for i in range(n)))
    parts = eighty_ten_ten(whole, seed)
    texts = [[s.text for s in part] for part in parts]
    assert sorted(text for part in texts for text in part) == [s.text for s in whole]
    assert all(part == sorted(part) for part in texts)
    assert [len(part) for part in texts] == [n * 8 // 10, n * 9 // 10 - n * 8 // 10, n - n * 9 // 10]
    assert texts == [[s.text for s in part] for part in eighty_ten_ten(whole, seed)]


def test_caps_draw_by_seed_and_keep_order():
    whole = corpus(*(f"w{i:03}" for i in range(50)))
    draws = [[s.text for s in capped(whole, 10, seed)] for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    assert draws[0] == sorted(draws[0])
    assert capped(whole, 50, 0) is capped(whole, None, 0) is whole


def test_text_is_drawn_by_itself_and_not_by_its_place():
    whole = corpus(*(f"w{i:03}" for i in range(50)))
    turned = corpus(*(f"w{i:03}" for i in reversed(range(50))), label="Y")
    for one, other in zip(eighty_ten_ten(whole, 3), eighty_ten_ten(turned, 3), strict=True):
        assert [s.text for s in one] == [s.text for s in other][::-1]
    assert [s.text for s in eighty_ten_ten(whole, 3)[0]] != [s.text for s in eighty_ten_ten(whole, 4)[0]]


def test_sentences_that_recur_in_a_later_split_are_left_out_of_the_earlier():
    splits = Splits(
        "x",
        train=corpus("a b", "c", "a", "d e"),
        dev=corpus("c", "g", label="Y"),
        test=corpus("d e", "c"),
        surplus=corpus("d e", "f", "g"),
    )
    apart, crossings = separate_evaluation_text({Cell("pos", "wol"): (splits,)})
    clean = apart[Cell("pos", "wol")][0]
    assert [s.text for s in clean.train] == ["a b", "a"]
    assert [s.text for s in clean.dev] == ["g"]
    assert [s.text for s in clean.surplus] == ["f"]
    assert clean.test is splits.test
    assert clean.left_out == crossings[0].left_out.total() == 5
