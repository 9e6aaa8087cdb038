"""Shards of files: all records once and in order, and bad ones with their line."""

import gzip
import json
import os
import random
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest
from pyarrow import parquet

from crossfill.bulk.shards import Shard, SourceFormat, find_shard, matching_files, read_shard, source_format
from crossfill.data.reading import LONGEST_LINE
from crossfill.data.segmentation import Segmenter
from crossfill.data.streams import FIELD_TEXTS, Format, Item, read_items
from crossfill.errors import DataError

SENTENCES = [["Dakar", "mooy", "péeyu", "Senegaal", "."], ["Dafa", "tàng"], ["ñu", "dem"]]


def written(form: str, n: int) -> str:
    rng, parts = random.Random(n), []
    for i in range(n):
        words = rng.choice(SENTENCES)
        match form:
            case "text":
                parts.append(" ".join(words) + rng.choice(["\n", "\r\n", "\n\n"]))
            case "jsonl":
                parts.append(json.dumps({"id": i, "words": words}) + "\n")
            case "bio":
                parts.append("".join(f"{word}\tO\n" for word in words) + rng.choice(["\n", " \n", "\n\n"]))
            case _:
                rows = (f"{j}\t{word}" + "\t_" * 8 for j, word in enumerate(words, start=1))
                parts.append(f"# sent_id = {i}\n" + "".join(row + "\n" for row in rows) + "\n")
    return "".join(parts)


def items(shards: list[Shard]) -> tuple[list[Item], list[tuple[int, str, str]]]:
    bad: list[tuple[int, str, str]] = []
    read = (read_shard(shard, Segmenter("wol"), "words", lambda *record: bad.append(record)) for shard in shards)
    return [item for part in read for _, item in part], bad


def shards_of(path: Path, form: SourceFormat) -> list[Shard]:
    shard = find_shard(path, path.name, form)
    return [shard] if shard else []


@pytest.mark.parametrize("form", [form for form in get_args(Format) if form not in FIELD_TEXTS])
def test_a_shard_holds_what_its_file_holds(form: Format, tmp_path: Path):
    path = tmp_path / f"in.{form}"
    path.write_bytes(written(form, 40).encode())
    [shard] = shards_of(path, form)
    expected = list(read_items(BytesIO(path.read_bytes()), str(path), form, Segmenter("wol"), "words"))
    assert items([shard]) == (expected, [])
    assert (shard.bytes, shard.lines) == (path.stat().st_size, path.read_bytes().count(b"\n"))
    path.write_bytes(b"")
    assert shards_of(path, form) == []


@pytest.mark.parametrize("name", ["in.txt", "in.txt.gz", "in.parquet"])
@pytest.mark.parametrize("change", ["emptied", "shorter", "longer", "as long"])
def test_a_file_that_changes_after_the_plan_is_noticed(name: str, change: str, tmp_path: Path):
    path = tmp_path / name

    def write(words: list[list[str]]) -> None:
        content = "".join(" ".join(sentence) + "\n" for sentence in words).encode()
        if name == "in.parquet":
            parquet.write_table(pa.table({"tokens": words}), path, row_group_size=2)
        else:
            path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        os.utime(path, (next(clock),) * 2)

    clock = count()
    words = [["Dakar", "mooy"], ["péeyu", "Senegaal"], ["Dafa", "tàng"]]
    write(words)
    shards = shards_of(path, "parquet" if name == "in.parquet" else "text")
    assert len(items(shards)[0]) == 3
    changed = {"shorter": words[:1], "longer": [*words, ["a"]], "as long": [["Dakar", "mooz"], *words[1:]]}
    write(changed[change]) if change in changed else path.write_bytes(b"")
    with pytest.raises(DataError, match=r"the file has changed|expected a Parquet file|expected gzip"):
        items(shards)
    write(words)
    reading = read_shard(shards_of(path, shards[0].form)[0], Segmenter("wol"), "words", lambda *_: None)
    next(reading)
    write(changed[change]) if change in changed else path.write_bytes(b"")
    with pytest.raises(DataError, match=r"the file has changed|expected a Parquet file"):
        list(reading)


def test_parquet_and_files_in_gzip(tmp_path: Path):
    words = [random.Random(i).choice(SENTENCES) for i in range(50)]
    path = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"tokens": words, "id": list(range(50))}), path, row_group_size=20)
    [shard] = shards_of(path, "parquet")
    assert (shard.name, shard.lines) == ("in", 50)
    found, _ = items([shard])
    assert [list(item.sentence.words) for item in found] == words
    assert [item.fields["id"] for item in found] == list(range(50))

    packed = tmp_path / "in.jsonl.gz"
    packed.write_bytes(gzip.compress(written("jsonl", 30).encode()))
    assert source_format(packed.name, None) == "jsonl"
    [shard] = shards_of(packed, "jsonl")
    assert shard.name == "in"
    assert [item.fields["id"] for item in items([shard])[0]] == list(range(30))

    with pytest.raises(DataError, match="expected a Parquet file"):
        shards_of(packed, "parquet")


def test_bad_lines_are_set_aside_with_their_place(tmp_path: Path):
    good = b'{"words": ["a"]}\n'
    bad = [
        b"\xff\n",
        b"{\n",
        b'{"words": 3}\n',
        b'{"text": "' + b"x" * LONGEST_LINE + b'"}\n',
        b'{"text": "a\\ud800"}\n',
    ]
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"".join(good + line for line in bad) + good)
    found, aside = items(shards_of(path, "jsonl"))
    assert len(found) == 6
    assert [line for line, _, _ in aside] == [2, 4, 6, 8, 10]
    reasons = ["expected UTF-8", "JSON object", '"words" as a list', "at most 1,000,000 bytes", "surrogate"]
    for (line, problem, _), reason in zip(aside, reasons, strict=True):
        assert reason in problem
        assert f"{path}:{line}" in problem or "bytes" in problem


def test_a_bad_line_takes_its_sentence_with_it_and_no_other(tmp_path: Path):
    lines = written("conllu", 3).split("\n\n")
    lines[1] = lines[1].replace("\t_", " _", 1)
    path = tmp_path / "in.conllu"
    path.write_text("\n\n".join(lines))
    found, [(line, problem, text)] = items(shards_of(path, "conllu"))
    assert [item.conllu.comments[0] for item in found if item.conllu] == ["# sent_id = 0", "# sent_id = 2"]
    first = path.read_text().split("# sent_id = 1")[0].count("\n") + 1
    assert line == first
    assert f"{path}:{first + 1}: expected 10 columns" in problem
    assert text.startswith("# sent_id = 1")


def test_a_line_that_never_ends_takes_no_memory(tmp_path: Path):
    import tracemalloc

    path = tmp_path / "in.txt"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b"a" * 2**20)
        file.write(b"\na b\n")
    tracemalloc.start()
    shards = shards_of(path, "text")
    found, aside = items(shards)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [item.sentence.words for item in found] == [("a", "b")]
    assert [line for line, _, _ in aside] == [1]
    assert peak < 8 * 2**20


def test_folders_and_patterns(tmp_path: Path):
    for name in ("a/x.txt", "b/x.txt", "b/y.jsonl", "b/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n")
    assert list(matching_files(str(tmp_path))) == ["a/x.txt", "b/x.txt", "b/y.jsonl"]
    assert list(matching_files(f"{tmp_path}/*/x.txt")) == ["a/x.txt", "b/x.txt"]
    assert list(matching_files(f"{tmp_path}/b/x.txt")) == ["x.txt"]
    with pytest.raises(DataError, match="expected files to read, found none"):
        matching_files(f"{tmp_path}/c*")
