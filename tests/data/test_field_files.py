"""Files of ELAN and FLEx: read as corpora and as text, tagged in place, and refused where they are broken."""

from itertools import chain
from pathlib import Path
from unicodedata import normalize
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfill.data.eaf import OURS, EafText
from crossfill.data.flextext import GUESSED, FlexText
from crossfill.data.folder import load_grid, read_file, read_folder
from crossfill.data.readers import READERS, Reading
from crossfill.data.reading import FileNotes, ReadingHints
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.task import Unit
from tests.data.field_texts import Words, elan, flex, texts

STORY = [[("Dakar", "n"), ("mooy", "v"), ("péeyu", "n"), (".", "")], [("Demal", "v"), ("!", "")]]
SPOKEN = {"ANA": STORY, "BOB & CO": [[("Waaw", "n")]]}


def read(content: str, suffix: str, task: str = "pos", **hints: str) -> Reading:
    named = (
        ReadingHints(texts=(hints["text"],), label=hints["label"], language="wol")
        if hints
        else ReadingHints(language="wol")
    )
    return READERS[suffix](content.encode(), f"talk{suffix}", task, named)


def tags(file: EafText | FlexText, task: str = "pos") -> list[dict[str, list[str]]]:
    """Labels that show which word they are of, and their confidence."""
    return [
        {task: [f"{i}<{word}>" for word in one.sentence.words], f"{task}-confidence": ["0.5000"] * len(one.sentence)}
        for i, one in enumerate(file.sentences)
    ]


def without_ours(data: bytes) -> str:
    """The file without what was added, as any XML library sees it, but for white space between elements."""
    root = ElementTree.fromstring(data)
    for parent in list(root.iter()):
        for child in list(parent):
            added = child.get("TIER_ID", child.get("LINGUISTIC_TYPE_ID", "")).startswith(OURS)
            if added or child.get("analysisStatus") == GUESSED or child.get("STEREOTYPE") == "Symbolic_Association":
                parent.remove(child)
    return ElementTree.canonicalize(ElementTree.tostring(root, encoding="unicode"), strip_text=True)


@given(st.dictionaries(st.sampled_from(["A", "B b", "<&>"]), texts, min_size=1), st.booleans(), st.booleans())
def test_elan_files_keep_all_but_our_tiers(speakers: dict[str, list[Words]], words: bool, timed: bool):
    data = elan(speakers, words, timed).encode()
    file = EafText(data, "talk.eaf", "wol", "word" if words else "tx")
    given_words = [[word for word, _ in sentence] for sentences in speakers.values() for sentence in sentences]
    if words and file.has_words:
        assert [list(one.sentence.words) for one in file.sentences] == given_words
    assert ["".join(one.sentence.words) for one in file.sentences] == ["".join(sentence) for sentence in given_words]
    once = file.tagged(tags(file), Unit.WORD)
    assert without_ours(once) == without_ours(data)
    again = EafText(once, "talk.eaf", "wol", "word" if words else "tx")
    assert [one.sentence for one in again.sentences] == [one.sentence for one in file.sentences]
    assert again.tagged(tags(again), Unit.WORD) == once
    # ids are unique, and every reference leads to an annotation
    root = ElementTree.fromstring(once)
    ids = [element.get("ANNOTATION_ID") for element in root.iter() if element.get("ANNOTATION_ID")]
    assert len(set(ids)) == len(ids)
    assert {e.get("ANNOTATION_REF") for e in root.iter("REF_ANNOTATION")} <= set(ids)
    back = [
        [value.text for value in tier.iter("ANNOTATION_VALUE")]
        for tier in root.iter("TIER")
        if tier.get("TIER_ID", "").startswith(f"{OURS}pos@")
    ]
    assert sorted(chain.from_iterable(back)) == sorted(tag for one in tags(file) for tag in one["pos"])


