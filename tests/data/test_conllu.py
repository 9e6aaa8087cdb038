"""CoNLL-U against the `conllu` package, and what UD says of multiword tokens and empty nodes."""

import conllu as oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfill.data import conllu
from crossfill.data.labels import LabelColumn
from crossfill.errors import DataError

POS = LabelColumn("pos")
SPANISH = """# sent_id = 1
# text = Vámonos al mar.
1-2	Vámonos	_	_	_	_	_	_	_	_
1	Vamos	ir	VERB	_	Mood=Imp	0	root	_	_
2	nos	yo	PRON	_	_	1	obj	_	_
3-4	al	_	_	_	_	_	_	_	_
3	a	a	ADP	_	_	5	case	_	_
4	el	el	DET	_	_	5	det	_	_
5	mar	mar	NOUN	_	_	1	obl	_	SpaceAfter=No
5.1	vamos	ir	VERB	_	_	_	_	1:conj	CopyOf=1
6	.	.	PUNCT	_	_	1	punct	_	_

"""


def parse(text: str) -> list[conllu.ConlluSentence]:
    return list(conllu.parse(text.encode(), "train.conllu"))


def test_words_are_syntactic_and_the_text_is_that_of_the_surface():
    (sentence,) = parse(SPANISH)
    assert sentence.text == "Vámonos al mar."
    tagged = sentence.sentence(POS)
    assert tagged.words == ("Vamos", "nos", "a", "el", "mar", ".")
    assert tagged.labels == ("VERB", "PRON", "ADP", "DET", "NOUN", "PUNCT")
    assert tagged.spaces == (False, True, False, True, False, True)
    assert [row[0] for row in sentence.words] == list("123456")
    assert conllu.render([sentence]) == SPANISH


def test_a_language_without_spaces_is_rebuilt():
    text = "".join(f"{i}\t{w}\t_\tX\t_\t_\t_\t_\t_\tSpaceAfter=No\n" for i, w in enumerate("我愛海", start=1))
    assert parse(text)[0].sentence(POS).text == "我愛海"


def test_states_that_editors_leave_files_in():
    for text in (
        "\ufeff" + SPANISH,
        SPANISH.replace("\n", "\r\n"),
        SPANISH.rstrip("\n"),
        "\n\n" + SPANISH + "\n \t\n\n",
        SPANISH + "# a comment without words\n\n",
    ):
        assert parse(text) == parse(SPANISH)
    assert parse("") == []


cell = st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"], exclude_characters="|=#"), min_size=1, max_size=5)
row = st.tuples(
    cell, cell, st.sampled_from(["NOUN", "X", "_"]), st.sampled_from(["_", "Case=Nom", "A=B|C=D"]), st.booleans()
)


@given(st.lists(st.lists(row, min_size=1, max_size=5), min_size=1, max_size=4), st.data())
def test_columns_are_those_of_the_conllu_package(drawn: list[list[tuple]], data: st.DataObject):
    lines = []
    for number, rows in enumerate(drawn):
        lines.append(f"# sent_id = {number}")
        joined = data.draw(st.integers(0, len(rows) - 1))
        for i, (form, lemma, upos, feats, glued) in enumerate(rows, start=1):
            if i == joined:
                lines.append(f"{i}-{i + 1}\t{form}{lemma}" + "\t_" * 8)
            misc = "SpaceAfter=No" if glued else "_"
            lines.append("\t".join([str(i), form, lemma, upos, "_", feats, "0", "root", "_", misc]))
            if glued:
                lines.append("\t".join([f"{i}.1", form, lemma, upos, "_", feats, "_", "_", "_", "_"]))
        lines.append("")
    text = "\n".join(lines) + "\n"
    ours, theirs = parse(text), oracle.parse(text)
    assert conllu.render(ours) == text
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        words = [token for token in other if isinstance(token["id"], int)]
        tagged = mine.sentence(POS)
        assert list(tagged.words) == [token["form"] for token in words]
        assert list(tagged.labels) == [token["upos"] or "_" for token in words]
        assert [row[5] for row in mine.words] == [
            "|".join(f"{k}={v}" for k, v in token["feats"].items()) if token["feats"] else "_" for token in words
        ]


WORD = "\t".join(["1", "w", "_", "X", "_", "_", "0", "root", "_", "_"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("w\tO\n", "train.conllu:1: expected 10 columns, got 2; is this a BIO file? rename it to .bio"),
        (f"{WORD}\n\n{WORD}\t_\n", "train.conllu:3: expected 10 columns, got 11; remove the surplus tabs"),
        (WORD.replace("\t", " "), "train.conllu:1: expected columns separated by tabs, got spaces; replace the spaces"),
        (f"{WORD}\n{WORD}\n", "train.conllu:2: expected word number 2, got '1'; number the words"),
        (f"# c\n{WORD}\n# d\n", "train.conllu:3: expected comments before the words"),
        (WORD.replace("\tw\t", "\t\t"), "train.conllu:1: expected a form in column 2, got nothing; write _ for none"),
        (
            WORD.replace("1", "2-1", 1),
            "train.conllu:1: expected a multiword token of two or more words from 1 on, got 2-1",
        ),
        (
            f"{WORD.replace('1', '1-3', 1)}\n{WORD}\n",
            "train.conllu:2: expected word number 3 before the sentence ends, got 1",
        ),
        (WORD.replace("1", "0.1", 1), "train.conllu:1: expected word number 1 before the sentence ends, got 0 words"),
        (
            WORD.replace("1", "9" * 5000, 1),
            "train.conllu:1: expected word number 1, got '99999999999999999999'; number",
        ),
        (f"{WORD}\rX", "train.conllu:1: expected lines that end in LF or CRLF, got CR alone; convert the line ends"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_remedy(text: str, message: str):
    with pytest.raises(DataError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)


def test_other_encodings_are_named():
    with pytest.raises(DataError, match=r"train.conllu:3: expected UTF-8, got byte 0xe1; save the file as UTF-8"):
        list(
            conllu.parse(
                SPANISH.encode("latin-1").replace(b"# text", b"# t", 1).replace(b"V\xe1monos al mar", b"", 1),
                "train.conllu",
            )
        )
    with pytest.raises(DataError, match=r"train.conllu:1: expected UTF-8, got UTF-16; save the file as UTF-8"):
        list(conllu.parse(SPANISH.encode("utf-16"), "train.conllu"))


def test_features_stay_in_order():
    assert conllu.with_feature("Number=Plur|aspect=Perf", "Case", "Nom") == "aspect=Perf|Case=Nom|Number=Plur"
    assert conllu.with_feature("_", "Case", "Nom") == "Case=Nom"
    assert conllu.with_feature("Case=Acc", "Case", "_") == "_"
