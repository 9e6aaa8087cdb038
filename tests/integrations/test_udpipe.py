"""UDPipe's formats: text is cut without loss, labels land in their columns, all else stays."""

import conllu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfill.data.conllu import with_feature
from crossfill.errors import DataError
from crossfill.integrations.udpipe import find_model, read, tasks_for, write
from tests.integrations.taggings import tagging

ESCAPES = {"\\s": " ", "\\t": "\t", "\\r": "\r", "\\n": "\n", "\\p": "|", "\\\\": "\\"}
GIVEN = """# sent_id = x1
# text = Xale yi dem nañu.
1\tXale\txale\tX\tn\tCase=Nom|Number=Plur\t3\tnsubj\t_\tGloss=child
2\tyi\tbi\tX\t_\t_\t1\tdet\t_\t_
3-4\tdemnañu\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\tdem\tdem\tX\t_\tAspect=Perf\t0\troot\t_\t_
4\tnañu\tnañu\tX\t_\t_\t_\t_\t_\t_
5\t.\t.\tX\t_\t_\t3\tpunct\t_\t_

"""


def restored(text: str) -> str:
    """The text that CoNLL-U with UDPipe's notes on spaces was made of."""
    import re

    def plain(value: str) -> str:
        return re.sub(r"\\.", lambda found: ESCAPES[found[0]], value)

    parts = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            columns = line.split("\t")
            misc = dict(pair.split("=", 1) for pair in columns[9].split("|") if pair != "_")
            after = "" if misc.get("SpaceAfter") == "No" else plain(misc.get("SpacesAfter", "\\s"))
            parts.append(plain(misc.get("SpacesBefore", "")) + columns[1] + after)
    return "".join(parts)


@given(st.text(st.sampled_from("ab.! \n\t|\\é𞤀🦁"), min_size=1))
def test_raw_text_can_be_restored(data: str):
    text = read(data, "wol", "conllu", "ranges")
    made = write(text, [], "conllu")
    if data.strip():
        assert restored(made) == data
    for sentence in conllu.parse(made):
        assert sentence.metadata["text"].replace(" ", "") == "".join(token["form"] for token in sentence)
        for token in sentence:
            start, end = map(int, token["misc"]["TokenRange"].split(":"))
            assert data[start:end] == token["form"]


def test_documents_paragraphs_and_lines_are_noted():
    made = write(read("Dakar la. Ndar la.\n\nAwa la", "wol", "conllu", ""), [], "conllu")
    comments = [list(sentence.metadata) for sentence in conllu.parse(made)]
    assert comments == [["newdoc", "newpar", "sent_id", "text"], ["sent_id", "text"], ["newpar", "sent_id", "text"]]
    lines = read("Dakar la. Ndar la.\n\nAwa la", "wol", "generic_tokenizer", "presegmented").sentences
    assert [len(sentence) for sentence in lines] == [6, 2]


def test_labels_land_in_their_columns_and_all_else_stays():
    text = read(GIVEN, "wol", "conllu", None)
    (sentence,) = text.sentences
    assert sentence.words == ("Xale", "yi", "dem", "nañu", ".")
    from dataclasses import replace

    from crossfill.grid.cells import Cell

    tags = tagging(sentence, "pos/wol", ["NOUN", "X", "VERB", "VERB", "PUNCT"])
    features = replace(tags, cell=Cell.parse("feats:Case/wol"), labels=("_", "Acc", "Nom", "_", "_"))
    relations = replace(tags, cell=Cell.parse("deprel/wol"), labels=("obj", "det", "root", "dep", "punct"))
    made = write(text, [[tags], [features], [relations]], "conllu")
    expected = [line.split("\t") for line in GIVEN.splitlines()]
    for row, upos, case, relation in (
        (2, "NOUN", "Number=Plur", "obj"), (3, "X", "Case=Acc", "det"), (5, "VERB", "Aspect=Perf|Case=Nom", "root"),
        (6, "VERB", "_", "_"), (7, "PUNCT", "_", "punct"),
    ):  # fmt: skip
        expected[row][3], expected[row][5], expected[row][7] = upos, case, relation
    assert [line.split("\t") for line in made.splitlines()] == expected
    assert write(text, [], "conllu") == GIVEN


def test_other_formats():
    for form, data in (("horizontal", "Dakar la\nNdar la\n"), ("vertical", "Dakar\nla\n\nNdar\nla\n\n")):
        text = read(data, "wol", form, None)
        assert [sentence.words for sentence in text.sentences] == [("Dakar", "la"), ("Ndar", "la")]
        assert write(text, [], form) == data
        assert len(conllu.parse(write(text, [], "conllu"))) == 2
    for wrong, message in (
        (("a", "wol", "epe", None), "input format 'epe'"),
        (("a\tb", "wol", "conllu", None), "data:1"),
    ):
        with pytest.raises(DataError, match=message):
            read(*wrong)
    with pytest.raises(DataError, match="output format 'pdf'"):
        write(read("a", "wol", "conllu", ""), [], "pdf")


def test_names_of_models_and_tasks():
    known = ("fin", "wol")
    for name in ("wol", "wo", "Wolof", "wolof-wtb-ud-2.15-241121", " wol "):
        assert find_model(name, known) == "wol"
    for name in ("", "klingon", "english"):
        with pytest.raises(DataError, match="unknown model"):
            find_model(name, known)
    tasks = ["pos", "ner", "xpos", "feats:Case", "misc:NER", "deprel", "chunk"]
    assert tasks_for(tasks, tagger=True, parser=False) == ["pos", "xpos", "feats:Case"]
    assert tasks_for(tasks, tagger=False, parser=True) == ["deprel"]


def test_features_are_in_order():
    assert with_feature("Number=Plur|aspect=Perf", "Case", "Nom") == "aspect=Perf|Case=Nom|Number=Plur"
    assert with_feature("_", "Case", "Nom") == "Case=Nom"
    assert with_feature("Case=Acc", "Case", "_") == "_"