@given(texts, st.sampled_from(["\n", "\r\n"]))
def test_flex_files_keep_all_but_our_items(sentences: list[Words], line_end: str):
    data = flex(sentences, line_end).encode()
    file = FlexText(data, "talk.flextext", "wol", "wol")
    assert [list(one.sentence.words) for one in file.sentences] == [[word for word, _ in one] for one in sentences]
    once = file.tagged(tags(file), Unit.WORD)
    assert without_ours(once) == without_ours(data)
    again = FlexText(once, "talk.flextext", "wol", "wol")
    assert again.tagged(tags(again), Unit.WORD) == once
    assert again.labels(FileNotes("x")) == file.labels(FileNotes("x"))
    found = [item.text for item in ElementTree.fromstring(once).iter("item") if item.get("analysisStatus") == GUESSED]
    assert found[::2] == [tag for one in tags(file) for tag in one["pos"]]


@given(texts)
def test_labels_of_words_are_read(sentences: list[Words]):
    labelled = [s for s in sentences if any(label for _, label in s)]
    if not labelled:
        return
    reading = read(elan({"A": sentences}), ".eaf", text="word", label="pos")
    assert [list(zip(s.words, s.labels, strict=True)) for s in reading.corpus] == [
        [(normalize("NFC", word), label) for word, label in sentence] for sentence in labelled
    ]


def test_elan_files_are_corpora():
    reading = read(elan(SPOKEN), ".eaf")
    assert reading.columns == "words in tier 'word@ANA', 'word@BOB & CO', labels in tier 'pos@ANA', 'pos@BOB & CO'"
    first = reading.corpus[0]
    assert (first.words, first.labels) == (("Dakar", "mooy", "péeyu", "."), ("n", "v", "n", ""))
    assert len(reading.corpus) == 3


def test_names_without_a_tag_are_outside():
    named = [[("Dakar", "B-LOC"), ("mooy", ""), ("Ndakaaru", "B-LOC")]]
    for text, suffix in ((elan({"A": named}, tasks="ner"), ".eaf"), (flex(named, items="ner"), ".flextext")):
        assert read(text, suffix, "ner").corpus[0].labels == ("B-LOC", "O", "B-LOC")


def test_words_with_times_alone_are_cut_at_pauses():
    times = [(0, 300), (300, 700), (1300, 1500)]
    slots = "".join(
        f'<TIME_SLOT TIME_SLOT_ID="{i}{e}" TIME_VALUE="{t}"/>'
        for i, pair in enumerate(times)
        for e, t in enumerate(pair)
    )
    annotations = "".join(
        f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{i}" TIME_SLOT_REF1="{i}0" TIME_SLOT_REF2="{i}1">'
        f"<ANNOTATION_VALUE>{word}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
        for i, word in enumerate(["Dakar", "mooy", "péeyu"])
    )
    text = (
        f"<ANNOTATION_DOCUMENT><TIME_ORDER>{slots}</TIME_ORDER>"
        f'<TIER LINGUISTIC_TYPE_REF="t" TIER_ID="A-words">{annotations}</TIER></ANNOTATION_DOCUMENT>'
    )
    file = EafText(text.encode(), "talk.eaf", "wol")
    assert [one.sentence.words for one in file.sentences] == [("Dakar", "mooy"), ("péeyu",)]
    assert file.sentences[0].fields == {"tier": "A-words", "annotation": "a0", "start": 0, "end": 700}


def test_tiers_are_found_without_their_names():
    text = (
        elan({"A": STORY}).replace("word@", "x@").replace('"word"', '"y"').replace("tx@", "z@").replace('"tx"', '"u"')
    )
    assert EafText(text.encode(), "talk.eaf", "wol").how == "words in tier 'x@A'"


