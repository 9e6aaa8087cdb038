"""Sentences and pairs as files: every format, names of columns, and what is said of bad lines."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfill.data.folder import load_grid, read_folder
from crossfill.data.readers import READERS
from crossfill.data.reading import ReadingHints
from crossfill.data.table_corpora import table_rows
from crossfill.data.writers import ITEM_WRITERS, convert, write_grid, writer
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit
from tests.data.folders import bio, write

TOPIC, NLI = Cell("topic", "wol"), Cell("nli", "wol")
SENTENCES = [("Dakar mooy péeyu Senegaal .", "geography"), ("Ñu ngi futbal , démb .", "sports"), ("Waa 北京", "travel")]
PAIRS = [("Awa dem na .", "Awa demul .", "no"), ("Mu ngi lekk .", "Dafa lekk .", "yes")]
SIB = "index_id\tcategory\ttext\n" + "".join(f"{i}\t{label}\t{text}\n" for i, (text, label) in enumerate(SENTENCES))
AMERICAS = "id\tlanguage\tpremise\thypothesis\tlabel\n" + "".join(f"1\twol\t{a}\t{b}\t{c}\n" for a, b, c in PAIRS)


def read(data: str, suffix: str = ".tsv", task: str = "topic", **beside) -> Corpus:
    return READERS[suffix](data.encode(), "x", task, ReadingHints(language="wol", **beside)).corpus


def shown(corpus: Corpus) -> list[tuple[str, ...]]:
    return [(*(part.text for part in s.sentences), *s.labels) for s in corpus]


def test_sib_and_americasnli_as_they_come():
    topics, pairs = read(SIB), read(AMERICAS, task="nli")
    assert (topics.unit, pairs.unit) == (Unit.SENTENCE, Unit.PAIR)
    assert shown(topics) == [*SENTENCES]
    assert shown(pairs) == [*PAIRS]
    assert topics.n_labels == 3
    assert pairs.text().lengths.tolist() == [4, 3, 4, 3]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".tsv"])
@pytest.mark.parametrize("names", [("text", "label"), ("sentence", "category"), ("utterance", "intent")])
def test_columns_are_found_by_name(suffix: str, names: tuple[str, str]):
    rows = [dict(zip((*names, "id"), (*row, "7"), strict=True)) for row in SENTENCES]
    if suffix == ".jsonl":
        data = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        out = io.StringIO()
        writer = csv.DictWriter(out, ["id", *names], delimiter="," if suffix == ".csv" else "\t")
        writer.writeheader()
        writer.writerows(rows)
        data = out.getvalue()
    assert shown(read(data, suffix)) == [*SENTENCES]


def test_columns_are_given_beside():
    data = "a\tb\tc\nDakar la\tx\tgeography\n"
    assert shown(read(data, texts=("a",), label="3")) == [("Dakar la", "geography")]
    assert shown(read(data, task="nli", texts=("a", "2"), label="c")) == [("Dakar la", "x", "geography")]
    with pytest.raises(DataError, match=r"x:2: expected a column 'z', as columns\.txt says"):
        read(data, texts=("z",), label="c")


def test_numbers_are_named_beside_them():
    data = "text\tlabel\nDakar la\t1\nMu ngi\t0\n"
    assert [s.labels for s in read(data, labels=("no", "yes"))] == [("yes",), ("no",)]
    assert [s.labels for s in read(data)] == [("1",), ("0",)]
    beside = "text\tlabel\tlabel_text\nDakar la\t1\tyes\n"
    assert [s.labels for s in read(beside)] == [("yes",)]


def test_a_table_of_words_stays_one():
    data = "text\tlabel\nDakar\tB-LOC\nmooy\tO\n\nAwa\tB-PER\n"
    assert read(data, task="ner").unit is Unit.WORD
    assert read("word\tlabel\nDakar\tx\nmooy\ty\n", task="other").unit is Unit.WORD
    assert read(bio([("Dakar", "B-LOC")]), ".bio", "ner").unit is Unit.WORD


BAD = {
    "a missing column": ("text\tid\nDakar la\t1\n", r'x:2: expected .* "text" and "label", .*; got text, id'),
    "no label": ("text\tlabel\nDakar la\t\nMu\tyes\n", r"x:2: expected one label, got nothing"),
    "an unknown label": ("text\tlabel\nDakar la\tmaybe\nMu\tyes\n", r"x:2: .* no, yes, .*; got 'maybe'"),
    "a number beyond the names": ("text\tlabel\nDakar la\t2\nMu\t1\n", r"x:2: expected one of .*, or 0 to 1; got '2'"),
    "one sentence in a pair": ("premise\thypothesis\tlabel\nAwa\t\tno\nA\tB\tyes\n", r"x:2: expected text, or two"),
    "no text": ("text\tlabel\n \tyes\nMu\tyes\n", r"x:2: expected text, or two"),
    "a tab in the text": ("text\tlabel\nDakar\tla\tyes\nMu\tyes\n", r"x:2: expected 2 columns, .* got 3"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_bad_line_is_named_and_costs_no_other(what: str):
    data, message = BAD[what]
    suffix = ".csv" if what == "a missing column" else ".tsv"
    data = data.replace("\t", ",") if suffix == ".csv" else data
    beside = ReadingHints(language="wol", labels=("no", "yes"))
    if what == "a missing column":
        with pytest.raises(DataError, match=message):
            READERS[suffix](data.encode(), "x", "topic", beside)
        return
    found = READERS[suffix]((data + "Awa dem\tyes\n" * (what != "one sentence in a pair")).encode(), "x", "t", beside)
    ((_, line, problem),) = found.notes
    assert re.search(message, f"x:{line}: {problem.removeprefix('sentence left out: ')}")
    assert len(found.corpus) == data.count("\n") - 2 + (what != "one sentence in a pair")


def test_bad_objects_are_named_too(tmp_path: Path):
    lines = [json.dumps({"text": t, "label": label}) for t, label in SENTENCES * 5]
    lines[2] = json.dumps({"text": "", "label": "sports"})
    write(tmp_path, {"topic/wol/train.jsonl": "\n".join(lines), "topic/labels.txt": "geography\nsports\ntravel\n"})
    found = read_folder(tmp_path)
    assert [str(p) for p in found.problems if p.level == "warning"] == [
        "topic/wol/train.jsonl:3: sentence left out: expected text, or two sentences of a pair, got nothing"
    ]
    assert len(found.grid.training(TOPIC)) == 14


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.sampled_from('"\t\n,'), max_size=12)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5))
def test_tables_that_csv_writes_are_read_back(rows: list[tuple[str, str, str]]):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([("a", "b", "c"), *rows])
    table = table_rows(out.getvalue().split("\n"), ",", "x")
    assert [row for _, row in table[1:]] == [list(row) for row in rows]


def test_quotes_that_are_just_quotes_stay():
    data = 'text\tlabel\n"Dem" la ne\ta\nMu ne "dem"\tb\n"Awa\tb\n'
    table = table_rows(data.split("\n"), "\t", "x")[1:]
    assert [row[0] for _, row in table] == ['"Dem" la ne', 'Mu ne "dem"', '"Awa']
    assert [line for line, _ in table] == [2, 3, 4]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_every_format_is_written_and_read_back(suffix: str, tmp_path: Path):
    odd = [('Mu ne "dem" ,\tAwa', "a b"), *SENTENCES]
    for cell, corpus in ((TOPIC, read(SIB)), (NLI, read(AMERICAS, task="nli"))):
        path = tmp_path / f"train{suffix}"
        path.write_bytes(ITEM_WRITERS[suffix](corpus, cell.task, corpus.labels.distinct()))
        found = READERS[suffix](path.read_bytes(), "x", cell.task, ReadingHints(language="wol")).corpus
        assert shown(found) == shown(corpus)
        assert found.unit is corpus.unit
        convert(path, tmp_path / f"{cell.task}-other.jsonl", cell)
    quoted = Corpus.from_sentences(
        [Sentence(tuple(t.split(" ")), (label,), unit=Unit.SENTENCE) for t, label in odd[1:]]
    )
    assert shown(
        READERS[suffix](
            ITEM_WRITERS[suffix](quoted, "topic", quoted.labels.distinct()), "x", "topic", ReadingHints(language="wol")
        ).corpus
    )
    with pytest.raises(DataError, match=r"cannot write labels of sentences as \.bio; use \.tsv, .* or \.parquet"):
        writer(".bio", Unit.SENTENCE)


def test_a_folder_of_all_units(tmp_path: Path):
    files = {
        "topic/wol/train.tsv": SIB,
        "topic/wol/test.tsv": "text\tlabel\nBenn baat la\tsports\n",
        "nli/wol/train.csv": "premise,hypothesis,label\n" + "".join(f'"{a}","{b}",{c}\n' for a, b, c in PAIRS),
        "ner/wol/train.bio": bio([("Benn", "O"), ("baat", "O"), ("la", "O")], [("Awa", "B-PER"), ("demul", "O")]),
    }
    grid = load_grid(write(tmp_path / "in", files))
    assert grid.inventory.units == {"topic": Unit.SENTENCE, "nli": Unit.PAIR}
    assert len(grid.training(Cell("ner", "wol"))) == 1  # the other is test text of topics
    write_grid(grid, tmp_path / "out")
    again = load_grid(tmp_path / "out")
    assert {cell: shown(again.training(cell)) for cell in again.cells} == {
        c: shown(grid.training(c)) for c in grid.cells
    }


def test_a_pair_is_left_out_if_one_of_its_sentences_is_evaluated(tmp_path: Path):
    files = {
        "nli/wol/train.tsv": AMERICAS,
        "topic/wol/train.tsv": SIB,
        "topic/wol/test.tsv": "text\tlabel\nDafa lekk.\tsports\n",
    }
    grid = load_grid(write(tmp_path, files))
    assert shown(grid.training(NLI)) == [PAIRS[0]]


def test_a_task_has_one_unit(tmp_path: Path):
    words = bio([("Benn", "a"), ("baat", "b")])
    write(tmp_path, {"t/tur/train.bio": words, "t/wol/train.tsv": SIB})
    with pytest.raises(DataError, match=r"t/wol: expected labels of words, as in other corpora of t; got"):
        _ = load_grid(tmp_path).inventory
