"""Every word knows the file and the line that it was read from."""

import json

from hypothesis import given
from hypothesis import strategies as st

from crossfill.data.folder import load_grid
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from tests.data.folders import read_bio, write

CONLLU = """# sent_id = 1
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
4.1\tgran\tgran\tADJ\t_\t_\t_\t_\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_


# sent_id = 2
1\tSí\tsí\tINTJ\t_\t_\t0\troot\t_\t_
"""
BIO = "-DOCSTART-\tO\n\n# a comment\nDakar\tB-LOC\nmooy\tO\n\n\nSenegaal\tB-LOC\n"
SENTENCES = "text\tlabel\nGood day\tnews\n\nA match of two teams\tsport\n"


def lines_of(corpus: Corpus) -> dict[str, int]:
    """The line of every word."""
    places = [corpus.place(i, j) for i, sentence in enumerate(corpus) for j in range(len(sentence))]
    return {word: int(place.rpartition(":")[2]) for word, place in zip(corpus.words, places, strict=True)}


def test_words_know_their_lines_in_every_format_of_lines(tmp_path):
    jsonl = "".join(json.dumps({"words": [word], "labels": ["X"]}) + "\n" for word in ("one", "two"))
    write(tmp_path, {
        "pos/spa/train.conllu": CONLLU,
        "pos/fin/train.jsonl": jsonl,
        "ner/wol/train.bio": BIO,
        "topic/eng/train.tsv": SENTENCES,
    })  # fmt: skip
    for cache in (tmp_path / "cache", tmp_path / "cache", False):  # read, then taken from the cache, then without one
        grid = load_grid(tmp_path, cache=cache)
        spanish = grid.training(Cell("pos", "spa"))
        assert lines_of(spanish) == {"Vamos": 4, "nos": 5, "a": 7, "el": 8, "mar": 10, ".": 11, "Sí": 15}
        assert spanish.place(0, 4) == f"{tmp_path / 'pos/spa/train.conllu'}:10"
        assert lines_of(grid.training(Cell("pos", "fin"))) == {"one": 1, "two": 2}
        assert lines_of(grid.training(Cell("ner", "wol"))) == {"Dakar": 4, "mooy": 5, "Senegaal": 8}
        assert lines_of(grid.training(Cell("topic", "eng")))["match"] == 4


def test_places_stay_with_their_words(tmp_path):
    write(tmp_path, {"ner/wol/train.bio": BIO, "ner/wol/dev.bio": "Thiès\tB-LOC\n"})
    (splits,) = load_grid(tmp_path, cache=False)[Cell("ner", "wol")]
    both = Corpus.joined([splits.train, splits.dev, Corpus.from_sentences([Sentence(("a",), ("O",))])])
    assert both.place(0, 1) == f"{tmp_path / 'ner/wol/train.bio'}:5"
    assert both.take([2, 1]).place(0) == f"{tmp_path / 'ner/wol/dev.bio'}:1"
    assert both.take([2, 1]).place(1) == f"{tmp_path / 'ner/wol/train.bio'}:8"
    assert both.place(3) == ""


words = st.text("abcde", min_size=1, max_size=4)


@given(st.lists(st.lists(st.tuples(words, st.integers(0, 2)), min_size=1, max_size=5), min_size=1, max_size=6))
def test_the_line_of_a_word_holds_the_word(sentences):
    text = "".join("".join(f"{word}\tX\n" for word, _ in s) + "\n" * (1 + s[0][1]) for s in sentences)
    lines = text.split("\n")
    read = list(read_bio(text.encode(), "file"))
    assert [s.words for s in read] == [tuple(word for word, _ in s) for s in sentences]
    assert all(lines[n - 1] == f"{word}\tX" for s in read for word, n in zip(s.words, s.lines, strict=True))
