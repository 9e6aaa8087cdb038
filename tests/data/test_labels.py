"""Tag schemes against naive encoders of random spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfill.data.folder import ReadOptions, read_folder
from crossfill.data.labels import LabelColumn, iob2, task_name
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from tests.data.folders import write

Spans = list[tuple[int, str | None]]
spans = st.lists(st.tuples(st.integers(1, 4), st.sampled_from([None, "PER", "LOC", "B-X"])), min_size=1, max_size=8)


def encode(spans: Spans, first: str, inside: str, last: str, single: str) -> list[str]:
    tags: list[str] = []
    for length, kind in spans:
        prefixes = [single] if length == 1 else [first, *[inside] * (length - 2), last]
        tags += ["O"] * length if kind is None else [f"{prefix}-{kind}" for prefix in prefixes]
    return tags


def encode_iob1(spans: Spans) -> list[str]:
    tags: list[str] = []
    for i, (length, kind) in enumerate(spans):
        touches = i > 0 and spans[i - 1][1] == kind
        tags += ["O"] * length if kind is None else [f"{'B' if touches else 'I'}-{kind}", *[f"I-{kind}"] * (length - 1)]
    return tags


@given(spans)
def test_every_scheme_becomes_iob2(spans: Spans):
    expected = encode(spans, "B", "I", "I", "B")
    assert iob2(expected) == expected
    assert iob2(encode(spans, "B", "I", "E", "S")) == expected
    assert iob2(encode(spans, "B", "I", "L", "U")) == expected
    assert iob2(encode(spans, "B", "M", "E", "S")) == expected
    assert iob2(encode_iob1(spans)) == expected


@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "E-A", "S-A", "I-B", "B-B", "X", "B", "I", "-", "B-"])))
def test_any_tags_become_strict(tags: list[str]):
    strict = iob2(tags)
    assert iob2(strict) == strict
    for before, tag in zip(["O", *strict], strict, strict=False):
        assert not tag.startswith("I-") or before in (tag, "B" + tag[1:])


def test_a_task_names_its_column():
    row = ["3", "ama", "am", "VERB", "V", "Case=Nom|Number=Sing", "0", "nmod:poss", "_", "NER=B-PER|SpaceAfter=No"]
    labels = {
        "pos": "VERB",
        "xpos": "V",
        "deprel": "nmod",
        "feats:Case": "Nom",
        "feats:Gender": "_",
        "misc:NER": "B-PER",
    }
    for task, label in labels.items():
        assert LabelColumn(task)(row) == label
    with pytest.raises(DataError, match=r"expected a task that names a CoNLL-U column .* got 'chunk'; rename"):
        LabelColumn("chunk")
    assert [task_name(name) for name in ("upos", "UPOS", "feats_Case", "feats:Case", "ner")] == [
        "pos",
        "pos",
        "feats:Case",
        "feats:Case",
        "ner",
    ]


def test_a_table_renames_the_types_of_spans(tmp_path):
    text = "Anta\tB-PERSON\nDiop\tI-PERSON\nin\tO\nDakar\tB-GPE\n2019\tB-DATE\nUN\tB-ORG\n"
    write(tmp_path, {"ner/wol/train.bio": text, "ner/wol/labels.txt": "PERSON\tPER\nGPE\tLOC\nDATE\tO\n"})
    reading = read_folder(tmp_path, ReadOptions(cache=False))
    assert tuple(reading.grid.training(Cell("ner", "wol")).labels) == ("B-PER", "I-PER", "O", "B-LOC", "O", "B-ORG")
    assert not reading.problems
