"""Shards of files: all records once and in order, whatever their size, and bad ones with their line."""

import gzip
import json
import random
from io import BytesIO
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest
from pyarrow import parquet

from crossfill.bulk.places import Place
from crossfill.bulk.shards import Shard, cut, read, source_format
from crossfill.data.lines import LONGEST_LINE
from crossfill.data.streams import Format, Item, read_items
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
    aside: list[tuple[int, str, str]] = []
    found = [item for shard in shards for _, item in read(shard, "wol", "words", lambda *told: aside.append(told))]
    return found, aside


@pytest.mark.parametrize("form", get_args(Format))
@pytest.mark.parametrize("size", [1, 37, 400, 10**6])
def test_shards_hold_what_the_file_holds(form: Format, size: int, tmp_path: Path):
    path = tmp_path / f"in.{form}"
    path.write_bytes(written(form, 40).encode())
    shards = cut(Place(str(path)), path.name, form, size)
    expected = list(read_items(BytesIO(path.read_bytes()), str(path), form, "wol", "words"))
    assert items(shards) == (expected, [])
    assert [shard.start for shard in shards] == [0, *(shard.end for shard in shards)][: len(shards)]
    assert len({shard.name for shard in shards}) == len(shards)
    assert (len(shards) == 1) == (size == 10**6)
    assert all(shard.bytes < size + 200 for shard in shards)


def test_rows_of_parquet_and_files_in_gzip(tmp_path: Path):
    words = [random.Random(i).choice(SENTENCES) for i in range(50)]
    path = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"tokens": words, "id": list(range(50))}), path, row_group_size=20)
    shards = cut(Place(str(path)), path.name, "parquet", path.stat().st_size // 7)
    assert 7 <= len(shards) <= 9
    found, _ = items(shards)
    assert [list(item.sentence.words) for item in found] == words
    assert [item.fields["id"] for item in found] == list(range(50))

    packed = tmp_path / "in.jsonl.gz"
    packed.write_bytes(gzip.compress(written("jsonl", 30).encode()))
    assert source_format(packed.name, None) == "jsonl"
    [shard] = cut(Place(str(packed)), packed.name, "jsonl", 10)
    assert shard.name == "in"
    assert [item.fields["id"] for item in items([shard])[0]] == list(range(30))

    with pytest.raises(DataError, match="expected a Parquet file"):
        cut(Place(str(packed)), "x.parquet", "parquet", 10)


@pytest.mark.parametrize("size", [1, 60, 10**6])
def test_bad_lines_are_set_aside_with_their_place(size: int, tmp_path: Path):
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
    found, aside = items(cut(Place(str(path)), path.name, "jsonl", size))
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
    found, [(line, problem, text)] = items(cut(Place(str(path)), path.name, "conllu", 1))
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
    shards = cut(Place(str(path)), path.name, "text", 1000)
    found, aside = items(shards)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [item.sentence.words for item in found] == [("a", "b")]
    assert [line for line, _, _ in aside] == [1]
    assert peak < 8 * 2**20


def test_addresses_folders_and_patterns(tmp_path: Path):
    for name in ("a/x.txt", "b/x.txt", "b/y.jsonl", "b/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n")
    assert sorted(Place(str(tmp_path)).matches()) == ["a/x.txt", "b/x.txt", "b/y.jsonl"]
    assert sorted(Place(f"{tmp_path}/*/x.txt").matches()) == ["a/x.txt", "b/x.txt"]
    assert list(Place(f"{tmp_path}/b/x.txt").matches()) == ["x.txt"]
    with pytest.raises(DataError, match="expected files to read, found none"):
        Place(f"{tmp_path}/c*").matches()
    with pytest.raises(DataError, match="expected an address that can be read"):
        Place("nosuchscheme://a").matches()

    elsewhere = Place("memory://corpora/news")
    (elsewhere / "x.txt").write(b"a b\nc\n")
    assert elsewhere.sizes() == {"x.txt": 6}
    [(name, place)] = Place("memory://corpora/news/*.txt").matches().items()
    assert name == "x.txt"
    found, _ = items(cut(place, name, "text", 1))
    assert [item.sentence.words for item in found] == [("a", "b"), ("c",)]
