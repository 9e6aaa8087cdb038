"""Files made to break a reader: each is refused in one message, or read, soon and in little memory."""

import io
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from crossfill.data.readers import read_corpus
from crossfill.data.reading import ReadingHints
from crossfill.data.segmentation import SpanIndex, TextSpan
from crossfill.errors import DataError


def read(data: bytes, ending: str, task: str = "ner") -> list[tuple[str, ...]]:
    corpus = read_corpus(data, f"x{ending}", task, ReadingHints(language="eng"), ending, False).corpus
    return [sentence.labels for sentence in corpus]


def as_arrow(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def as_parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    parquet.write_table(table, out, compression="zstd")
    return out.getvalue()


WORDS, TAGS = pa.array([["a"]]), pa.array([["O"]])


@pytest.mark.parametrize("names", [["tokens", "tokens", "ner_tags"], ["tokens", "ner_tags", "ner_tags"]])
def test_a_column_that_is_there_twice_is_refused(names: list[str]):
    table = pa.Table.from_arrays([WORDS if name == "tokens" else TAGS for name in names], names=names)
    for data, ending in ((as_arrow(table), ".arrow"), (as_parquet(table), ".parquet")):
        with pytest.raises(DataError, match=f"expected columns with different names, got {', '.join(names)}"):
            read(data, ending)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.date32(), 2**30),
        (pa.timestamp("us"), 2**62),
        (pa.timestamp("s"), 2**50),
        (pa.timestamp("us", tz="No/Where"), 1),
        (pa.duration("s"), 2**60),
    ],
)
def test_values_that_python_has_not_are_refused(kind: pa.DataType, value: int):
    column = pa.array([value], type=pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    table = pa.Table.from_arrays([WORDS, TAGS, column], names=["tokens", "ner_tags", "when"])
    with pytest.raises(DataError, match="expected a Parquet or Arrow file"):
        read(as_arrow(table), ".arrow")


@pytest.mark.parametrize("features", [b"\xff\xfe", b"[1, 2]", b'{"info": {"features": {"ner_tags": 3}}}'])
def test_features_that_are_none_are_not_used(features: bytes):
    table = pa.table({"tokens": [["a"]], "ner_tags": [["O"]]}).replace_schema_metadata({b"huggingface": features})
    assert read(as_arrow(table), ".arrow") == [("O",)]


@pytest.mark.parametrize("result", ["abc", 5, {"a": 1}, ["a"], None, [[1]]])
def test_results_of_label_studio_of_another_type_are_refused(result: Any):
    task = {"data": {"text": "Awa is here"}, "annotations": [{"result": result}]}
    with pytest.raises(DataError, match=r"expected (a record as|a span as|one annotation)"):
        read(json.dumps([task]).encode(), ".json")


@pytest.mark.parametrize("record", ['{"text": "\\ud800 b", "spans": []}', '{"words": ["\\ud800"], "labels": ["O"]}'])
def test_half_a_surrogate_pair_is_refused(record: str):
    for data in (record, f"[{record}]"):
        with pytest.raises(DataError, match="got half of a surrogate pair"):
            read(data.encode(), ".jsonl" if data == record else ".json")


MANY = [
    ("ab " * 8000, [(3 * i, 3 * i + 2) for i in range(8000)]),
    ("Ab cd.\n" * 8000, [(7 * i, 7 * i + 2) for i in range(8000)]),
    ("a" * 16_000, [(2 * i, 2 * i + 1) for i in range(8000)]),
]


@pytest.mark.parametrize(("text", "places"), MANY, ids=["one sentence", "many sentences", "one word"])
def test_eight_thousand_spans_are_read_soon(text: str, places: list[tuple[int, int]]):
    spans = [{"start": start, "end": end, "label": "PER"} for start, end in places]
    started = time.process_time()
    labels = read(json.dumps({"text": text, "spans": spans}).encode(), ".jsonl")
    assert time.process_time() - started < 2.5
    assert sum(tags.count("B-PER") for tags in labels) == 8000


def test_the_index_of_spans_finds_what_a_look_at_all_finds():
    rng = np.random.default_rng(0)
    for _ in range(200):
        starts, lengths = rng.integers(0, 30, 8), rng.integers(0, 12, 8)
        spans = [TextSpan(int(a), int(a + n), "X") for a, n in zip(starts, lengths, strict=True)]
        index = SpanIndex(spans)
        for start in range(40):
            for end in range(start, 42, 5):
                between = [span for span in sorted(spans) if span.start < end and span.end > start]
                assert index.between(start, end) == between
                joins = any(span.start < start and span.end > end for span in spans)
                assert index.join(start, end) == joins


MEASURE = """
import resource, sys
from crossfill.data.readers import read_corpus
from crossfill.data.reading import ReadingHints
ending, data = sys.argv[1], sys.stdin.buffer.read()
read_corpus(data[:3000].rpartition(b"\\n\\n")[0] + b"\\n\\n", "x", "pos", ReadingHints(), ending, False)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
corpus = read_corpus(data, "x", "pos", ReadingHints(), ending, False).corpus
print(len(corpus), 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / len(data))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is counted as on Linux")
@pytest.mark.parametrize("ending", [".bio", ".conllu"])
def test_reading_takes_at_most_fifteen_times_the_memory_of_the_text(ending: str):
    row = "wordword{}\tNOUN\n" if ending == ".bio" else "{}\tword\tword\tNOUN\t_\t_\t0\troot\t_\t_\n"
    sentence = "".join(row.format(i) for i in range(1, 21)) + "\n"
    data = (sentence * (8_000_000 // len(sentence))).encode()
    command = [sys.executable, "-c", MEASURE, ending]
    done = subprocess.run(command, input=data, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    n_sentences, times = done.stdout.split()
    assert int(n_sentences) == 8_000_000 // len(sentence)
    assert float(times) < 15
