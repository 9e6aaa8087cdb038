"""The plan of a bulk run: its settings and shards, kept in the output folder so that a killed run can be resumed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from crossfill import checkpoint
from crossfill.bulk.places import Place
from crossfill.bulk.shards import Shard, cut, source_format
from crossfill.bulk.tagging import RECORDS, SUFFIXES, TAGGED
from crossfill.errors import DataError, OutputError

PLAN = "plan.json"
LOCK = ".lock"
ASIDE = "set-aside.jsonl"
_FORMAT = 1
_NO_PART = (checkpoint.CARD, checkpoint.RESULTS, checkpoint.LOCK)
"""Files of a model folder that taggings do not depend on."""


@dataclass(frozen=True)
class Plan:
    """What is to be done: nothing in it depends on the executor."""

    settings: Mapping[str, Any]
    """Model, cells and options: all that the taggings of a text depend on."""
    shards: Sequence[Shard]

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "format": _FORMAT,
            "settings": dict(self.settings),
            "shards": {shard.name: shard.as_dict() for shard in self.shards},
        }

    def outcome(self, shard: str) -> str:
        """The file of a shard's tagged text, in the output folder."""
        return f"{TAGGED}/{shard}{SUFFIXES[self.settings['form']]}"


def plan_tagging(inputs: Sequence[str], settings: Mapping[str, Any], named: str | None, size: int) -> Plan:
    """Find the files and cut them into shards of about `size` bytes; `named` is the format, if the ending is wrong."""
    found: dict[str, Place] = {}
    for address in inputs:
        for name, place in Place(address).matches().items():
            if found.setdefault(name, place) != place:
                raise DataError(
                    f"expected inputs with different names, got {found[name]} and {place}; name the folder that both "
                    "are in, or tag them one after the other"
                )
    shards = [s for name, place in found.items() for s in cut(place, name, source_format(name, named), size)]
    if not shards:
        raise DataError(f"expected text to tag, got {len(found)} empty files; check the paths")
    same = [name for name, n in _counted(shard.name for shard in shards).items() if n > 1]
    if same:
        raise DataError(f"expected files whose names differ before their endings, got several named {same[0]}")
    return Plan(settings, shards)


def model_digest(model: str) -> str:
    """A hash of all files of a model folder that taggings depend on."""
    folder, digest = Path(model), blake2b(digest_size=16)
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and path.name not in _NO_PART:
            digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while block := file.read(2**24):
                    digest.update(block)
    return digest.hexdigest()


def take_up(plan: Plan, out: Place, force: bool) -> set[str]:
    """The names of shards that an earlier run has finished; writes the plan if there is none in the folder.

    A folder with something else in it is refused, unless `force` says to begin anew.
    """
    wanted, found, sizes = plan.as_dict(), _read(out / PLAN), out.sizes()
    others = sorted(name for name in sizes if name != LOCK)
    if found is None and others and not force:
        raise OutputError(
            f"{out}: expected a new or empty folder, found {others[0]} in it; name another with --out, or add --force"
        )
    if found is not None and found != wanted and not force:
        raise OutputError(
            f"{out}: expected the run of this command, found one that differs in {_difference(found, wanted)}; name "
            "another folder with --out, or add --force to begin anew"
        )
    if found != wanted:
        for name in others if found is not None else ():
            if name.startswith((f"{TAGGED}/", f"{RECORDS}/")) or name in (PLAN, ASIDE):
                (out / name).remove()
        (out / PLAN).write(_written(wanted))
    finished = set()
    for shard in plan.shards if found == wanted else ():
        record = _read(out / RECORDS / f"{shard.name}.json") if f"{RECORDS}/{shard.name}.json" in sizes else None
        if record is not None and sizes.get(plan.outcome(shard.name)) == record.get("bytes"):
            finished.add(shard.name)
    return finished


def write_aside(plan: Plan, out: Place) -> tuple[int, int, int]:
    """Collect the records that were set aside; returns the numbers of sentences, of words, and of those."""
    n_sentences, n_words, lines = 0, 0, []
    for shard in plan.shards:
        record = _read(out / RECORDS / f"{shard.name}.json") or {}
        n_sentences += record.get("sentences", 0)
        n_words += record.get("words", 0)
        lines += [json.dumps(one, ensure_ascii=False) + "\n" for one in record.get("set_aside", ())]
    (out / ASIDE).write("".join(lines).encode())
    return n_sentences, n_words, len(lines)


def _difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What two plans differ in."""
    old, new = found.get("settings", {}), wanted["settings"]
    names = [name for name in new if old.get(name) != new[name]]
    return ", ".join(names) or "its inputs"


def _counted(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


def _read(place: Place) -> Any:
    content = place.read()
    if content is None:
        return None
    try:
        return json.loads(content)
    except ValueError:
        raise OutputError(f"{place}: expected JSON; delete it, or name another folder with --out") from None


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"