def test_sentences_of_a_tier_are_cut_into_words_in_a_new_tier():
    data = elan({"ANA": STORY}, words=False).encode()
    file = EafText(data, "talk.eaf", "wol")
    assert file.how == "sentences in tier 'tx@ANA'"
    once = file.tagged(tags(file), Unit.WORD)
    tiers = {tier.get("TIER_ID"): tier for tier in ElementTree.fromstring(once).iter("TIER")}
    assert list(tiers)[-3:] == [
        "crossfill-words@tx@ANA",
        "crossfill-pos@tx@ANA",
        "crossfill-pos-confidence@tx@ANA",
    ]
    assert tiers["crossfill-pos@tx@ANA"].get("PARENT_REF") == "crossfill-words@tx@ANA"
    # tags of another task stay with the same words, and go with words that are others
    both = EafText(once, "talk.eaf", "wol")
    both = both.tagged(tags(both, "ner"), Unit.WORD)
    assert b"crossfill-pos@" in both
    assert both.count(b'TIER_ID="crossfill-words@') == 1
    changed = EafText(both.replace(b"Dakar mooy", b"Dakar moo y"), "talk.eaf", "wol")
    changed_once = changed.tagged(tags(changed, "ner"), Unit.WORD)
    assert b"crossfill-pos@" not in changed_once
    assert b">moo<" in changed_once


def test_whole_sentences_are_tagged():
    for words in (True, False):
        file = EafText(elan({"ANA": STORY}, words).encode(), "talk.eaf", "wol")
        root = ElementTree.fromstring(file.tagged([{"topic": ["trade"]}] * 2, Unit.SENTENCE))
        (tier,) = (tier for tier in root.iter("TIER") if tier.get("TIER_ID", "").startswith(OURS))
        assert tier.get("PARENT_REF") == "tx@ANA"
        assert [e.get("ANNOTATION_REF") for e in tier.iter("REF_ANNOTATION")] == [
            e.get("ANNOTATION_ID") for e in root.iter("ALIGNABLE_ANNOTATION")
        ]


def test_tags_that_a_person_took_over_are_kept():
    """A tier of ours under another name is a person's, and ids stay unique next to it."""
    file = EafText(elan({"A": STORY}).encode(), "talk.eaf", "wol")
    once = file.tagged(tags(file), Unit.WORD).replace(b"crossfill-pos@", b"checked@")
    file = EafText(once, "talk.eaf", "wol")
    twice = file.tagged(tags(file), Unit.WORD)
    ids = [e.get("ANNOTATION_ID") for e in ElementTree.fromstring(twice).iter() if e.get("ANNOTATION_ID")]
    assert b"checked@" in twice
    assert b"crossfill-pos@" in twice
    assert len(set(ids)) == len(ids)


def test_a_data_folder_has_them_like_other_corpora_and_a_table_renames_labels(tmp_path: Path):
    home = tmp_path / "pos" / "wol"
    home.mkdir(parents=True)
    for split in ("train", "test"):
        (home / f"{split}.flextext").write_text(flex([*STORY, [(split, "v"), ("ab", "clf")]]), encoding="utf-8")
    (home / "talk-dev.eaf").write_text(elan({"A": [[("Waaw", "n")]]}), encoding="utf-8")
    (tmp_path / "pos" / "pos_labels.txt").write_text("n\tNOUN\nv\tVERB\n", encoding="utf-8")
    read_in = read_folder(tmp_path)
    shown = [str(problem) for problem in read_in.problems]
    assert "pos/wol: labels that the table of labels does not name stay as they are: PUNCT, clf" in shown
    assert any("test.flextext: words in writing system 'wol', labels in items 'pos'" in line for line in shown)
    train = read_in.grid[Cell("pos", "wol")]
    labels = {label for splits in train for corpus in splits.parts.values() for label in corpus.labels.distinct()}
    assert labels == {"NOUN", "VERB", "PUNCT", "clf"}
    assert (
        read_file(home / "train.flextext", Cell("pos", "wol")).corpus[0].labels[0] == "n"
    )  # the table is not next to it


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (
            "n\tNOUN\nn\tVERB\n",
            r"pos_labels.txt:2: expected a label, a tab and its name here, each label once; got 'n' twice",
        ),
        ("n\tNOUN\nv\n", r"pos_labels.txt:2: .*got 'v'"),
        ("n\tNOUN\tx\n", r"pos_labels.txt:1: .*got 'n\tNOUN\tx'"),
    ],
)
def test_bad_tables_of_labels(tmp_path: Path, table: str, problem: str):
    home = tmp_path / "pos" / "wol"
    home.mkdir(parents=True)
    (home / "train.flextext").write_text(flex(STORY), encoding="utf-8")
    (home / "pos_labels.txt").write_text(table, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        load_grid(tmp_path)


BOMB = '\n<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>\n<ANNOTATION_DOCUMENT>&b;</ANNOTATION_DOCUMENT>'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOMB, r"talk.eaf:2: expected XML without a DTD and entities of its own, got <!DOCTYPE"),
        ("<ANNOTATION_DOCUMENT>&other;</ANNOTATION_DOCUMENT>", "talk.eaf:1: expected XML, got undefined entity"),
        ("<document/>", "talk.eaf:1: expected <ANNOTATION_DOCUMENT>, got <document>; is this another kind"),
        ("", "talk.eaf:1: expected XML, got no element found"),
        ("<ANNOTATION_DOCUMENT>\n<TIER>", "talk.eaf:2: expected XML, got no element found"),
        ("<ANNOTATION_DOCUMENT/>", "talk.eaf: expected a tier named 'pos' under the tier of the words, got no tier"),
        ('<?xml version="1.0" encoding="latin-1"?><ANNOTATION_DOCUMENT/>', "talk.eaf:1: expected UTF-8, got latin-1"),
        (
            elan({"A": STORY}).replace('PARENT_REF="word@A"', ""),
            "talk.eaf: expected tier 'pos@A' under that of the words",
        ),
    ],
)
def test_bad_files_are_refused_with_their_place(text: str, problem: str):
    with pytest.raises(DataError, match=problem):
        read(text, ".eaf")


