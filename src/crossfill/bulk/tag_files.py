"""Tag many files shard by shard: the plan, kept in the output folder to resume a killed run, and the work on a shard.

plan.json            the settings and the shards
tagged/<name>.jsonl  the tagged text of a shard
records/<name>.json  what is known of a finished shard: numbers of sentences and words, seconds, bad records
set-aside.jsonl      the bad records of all shards
"""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import blake2b, file_digest
from itertools import islice
from pathlib import Path
from typing import Any

from crossfill import checkpoint
from crossfill.bulk.shards import OnBadRecord, Shard, find_shard, matching_files, read_shard, source_format
from crossfill.data.streams import Item
from crossfill.errors import CrossfillError, DataError, OutputError
from crossfill.executors.worker_jobs import LOCK
from crossfill.files import replacing, write_atomically
from crossfill.grid.task import Unit
from crossfill.prediction.tagging import Tagging, TaggingOptions
from crossfill.progress import Report
from crossfill.tagger import render
from crossfill.tagger.tagger import CHUNK_SENTENCES, Tagger, load

PLAN, SET_ASIDE, RECORDS, TAGGED = "plan.json", "set-aside.jsonl", "records", "tagged"
SUFFIXES = {"jsonl": ".jsonl", "conllu": ".conllu", "bio": ".bio"}
"""Formats that shards are written in, and the endings of their files."""
_FORMAT = 1
_NO_PART = (checkpoint.CARD, checkpoint.RESULTS, checkpoint.LOCK)
"""Files of a model folder that taggings do not depend on."""
_LONGEST = 300
"""Characters that are kept of a problem, and of the text that has it."""


@dataclass(frozen=True)
class TaggingPlan:
    """What is to be done: nothing in it depends on the executor."""

    settings: Mapping[str, Any]
    """Model, cells and options: all that the taggings of a text depend on."""
    shards: Sequence[Shard]

    def outcome(self, shard: str) -> str:
        """Return the file of a shard's tagged text, in the output folder."""
        return f"{TAGGED}/{shard}{SUFFIXES[self.settings['form']]}"


def plan_tagging(inputs: Sequence[str], settings: Mapping[str, Any], named: str | None) -> TaggingPlan:
    """Find the files and their shards; `named` is the format, if the ending is wrong."""
    files = [entry for text in inputs for entry in matching_files(text).items()]
    shards: dict[str, Shard] = {}
    for name, path in files:
        shard = find_shard(path, name, source_format(name, named))
        if shard and (other := shards.setdefault(shard.name, shard).file) != shard.file:
            both = f"{other} and {shard.file}"
            raise DataError(f"expected files whose names differ before their endings, got {both}; name their folder")
    if not shards:
        raise DataError(f"expected text to tag, got {len(files)} empty files; check the paths")
    return TaggingPlan(settings, list(shards.values()))


def model_digest(model: str) -> str:
    """Return a hash of all files of a model folder that taggings depend on."""
    folder, digest = Path(model), blake2b(digest_size=16)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in _NO_PART:
            with path.open("rb") as file:
                content = file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\0".encode())
    return digest.hexdigest()


def resume(plan: TaggingPlan, out: Path, force: bool) -> set[str]:
    """Write the plan if there is none in the folder; returns the names of shards that an earlier run has finished.

    A folder with something else in it is refused, unless `force` says to begin again.
    """
    shards = {shard.name: asdict(shard) for shard in plan.shards}
    wanted = {"format": _FORMAT, "settings": dict(plan.settings), "shards": shards}
    earlier = _read(out / PLAN)
    others = sorted(path.name for path in out.glob("*") if path.name != LOCK)
    if earlier is None and others and not force:
        problem = f"expected a new or empty folder, found {others[0]} in it"
        raise OutputError(f"{out}: {problem}; name another with --out, or add --force")
    if earlier == wanted:
        return {shard for shard in shards if _is_finished(plan, out, shard)}
    if earlier is not None and not force:
        before = earlier.get("settings", {})
        changed = [name for name, value in plan.settings.items() if before.get(name) != value]
        problem = f"expected the run of this command, found one that differs in {', '.join(changed) or 'its inputs'}"
        raise OutputError(f"{out}: {problem}; name another folder with --out, or add --force to begin again")
    if earlier is not None:
        shutil.rmtree(out / TAGGED, ignore_errors=True)
        shutil.rmtree(out / RECORDS, ignore_errors=True)
        (out / SET_ASIDE).unlink(missing_ok=True)
    write_atomically(out / PLAN, json.dumps(wanted, ensure_ascii=False, indent=1).encode() + b"\n")
    return set()


