"""Thousands of damaged files: each is read, or refused with its line and a remedy."""

import random
import re
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from crossfill.data.readers import READERS
from crossfill.errors import DataError
from tests.data.folders import bio

CONLLU = """# sent_id = 1
# text = Tenka moku, erwalo tilo.
1	Tenka	tenka	PROPN	N	Case=Nom|Number=Sing	2	nsubj	_	_
2	moku	moku	VERB	V	_	0	root	_	SpaceAfter=No
3	,	,	PUNCT	_	_	2	punct	_	_
4-5	erwalo	_	_	_	_	_	_	_	_
4	erwa	erwa	NOUN	N	Case=Acc	2	obj	_	_
5	lo	lo	PRON	P	_	4	det:poss	_	_
5.1	moku	moku	VERB	V	_	_	_	2:conj	_
6	tilo	tilo	NOUN	N	Case=Loc	2	obl	_	SpaceAfter=No
7	.	.	PUNCT	_	_	2	punct	_	_

# sent_id = 2
1	ሰላም	_	INTJ	_	_	0	root	_	_
2	péey	_	NOUN	_	_	1	vocative	_	_

"""
BIO = bio(
    [("wo:Dakar", "B-LOC"), ("wo:mooy", "O"), ("wo:Senegaal", "B-LOC"), ("wo:.", "O")],
    [("wo:Aminata", "B-PER"), ("wo:Sow", "I-PER"), ("wo:péey", "O")],
)
Mutation = Callable[[random.Random, bytes], bytes]


def flip_bytes(rng: random.Random, data: bytes) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)


def on_lines(change: Callable[[random.Random, list[bytes]], None]) -> Mutation:
    def mutate(rng: random.Random, data: bytes) -> bytes:
        lines = data.split(b"\n")
        for _ in range(rng.randint(1, 3)):
            change(rng, lines)
        return b"\n".join(lines)

    return mutate


@on_lines
def cut_line(rng: random.Random, lines: list[bytes]) -> None:
    i = rng.randrange(len(lines))
    lines[i] = lines[i][: rng.randint(0, len(lines[i]))]


@on_lines
def move_line(rng: random.Random, lines: list[bytes]) -> None:
    lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))


@on_lines
def repeat_line(rng: random.Random, lines: list[bytes]) -> None:
    i = rng.randrange(len(lines))
    lines[i:i] = [lines[i]] * rng.randint(1, 50)


@on_lines
def drop_column(rng: random.Random, lines: list[bytes]) -> None:
    i = rng.randrange(len(lines))
    columns = lines[i].split(b"\t")
    del columns[rng.randrange(len(columns))]
    lines[i] = b"\t".join(columns)


@on_lines
def fill_column(rng: random.Random, lines: list[bytes]) -> None:
    odd = [
        b"",
        b" ",
        b"\xc2\xa0",
        b"\xe2\x80\xa8",
        b"\0",
        b"9" * 6000,
        b"1-2",
        b"0",
        b"1.1",
        b"-1",
        b"#",
        b"_",
        b"B-",
        b"w" * 10**5,
    ]
    i = rng.randrange(len(lines))
    columns = lines[i].split(b"\t")
    columns[rng.randrange(len(columns))] = rng.choice(odd)
    lines[i] = b"\t".join(columns)


def break_encoding(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "ignore")
    how = rng.choice(["utf-16", "utf-32", "latin-1", "cp1256", "utf-8-sig", "shift-jis"])
    return text.encode(how, "replace")


def break_line_ends(rng: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", rng.choice([b"\r", b"\r\n", b"\n\r", b"\x0b", b"\n\n", b" \n\t\n", b"\xe2\x80\xa9"]))


def swap_separators(rng: random.Random, data: bytes) -> bytes:
    return data.replace(b"\t", rng.choice([b" ", b"  ", b"\t\t", b",", b" \t", b""]))


def cut_file(rng: random.Random, data: bytes) -> bytes:
    start, end = sorted(rng.sample(range(len(data) + 1), 2))
    return data[start:end] if rng.random() < 0.5 else data[:start] + data[end:]


MUTATIONS: list[Mutation] = [
    flip_bytes,
    cut_line,
    move_line,
    repeat_line,
    drop_column,
    fill_column,
    break_encoding,
    break_line_ends,
    swap_separators,
    cut_file,
]
N_FILES = 2600


@pytest.mark.parametrize(("name", "source"), [("train.conllu", CONLLU), ("train.bio", BIO)], ids=["conllu", "bio"])
def test_a_damaged_file_is_read_or_refused(name: str, source: str):
    read, tasks = READERS[Path(name).suffix], ("pos", "deprel", "feats:Case")
    rng = random.Random(3)
    refused = 0
    slowest = 0.0
    tracemalloc.start()
    for i in range(N_FILES // 2):
        data = source.encode()
        for _ in range(1 + i % 3):
            data = rng.choice(MUTATIONS)(rng, data) if data else b"x"
        began = time.process_time()
        try:
            corpus = read(data, f"pos/wol {name}", rng.choice(tasks)).corpus
        except DataError as error:
            refused += 1
            message = str(error)
        else:
            message = ""
            assert len(corpus.labels) == len(corpus.words) == corpus.offsets[-1]
            assert len(list(corpus)) == len(corpus)
        assert not message or re.match(rf"pos/wol {re.escape(name)}:[0-9]+: [^;]+; .+", message), (message, data)
        slowest = max(slowest, time.process_time() - began)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert N_FILES * 0.1 < refused < N_FILES * 0.45, "a fuzzer whose files are all refused, or all read, tests nothing"
    assert slowest < 2
    assert peak < 100e6