def test_other_bad_input():
    with pytest.raises(DataError, match=r"talk.eaf:1: expected UTF-8, got UTF-16"):
        EafText(elan(SPOKEN).encode("utf-16"), "talk.eaf", "wol")
    with pytest.raises(DataError, match=r"talk.eaf: unknown tier 'wrd'; known: tx@ANA, word@ANA"):
        EafText(elan(SPOKEN).encode(), "talk.eaf", "wol", "wrd")
    with pytest.raises(DataError, match=r"talk.eaf: expected a tier with words or sentences, got none"):
        EafText(b"<ANNOTATION_DOCUMENT/>", "talk.eaf", "wol")
    with pytest.raises(DataError, match=r"talk.flextext: unknown writing system 'fra'"):
        FlexText(flex(STORY).encode(), "talk.flextext", "wol", "fra")
    with pytest.raises(DataError, match=r'talk.flextext: expected words as <item type="txt">, got none'):
        FlexText(b"<document/>", "talk.flextext", "wol")
    bare = flex(STORY).replace("<words>", "<wordz>").replace("</words>", "</wordz>")
    file = FlexText(bare.encode(), "talk.flextext", "wol")
    assert file.sentences[0].sentence.words[:2] == ("Dakar", "mooy")
    with pytest.raises(DataError, match=r"talk.flextext:\d+: expected words in the phrase, got text alone"):
        file.tagged(tags(file), Unit.WORD)


def test_a_word_with_two_labels_costs_its_sentence():
    text = elan({"A": [*STORY] * 6})
    twice = text.replace("</TIER>\n    <TIER LINGUISTIC_TYPE_REF=\"tx\" TIER_ID=\"notes\"/>",
        '<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="b" ANNOTATION_REF="a2"><ANNOTATION_VALUE>adj</ANNOTATION_VALUE>'
        '</REF_ANNOTATION></ANNOTATION></TIER>\n    <TIER LINGUISTIC_TYPE_REF="tx" TIER_ID="notes"/>')  # fmt: skip
    assert twice != text
    reading = read(twice, ".eaf")
    assert len(reading.corpus) == 11
    ((level, line, problem),) = reading.notes
    assert (level, problem) == (
        "warning",
        "sentence left out: expected one label for 'Dakar', got n, adj; keep one of them",
    )
    assert "Dakar" in twice.splitlines()[line]
