"""How much faster is crossfill's CoNLL-U reader than a plain loop over `conllu.parse`?

python benchmarks/parse.py DATA    reads every .conllu file under DATA with both, twice, and keeps the better time.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import conllu as package

from crossfill.data import conllu
from crossfill.data.labels import LabelColumn
from crossfill.grid.sentence import Corpus


def with_package(path: Path) -> int:
    return sum(
        isinstance(token["id"], int) for sentence in package.parse(path.read_text("utf-8")) for token in sentence
    )


def with_crossfill(path: Path) -> int:
    label = LabelColumn("pos")
    return Corpus.from_sentences(s.sentence(label) for s in conllu.parse(path.read_bytes(), path.name)).n_words


def timed(read: Callable[[Path], int], paths: list[Path]) -> tuple[int, float]:
    seconds, n_words = [], 0
    for _ in range(2):
        began = time.perf_counter()
        n_words = sum(map(read, paths))
        seconds.append(time.perf_counter() - began)
    return n_words, min(seconds)


if __name__ == "__main__":
    paths = sorted(Path(sys.argv[1]).rglob("*.conllu"))
    (words, theirs), (ours_words, ours) = timed(with_package, paths), timed(with_crossfill, paths)
    if words != ours_words:
        raise SystemExit(f"expected the same words from both readers, got {words} and {ours_words}")
    result = {
        "benchmark": "parse",
        "files": len(paths),
        "words": words,
        "conllu_seconds": round(theirs, 2),
        "crossfill_seconds": round(ours, 2),
        "ratio": round(theirs / ours, 1),
        "crossfill_words_per_second": round(words / ours),
    }
    print(json.dumps(result))
