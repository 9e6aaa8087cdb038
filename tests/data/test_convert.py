"""Formats of other tools: what is read from them, and that every pair of formats keeps words, labels and spaces."""

import io
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data.folder import ReadOptions, load_grid, read_folder
from crossfill.data.readers import READERS
from crossfill.data.reading import ReadingHints
from crossfill.data.segmentation import spans_of, tags_of
from crossfill.data.writers import WRITERS, convert
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from tests.data.folders import write

NER = Cell("ner", "eng")
TEXT = "Ada Lovelace met Babbage in London."
SPANS = [(0, 12, "PER"), (17, 24, "PER"), (28, 34, "LOC")]
READ = [
    ("Ada", "B-PER"),
    ("Lovelace", "I-PER"),
    ("met", "O"),
    ("Babbage", "B-PER"),
    ("in", "O"),
    ("London", "B-LOC"),
    (".", "O"),
]


def dicts(start: str = "start", end: str = "end", label: str = "label", many: bool = False) -> list[dict[str, object]]:
    return [{start: a, end: b, label: [name] if many else name} for a, b, name in SPANS]


STUDIO = [{"value": value, "type": "labels"} for value in dicts(label="labels", many=True)]
EXPORTS = {
    "spans": {"text": TEXT, "spans": dicts()},
    "Prodigy": {"text": TEXT, "spans": [d | {"token_start": 0} for d in dicts()], "answer": "accept"},
    "Doccano": {"id": 7, "text": TEXT, "label": [list(span) for span in SPANS]},
    "Doccano, with relations": {"text": TEXT, "entities": dicts("start_offset", "end_offset"), "relations": []},
    "Label Studio, short": {"text": TEXT, "label": dicts(label="labels", many=True), "annotator": 1},
    "Label Studio": {
        "data": {"text": TEXT},
        "annotations": [{"result": STUDIO}, {"was_cancelled": True, "result": []}],
    },
    "words and labels": {"tokens": [w for w, _ in READ], "ner_tags": [t for _, t in READ]},
}


def read(values: object, language: str = "eng") -> list[list[tuple[str, str]]]:
    reading = READERS[".jsonl"](json.dumps(values).encode(), "x", "ner", ReadingHints(language=language))
    return [list(zip(s.words, s.labels, strict=True)) for s in reading.corpus]


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_of_annotation_tools_are_read(name: str):
    assert read(EXPORTS[name]) == [READ]
    assert read([EXPORTS[name]] * 2) == [READ] * 2  # a list in one file, as Label Studio writes it


