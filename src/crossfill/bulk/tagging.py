"""Tagging of one shard, in a worker that keeps its model from shard to shard."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from crossfill.bulk.places import Place
from crossfill.bulk.shards import SetAside, Shard, read
from crossfill.data.streams import Item
from crossfill.errors import CrossfillError
from crossfill.executors.base import Report
from crossfill.grid.cells import Cell
from crossfill.grid.task import Unit
from crossfill.prediction.tagging import Tagging, TaggingOptions
from crossfill.tagger import render
from crossfill.tagger.tagger import Tagger, load
from crossfill.tagger.texts import CHUNK_SENTENCES

SUFFIXES = {"jsonl": ".jsonl", "conllu": ".conllu", "bio": ".bio"}
"""Formats that shards are written in, and the endings of their files."""
RECORDS, TAGGED = "records", "tagged"
"""Folders of an output folder: what is known of each finished shard, and its tagged text."""
_LONGEST = 300
"""Characters that are kept of a problem, and of the text that has it."""


class Aside(NamedTuple):
    """A record of the input that could not be read or tagged."""

    where: str
    problem: str
    text: str


def tag_shard(given: Mapping[str, Any], threads: int, report: Report | None = None) -> dict[str, Any]:
    """Tag a shard and write the outcome, then the record that says it is done; returns that record."""
    import torch

    torch.set_num_threads(threads)
    started, computed = time.monotonic(), time.process_time()
    settings, shard = given["settings"], Shard(**given["shard"])
    tagger = _tagger(settings["model"], settings["encoder"])
    cells = [tagger.cell(name) for name in settings["cells"]]
    aside: list[Aside] = []

    def set_aside(line: int, problem: str, text: str) -> None:
        aside.append(Aside(f"{shard.file}:{line}", problem[:_LONGEST], text[:_LONGEST]))

    items = read(shard, cells[0].language, settings["cutting"], set_aside, Unit(settings["unit"]))
    parts, n_sentences, n_words = [], 0, 0
    for item, taggings in _tagged(tagger, items, cells, settings, set_aside):
        parts.append(_rendered(item, taggings, settings, f"{shard.name}-{n_sentences + 1}", not parts))
        n_sentences += 1
        n_words += len(item.sentence)
        if report is not None:
            report(n_words, "words")
    content = "".join(parts).encode()
    out = Place(given["out"])
    (out / TAGGED / f"{shard.name}{SUFFIXES[settings['form']]}").write(content)
    record = {
        "sentences": n_sentences,
        "words": n_words,
        "bytes": len(content),
        "digest": blake2b(content, digest_size=16).hexdigest(),
        "seconds": round(time.monotonic() - started, 3),
        "cpu_seconds": round(time.process_time() - computed, 3),
        "set_aside": [one._asdict() for one in aside],
    }
    (out / RECORDS / f"{shard.name}.json").write(json.dumps(record, ensure_ascii=False).encode())
    return {"n_words": n_words}


def _tagged(
    tagger: Tagger,
    items: Iterator[tuple[int, Item]],
    cells: Sequence[Cell],
    settings: Mapping[str, Any],
    set_aside: SetAside,
) -> Iterator[tuple[Item, tuple[Tagging, ...]]]:
    """Sentences with their taggings, many with one pass through the encoder; one that cannot be tagged is set aside."""
    samples, options = settings["samples"], TaggingOptions(**settings["options"])
    while chunk := list(islice(items, CHUNK_SENTENCES)):
        try:
            made = list(tagger.tag_cells((item.sentence for _, item in chunk), cells, samples, options))
        except CrossfillError:
            for line, item in chunk:
                try:
                    [tagging] = tagger.tag_cells([item.sentence], cells, samples, options)
                except CrossfillError as error:
                    set_aside(line, str(error), item.sentence.text)
                else:
                    yield item, tagging
        else:
            yield from zip((item for _, item in chunk), made, strict=True)


def _rendered(item: Item, taggings: Sequence[Tagging], settings: Mapping[str, Any], name: str, first: bool) -> str:
    whole = settings["distribution"]
    match settings["form"]:
        case "conllu":
            return render.conllu(item, taggings, whole, name) if item.sentence else ""
        case "bio":
            return (render.header(taggings, whole) if first else "") + render.columns(taggings, whole)
        case _:
            return render.json_line(item, taggings, whole)


@lru_cache(maxsize=1)
def _tagger(model: str, encoder: str | None) -> Tagger:
    return load(model, encoder)
