"""Words and sentences are cut as treebanks cut them, in any text."""

import json
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossfill.checkpoint import SEGMENTATION
from crossfill.data import boundaries
from crossfill.data.boundaries import Segmentation, Weights
from crossfill.data.conllu import blank_rows, parse
from crossfill.data.labels import LabelColumn
from crossfill.data.segmentation import Segmenter
from crossfill.errors import CheckpointError
from crossfill.grid.sentence import Sentence
from crossfill.tagger.model_folder import load_segmentation, save_segmentation
from tests.data.test_segmentation import PARTS, check

PEOPLE, THINGS, HOURS = ("Awa", "Ada", "Ben", "Eve"), ("cat", "dog", "hat"), ("5", "7", "11")
TREEBANK = "".join(
    f"""1\t{who}\t_\t_\t_\t_\t_\t_\t_\t_
2\tdid\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\tn't\t_\t_\t_\t_\t_\t_\t_\t_
4\tsee\t_\t_\t_\t_\t_\t_\t_\t_
5-6\tdu\t_\t_\t_\t_\t_\t_\t_\t_
5\tde\t_\t_\t_\t_\t_\t_\t_\t_
6\tle\t_\t_\t_\t_\t_\t_\t_\t_
7-8\twe{what}\t_\t_\t_\t_\t_\t_\t_\t_
7\twe\t_\t_\t_\t_\t_\t_\t_\t_
8\t{what}\t_\t_\t_\t_\t_\t_\t_\t_
9\tat\t_\t_\t_\t_\t_\t_\t_\t_
10\t{hour}\t_\t_\t_\t_\t_\t_\t_\t_
11\tp.m.\t_\t_\t_\t_\t_\t_\t_\t_
12\ttoday\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
13\t.\t_\t_\t_\t_\t_\t_\t_\t_

"""
    for who in PEOPLE
    for what in THINGS
    for hour in HOURS
)
TEXT = "Eve didn't see du\nwehat at 5 p.m. today. Ada didn't see du wedog at 11 p.m. today."
WORDS = "did n't see de le we hat at 5 p.m. today ."


def sentences(treebank: str = TREEBANK) -> list[Sentence]:
    return [parsed.sentence(LabelColumn("pos")) for parsed in parse(treebank.encode(), "x")]


@pytest.fixture(scope="module")
def learnt() -> Segmentation:
    """What the made treebank teaches of Wolof, and one with spaces in its words of Vietnamese."""
    spaced = [Sentence(("sinh viên", "ở", "Hà Nội", "."), (), (True, True, False, True)) for _ in range(20)]
    found = Segmentation.fit({"wol": sentences(), "vie": spaced, "fin": [Sentence(("a", "b"))] * 20})
    assert found is not None
    return found


def test_text_is_cut_as_the_treebank_cuts_it(learnt: Segmentation):
    first, second = Segmenter("wol", learnt).split_text(TEXT)
    assert " ".join(first.words[1:]) == WORDS
    assert [TEXT[a:b] for a, b in first.offsets][3:9] == ["see", "du", "du", "we", "hat", "at"]
    assert second.words[0] == "Ada"
    assert learnt.languages.keys() == {"wol", "vie"}  # text with a space after every word teaches nothing
    rows = ["\t".join(row[:2]) + row[9] for row in blank_rows(first)]
    assert rows[1:7] == ["2\tdidSpaceAfter=No", "3\tn't_", "4\tsee_", "5-6\tdu_", "5\tde_", "6\tle_"]
    (vietnamese,) = Segmenter("vie", learnt).split_text("ở Hà Nội sinh viên.")
    assert vietnamese.words == ("ở", "Hà Nội", "sinh viên", ".")


def test_words_of_other_languages_are_cut_by_rules(learnt: Segmentation):
    text = "Eve didn't see du wecat at 5 p.m. today. Ada didn't see it."
    words = [word for sentence in Segmenter("fra", learnt).split_text(text) for word in sentence.words]
    assert words == list(Segmenter("fra").split_words(text).words)
    assert len(list(Segmenter("fra", learnt).split_text(text))) == 2  # as in Wolof, after p.m., too


def test_contractions_stay_whole_where_their_words_have_no_place(learnt: Segmentation):
    first, _ = Segmenter("wol", learnt, whole=True).split_text(TEXT)
    assert " ".join(first.words[1:]) == WORDS.replace("de le", "du")
    assert [TEXT[a:b] for a, b in first.offsets] == list(first.words)


def test_a_folder_keeps_what_was_learnt(learnt: Segmentation, tmp_path: Path):
    save_segmentation(tmp_path, learnt)
    again = load_segmentation(tmp_path)
    assert again is not None
    assert again.cut(TEXT, "wol") == learnt.cut(TEXT, "wol")
    assert load_segmentation(tmp_path / "other") is None


@pytest.mark.parametrize(
    "change",
    [
        {"ids": [2, 1], "values": [1, 1]},
        {"ids": [1], "values": []},
        {"ids": [-1], "values": [1]},
        {"ids": [2**32], "values": [1]},
        {"ids": [1], "values": [10**30]},
        {"ids": [1], "values": [float("inf")]},
        {"ids": "1", "values": [1]},
        None,
    ],
)
def test_a_hostile_folder_is_refused(change: object, learnt: Segmentation, tmp_path: Path):
    save_segmentation(tmp_path, learnt)
    path = tmp_path / SEGMENTATION
    values = json.loads(path.read_text())
    values["languages"]["wol"]["words"] = change
    path.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match="what cuts raw text into words"):
        load_segmentation(tmp_path)