def _is_finished(plan: TaggingPlan, out: Path, shard: str) -> bool:
    record, outcome = _read(out / RECORDS / f"{shard}.json"), out / plan.outcome(shard)
    return bool(record) and outcome.is_file() and outcome.stat().st_size == record["bytes"]


def collect_records(plan: TaggingPlan, out: Path) -> tuple[int, int, int]:
    """Collect the bad records of all shards; returns the numbers of sentences, of words, and of bad records."""
    n_sentences, n_words, lines = 0, 0, []
    for shard in plan.shards:
        record = _read(out / RECORDS / f"{shard.name}.json") or {}
        n_sentences += record.get("sentences", 0)
        n_words += record.get("words", 0)
        lines += [json.dumps(one, ensure_ascii=False) + "\n" for one in record.get("set_aside", ())]
    write_atomically(out / SET_ASIDE, "".join(lines).encode())
    return n_sentences, n_words, len(lines)


def tag_shard(
    settings: Mapping[str, Any], shard: Shard, out: Path, threads: int, report: Report | None = None
) -> dict[str, Any]:
    """Tag a shard, in a worker that keeps its model, and write the outcome, then the record that says it is done."""
    import torch

    torch.set_num_threads(threads)
    started, computed = time.monotonic(), time.process_time()
    form, distribution = settings["form"], settings["distribution"]
    tagger = _tagger(settings["model"], settings["encoder"])
    segmenter = tagger.segmenter(settings["cells"][0])
    bad_records: list[dict[str, str]] = []

    def set_aside(line: int, problem: str, text: str) -> None:
        where = f"{shard.file}:{line}"
        bad_records.append({"where": where, "problem": problem[:_LONGEST], "text": text[:_LONGEST]})

    items = read_shard(shard, segmenter, settings["cutting"], set_aside, Unit(settings["unit"]))
    n_sentences = n_words = n_bytes = 0
    with replacing(out / TAGGED / f"{shard.name}{SUFFIXES[form]}") as file:
        while part := list(islice(items, CHUNK_SENTENCES)):
            for line, item, taggings in _tag(tagger, part, settings, set_aside):
                header = render.header(taggings, distribution) if form == "bio" and not n_sentences else ""
                n_sentences += 1
                n_words += len(item.sentence)
                text = header + render.tagged(form, item, taggings, distribution, f"{shard.name}-{n_sentences}")
                n_bytes += file.write(text.encode())
                if report is not None:
                    report(line - 1, f"{n_words:,} words")
    record = {
        "sentences": n_sentences,
        "words": n_words,
        "bytes": n_bytes,
        "seconds": round(time.monotonic() - started, 3),
        "cpu_seconds": round(time.process_time() - computed, 3),
        "set_aside": bad_records,
    }
    write_atomically(out / RECORDS / f"{shard.name}.json", json.dumps(record, ensure_ascii=False).encode())
    return {"n_words": n_words}


def _tag(
    tagger: Tagger, part: Sequence[tuple[int, Item]], settings: Mapping[str, Any], on_bad_record: OnBadRecord
) -> Iterator[tuple[int, Item, tuple[Tagging, ...]]]:
    """Tag items with one pass through the encoder; if it fails, one by one, to set aside those at fault."""
    cells, options = [tagger.target(name) for name in settings["cells"]], TaggingOptions(**settings["options"])
    try:
        tagged = list(tagger.tag_cells((item.sentence for _, item in part), cells, settings["samples"], options))
    except CrossfillError as error:
        if len(part) > 1:
            for one in part:
                yield from _tag(tagger, [one], settings, on_bad_record)
        else:
            line, item = part[0]
            on_bad_record(line, str(error), item.sentence.text)
    else:
        yield from ((line, item, taggings) for (line, item), taggings in zip(part, tagged, strict=True))


@lru_cache(maxsize=1)
def _tagger(model: str, encoder: str | None) -> Tagger:
    return load(model, encoder)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise OutputError(f"{path}: expected JSON; delete it, or name another folder with --out") from None