def test_what_was_rejected_is_not_read_and_tokens_are_kept():
    tokens = [{"text": w, "start": a, "end": b} for w, a, b in (("Ada", 0, 3), ("Lovelace met", 4, 16))]
    one = {"text": TEXT[:16], "tokens": tokens, "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    assert read([one, one | {"answer": "reject"}]) == [[("Ada", "B-PER"), ("Lovelace met", "O")]]


def test_several_sentences_and_spans_that_join_them():
    text = "We met. Then Mr. Smith left. Good."
    start = text.index("Smith")
    assert len(read({"text": text, "spans": [{"start": start, "end": start + 5, "label": "PER"}]})) >= 2
    joined = read({"text": "We met. They left. Good.", "spans": [{"start": 3, "end": 12, "label": "X"}]})
    assert [len(sentence) for sentence in joined] == [6, 2]  # the first two are one
    assert joined[0][1:4] == [("met", "B-X"), (".", "I-X"), ("They", "I-X")]


def test_a_span_that_cuts_a_word_splits_it_and_is_reported_with_its_line(tmp_path: Path):
    cut = {"text": "unLondon", "spans": [{"start": 2, "end": 8, "label": "LOC"}]}
    assert read(cut) == [[("un", "O"), ("London", "B-LOC")]]
    lines = "".join(json.dumps(line) + "\n" for line in (EXPORTS["spans"], cut))
    source, out = write(tmp_path, {"in.jsonl": lines}) / "in.jsonl", str(tmp_path / "out.bio")
    command = ["data", "convert", str(source), out, "--cell", "ner/eng"]
    done = CliRunner().invoke(app, command)
    assert "in.jsonl:2: split where spans begin or end within words: unLondon" in done.stderr
    assert Path(out).read_text().endswith("un\tO\nLondon\tB-LOC\n\n")
    folder = write(tmp_path / "data", {"ner/eng/train.jsonl": lines})
    for _ in range(2):  # the second time from the cache
        told = [p for p in read_folder(folder, ReadOptions(cache=tmp_path / "cache")).problems if "unLondon" in p.text]
        assert [(p.level, p.where) for p in told] == [("note", "ner/eng/train.jsonl:2")]
    given = cut | {"tokens": [{"start": 0, "end": 8}]}
    with pytest.raises(DataError, match=r"x:1: expected spans of whole words, got 'London' .*, which cuts 'unLondon'"):
        read(given)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"text": TEXT}, 'expected "words" and "labels", "text" and "label"'),
        ({"text": TEXT, "spans": [[0, 99, "PER"]]}, "expected spans within the 35 characters of the text, got 0 to 99"),
        ({"text": TEXT, "spans": [[0, 12, "PER"], [4, 16, "LOC"]]}, "expected spans that do not overlap"),
        ({"text": "a  b", "spans": [[1, 2, "PER"]]}, "expected words in the span"),
        ({"text": TEXT, "spans": [["0", 12, "PER"]]}, "expected a span as"),
        ({"text": 3, "spans": []}, 'expected "text" as a string'),
        ([3], "expected a JSON object, got int"),
    ],
)
def test_bad_objects_are_told_with_place_and_remedy(values: object, told: str):
    with pytest.raises(DataError, match=r"^x:1: ") as caught:
        read(values)
    assert told in str(caught.value)


def made() -> Corpus:
    """Two short sentences."""
    return Corpus.from_sentences(
        [
            Sentence(("Awa", "Ndiaye", ","), ("B-PER", "I-PER", "O"), (True, False, True)),
            Sentence(("Dakar", "mooy"), ("B-LOC", "O"), (False, True)),
        ]
    )


def same(corpus: Corpus) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(s.words, s.labels) for s in corpus]