def test_endings_that_take_more_than_there_is_are_not_used(learnt: Segmentation):
    rules = {"^a": (99, ["", "b"]), "b": (1, ["", ""]), "^c": (0, [])}
    own = boundaries.LearntCuts(endings=rules)
    assert [own.contracted(token) for token in ("a", "xb", "c", "d")] == [[], [], [], []]


@settings(deadline=None, max_examples=60)
@given(text=st.lists(st.sampled_from([*PARTS, "didn't ", "du ", "wecat "]), max_size=30).map("".join))
@pytest.mark.parametrize("language", ["wol", "vie", "tha"])
def test_words_cover_any_text(language: str, text: str, learnt: Segmentation):
    found = list(Segmenter(language, learnt, whole=True).split_text(text))
    if language != "vie":  # there, words hold spaces
        check(text, found)
    for sentence in Segmenter(language, learnt).split_text(text):
        places = sentence.offsets
        assert all(a < b for a, b in places)
        assert all(after >= before for before, after in pairwise(places))
        assert (
            "".join(token for *_, token in sentence.tokens).split()
            == "".join(
                text[a:b] for a, b in dict.fromkeys((places[i][0], places[j - 1][1]) for i, j, _ in sentence.tokens)
            ).split()
        )


def test_nothing_is_cut_within_a_character():
    _, features = boundaries._Text("👨\u200d👩 pe\u0301e", "wol").word_places(spaced=False)
    ids = sorted({*features.ravel().tolist()})
    cut_all = boundaries.LearntCuts(words=Weights(ids, [64] * len(ids)))
    (tokens,) = Segmentation(cut_all, {"wol": boundaries.LearntCuts()}).cut("👨\u200d👩 pe\u0301e", "wol", one=True)
    assert ["👨\u200d👩 pe\u0301e"[a:b] for (a, b), _ in tokens] == ["👨\u200d👩", "p", "e\u0301", "e"]


def test_a_place_has_the_features_of_its_surroundings_wherever_it_stands():
    def features(text: str, place: int) -> np.ndarray:
        places, found = boundaries._Text(text, "eng").word_places(spaced=False)
        return found[places.left.tolist().index(place)]

    assert (features("Awa didn't see.", 7) == features("Ben said: Awa didn't see.", 17)).mean() > 0.95
    assert (features("Awa didn't see.", 7) == features("Awa didn't see.", 6)).mean() < 0.2


def test_weights_are_those_of_follow_the_regularised_leader():
    """Against a loop over the formula of McMahan et al. (2013), feature by feature."""
    random = np.random.default_rng(1)
    features = random.integers(0, 12, (600, 3)).astype(np.uint64) + np.arange(3, dtype=np.uint64) * np.uint64(100)
    wanted = (features[:, 0] < 6) ^ (random.random(600) < 0.1)
    known = random.normal(size=600)
    z, n, weights = dict.fromkeys(map(int, np.unique(features)), 0.0), {}, {}
    n = dict.fromkeys(z, 0.0)
    weights = dict.fromkeys(z, 0.0)
    order_of = np.random.default_rng(0)
    for _ in range(boundaries._PASSES):
        order = order_of.permutation(600)
        for i in range(0, 600, boundaries._BATCH):
            gradients = dict.fromkeys(z, 0.0)
            for row in order[i : i + boundaries._BATCH]:
                score = sum(weights[int(f)] for f in features[row]) + known[row]
                for f in features[row]:
                    gradients[int(f)] += 1 / (1 + np.exp(-score)) - wanted[row]
            for f, g in gradients.items():
                rate = (np.sqrt(n[f] + g * g) - np.sqrt(n[f])) / boundaries._STEP
                z[f] += g - rate * weights[f]
                n[f] += g * g
                small = abs(z[f]) <= boundaries._SPARSENESS
                shrunk = z[f] - np.sign(z[f]) * boundaries._SPARSENESS
                weights[f] = 0.0 if small else -shrunk * boundaries._STEP / (1 + np.sqrt(n[f]))
    fitted = Weights.fit(features, wanted, known)
    expected = {f: round(w * boundaries._UNIT) for f, w in weights.items() if round(w * boundaries._UNIT)}
    assert dict(zip(fitted.ids, fitted.values, strict=True)) == expected
    assert fitted.scores(features) == pytest.approx([sum(weights[int(f)] for f in row) for row in features], abs=0.03)


def test_raw_text_is_that_of_the_sentences():
    treebank = boundaries._Treebank(sentences()[:2], "wol")
    assert treebank.raw.text.startswith("Awa didn't see du wecat at 5 p.m. today. Awa didn't")
    assert treebank.tokens[11:17] == ["Awa", "did", "n't", "see", "du", "wecat"]
    assert treebank.firsts == [0, treebank.raw.text.index("Awa", 3)]
    assert treebank.words[4:6] == [("de", "le"), ("we", "cat")]


def test_endings_are_learnt_from_longer_words():
    tokens = [("do", ("de", "o")), ("todo", ("todo",)), ("lado", ("lado",)), ("facelo", ("facer", "lo"))]
    tokens += [("velo", ("ver", "lo")), ("Do", ("De", "o"))]
    made = [Sentence(words, surfaces=(token, *[""] * (len(words) - 1))) for token, words in tokens]
    rules = boundaries.LearntCuts(endings=boundaries._Treebank(made, "glg").endings())
    assert rules.contracted("Do") == ["De", "o"]
    assert rules.contracted("rodo") == []
    assert rules.contracted("collelo") == ["coller", "lo"]


def test_long_text_takes_seconds(learnt: Segmentation):
    started = time.process_time()
    assert sum(map(len, Segmenter("wol", learnt).split_text("Awa didn't " * 20_000)))
    assert sum(map(len, Segmenter("wol", learnt).split_text('"(“' * 50_000)))
    assert time.process_time() - started < 20