def arrow_file(names: list[str] | None) -> bytes:
    features = {"ner_tags": {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"}}
    schema = pyarrow.schema(
        [("tokens", pyarrow.list_(pyarrow.string())), ("ner_tags", pyarrow.list_(pyarrow.int64()))],
        {b"huggingface": json.dumps({"info": {"features": features}}).encode()} if names else None,
    )
    table = pyarrow.table({"tokens": [["Dakar", "mooy"], ["Ndar"]], "ner_tags": [[1, 0], [1]]}, schema=schema)
    out = io.BytesIO()
    with pyarrow.ipc.new_stream(out, schema) as stream:
        stream.write_table(table)
    return out.getvalue()


def test_datasets_saved_to_disk_and_parquet_in_parts_are_corpora_of_a_folder(tmp_path: Path):
    corpus = made()
    parts = {
        f"ner/yor/{split}-0000{i}-of-00002.parquet": WRITERS[".parquet"](corpus, "ner", corpus.labels.distinct())
        for split in ("train", "validation")
        for i in range(2)
    }
    data = write(
        tmp_path / "data",
        {
            **parts,
            "ner/wol/train/data-00000-of-00001.arrow": arrow_file(["O", "B-LOC"]),
            "ner/wol/train/state.json": "{}",
            "ner/wol/dataset_dict.json": "{}",
            "ner/eng/train.jsonl": json.dumps(EXPORTS["Doccano"]) + "\n",
            "ner/fin/test.json": json.dumps([EXPORTS["Label Studio"]]),
        },
    )
    grid = load_grid(data)
    assert [str(cell) for cell in grid.cells] == ["ner/eng", "ner/fin", "ner/wol", "ner/yor"]
    assert same(grid.training(Cell("ner", "wol"))) == [(("Dakar", "mooy"), ("B-LOC", "O")), (("Ndar",), ("B-LOC",))]
    assert len(grid[Cell("ner", "yor")][0].dev) == 4
    assert {"ner/wol/train/state.json", "ner/wol/dataset_dict.json"} <= {p.where for p in read_folder(data).problems}
    write(data, {"ner/wol/train/data-00000-of-00001.arrow": arrow_file(None)})
    with pytest.raises(DataError, match=r"expected tags with names, got number 1 of 0; list the names in labels\.txt"):
        load_grid(data)
    write(data, {"ner/labels.txt": "O\nB-LOC\n"})
    assert load_grid(data).training(Cell("ner", "wol")).labels[0] == "B-LOC"


def test_spans_and_tags_are_two_ways_to_say_the_same():
    bounds = [(0, 3), (4, 12), (13, 16), (17, 24)]
    labels = ("B-PER", "I-PER", "B-LOC", "O")
    assert tags_of(bounds, spans_of(labels, bounds), TEXT) == labels


def check_damaged(suffix: str, n_files: int) -> None:
    rng, wholes = (
        random.Random(0),
        [arrow_file(["O", "B-LOC"])]
        if suffix == ".arrow"
        else [WRITERS[suffix](made(), "ner", made().labels.distinct())],
    )
    if suffix == ".jsonl":
        wholes += [json.dumps(export).encode() for export in EXPORTS.values()]
    refused = []
    for i in range(n_files):
        data = bytearray(wholes[i % len(wholes)])
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(data))
            if rng.random() < 0.7:
                data[place] = rng.randrange(32, 127) if suffix == ".jsonl" else rng.randrange(256)
            else:
                del data[place : place + rng.randint(1, 30)]
        try:
            corpus = READERS[suffix](bytes(data), "here", "ner", ReadingHints(language="eng")).corpus
        except DataError as error:
            refused.append(str(error))
        else:
            assert len(corpus.labels) == len(corpus.words) == corpus.offsets[-1]
            assert "\n" not in "".join((*corpus.words.vocabulary, *corpus.labels.vocabulary))
    assert 0.1 * n_files < len(refused) < n_files
    for message in refused:
        assert re.fullmatch(r"here(:[0-9]+)?: expected .+; .+", message), message


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow"])
def test_damaged_files_are_read_or_refused_with_place_and_remedy(suffix: str):
    check_damaged(suffix, 200)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow"])
def test_many_damaged_files_are_read_or_refused_with_place_and_remedy(suffix: str):
    check_damaged(suffix, 2000)


@pytest.mark.parametrize("word", ["a\nb", "a\tb"])
def test_words_that_no_line_can_hold_are_told(word: str):
    with pytest.raises(DataError, match=r"x:1: expected every word as text without tabs and line ends, got"):
        read({"words": [word], "labels": ["O"]})
    with pytest.raises(DataError, match=r"x:1: expected every label as text without tabs"):
        read({"words": ["a"], "labels": [word]})
    with pytest.raises(DataError, match=r"x:1: expected whole characters, got half of a surrogate pair"):
        read({"words": ["\ud800"], "labels": ["O"]})


def test_the_command_says_what_it_did_and_replaces_nothing(tmp_path: Path):
    source, out = (
        write(tmp_path, {"in.jsonl": json.dumps(EXPORTS["Prodigy"]) + "\nbad\n"}) / "in.jsonl",
        tmp_path / "o.bio",
    )
    done = CliRunner().invoke(app, ["data", "convert", str(source), str(out), "--cell", "ner/en"])
    assert done.exit_code == 0, done.output
    assert f"{out}: 1 sentences, 7 words" in done.stdout
    assert "in.jsonl:2: sentence left out: expected a JSON object" in done.stderr
    assert out.read_text().startswith("Ada\tB-PER\nLovelace\tI-PER\n")
    with pytest.raises(DataError, match="name another, or remove it"):
        convert(source, out, NER)
    with pytest.raises(DataError, match=r"unknown ending '\.xml'"):
        convert(source, tmp_path / "o.xml", NER)


def test_pyarrow_is_imported_only_for_its_formats():
    code = "import sys, crossfill.data.folder, crossfill.data.writers; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
