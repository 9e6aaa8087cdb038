"""Find the corpus files of a data folder, and their task, language and split."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crossfill.data.codes import find_language
from crossfill.data.labels import task_name
from crossfill.data.messages import KNOWN_FOLDERS, Level, Message, skip_reason
from crossfill.data.readers import PLAIN, READERS
from crossfill.data.reading import COLUMNS_FILE, is_hint_file, label_files
from crossfill.errors import DataError

Split = Literal["train", "dev", "test", "surplus", "whole"]
UD = "ud"
"""The task given to files that hold several tasks, one per column."""

_DEPTH = 5
_SPLITS: dict[str, Split] = {
    "train": "train",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "test": "test",
    "surplus": "surplus",
    "extra": "surplus",
}
_NAMED_SPLIT = re.compile(
    rf"(?:(?P<corpus>.+)[._-])?(?P<split>{'|'.join(_SPLITS)})(?:-[0-9]+-of-[0-9]+)?(?P<suffix>\.[a-z0-9_-]+)?",
    re.IGNORECASE,
)
_SPLIT_INSIDE = re.compile(rf"(?<![a-z])(?:{'|'.join(_SPLITS)})(?![a-z])", re.IGNORECASE)
_TREEBANK = re.compile(
    r"(?P<language>[a-z]{2,3})_(?P<corpus>[a-z0-9]+)-ud-(?P<split>train|dev|test)(?:-.*)?\.conllu", re.IGNORECASE
)
_WIKIANN = re.compile(r"wikiann-(?P<language>[a-z-]+)\.bio", re.IGNORECASE)
# also ISO 639-3 codes (Yahadian and Sayula Popoluca), but a folder of that name is nearly always a task
_TASKS = frozenset({"ner", "pos"})


@dataclass(frozen=True)
class SourceFile:
    """One file of a corpus."""

    path: Path
    task: str
    language: str
    corpus: str
    split: Split
    home: Path
    """The folder of the task or of the treebank."""
    suffix: str
    """What its reader goes by: the ending of its name, without that of packed files."""

    @property
    def packed(self) -> bool:
        return self.path.name.lower().endswith(".gz")

    @property
    def stem(self) -> str:
        """Its path without endings."""
        path = str(self.path)[: -len(".gz")] if self.packed else str(self.path)
        return path[: len(path) - len(self.suffix)]


def find_sources(root: Path, cache: Path | None = None) -> tuple[list[SourceFile], list[Message]]:
    """Find the corpus files under a folder, in a fixed order, and why others are not read; `cache` is not entered.

    Recognised: `<task>/<language>/{train,dev,test,surplus}.*`, one file per language (`<task>/<language>.bio`), UD
    releases (`UD_Wolof-WTF/wo_wtf-ud-train.conllu`) and WikiANN as it is distributed (`wikiann-wo.bio`, `wo/train`).
    """
    if not root.is_dir():
        got = "a file" if root.exists() else "nothing"
        raise DataError(f"{root}: expected a folder of corpora, <task>/<language>/train.conllu or .bio; got {got}")
    sources: list[SourceFile] = []
    left: list[tuple[Path, Level, str]] = []
    hints: list[Path] = []
    closed = {root / name: why for name, why in KNOWN_FOLDERS.items()}
    if cache is not None:
        closed[cache.absolute()] = closed[cache.resolve()] = "the cache of crossfill"
    for path, why in _walk(root, 0, closed):
        source = _classify(path) if why is None else why
        if isinstance(source, SourceFile):
            sources.append(source)
        elif is_hint_file(path.name) and why is None:
            hints.append(path)
        else:
            left.append((path, *source))
    sources, twins = _without_twins(sources)
    left += twins
    for path in hints:
        below = [source for source in sources if path.parent in source.path.parents]
        if not any(path.name in (COLUMNS_FILE, *label_files(source.task)) for source in below):
            left.append((path, "unread", "names columns or labels of no corpus here"))
    return sources, [Message(level, str(path.relative_to(root)), why) for path, level, why in sorted(left)]


def _walk(folder: Path, depth: int, closed: Mapping[Path, str]) -> Iterator[tuple[Path, tuple[Level, str] | None]]:
    """Yield every file and every folder that is not entered, files first, with why it cannot hold a corpus, if so."""
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: (entry.is_dir(), entry))
    except OSError as error:
        yield folder, ("error", f"expected a readable folder; {error.strerror}")
        return
    for entry in entries:
        if entry.name.startswith("."):
            yield entry, ("unread", "hidden")
        elif entry.is_file():
            yield entry, None
        elif not entry.is_dir():
            yield entry, ("unread", "a link to nothing" if entry.is_symlink() else "no regular file")
        elif why := closed.get(entry) or closed.get(entry.absolute()):
            yield entry, ("unread", why)
        elif entry.is_symlink() and entry.resolve() in entry.absolute().parents:
            yield entry, ("unread", "a link to a folder that it is in")
        elif depth == _DEPTH:
            yield entry, ("unread", f"a folder more than {_DEPTH} folders deep")
        else:
            yield from _walk(entry, depth + 1, closed)


def _without_twins(sources: list[SourceFile]) -> tuple[list[SourceFile], list[tuple[Path, Level, str]]]:
    """Leave out sources that another one holds as well, and say which one that is."""
    whole = {source.path for source in sources}
    annotated: dict[str, SourceFile] = {}
    for source in sources:
        if source.suffix not in PLAIN:
            annotated.setdefault(source.stem, source)
    kept: dict[tuple[str, str, str, Split], SourceFile] = {}
    twins: list[tuple[Path, Level, str]] = []
    for source in sources:
        key = (os.path.realpath(source.path), source.task, source.language, source.split)
        twin = annotated.get(source.stem, source)
        if source.packed and (unpacked := source.path.with_suffix("")) in whole:
            twins.append((source.path, "unread", f"{unpacked.name} next to it is read instead"))
        elif twin.suffix != source.suffix:
            plain = source.suffix == ".txt"  # UD releases have their plain text, as .txt
            why = f"{twin.path.name} next to it is read instead"
            twins.append((source.path, "unread" if plain else "warning", why if plain else f"not read: {why}"))
        elif key in kept:
            twins.append((source.path, "unread", f"a link to {kept[key].path.name}, which is read already"))
        else:
            kept[key] = source
    return list(kept.values()), twins


def _classify(path: Path) -> SourceFile | tuple[Level, str]:
    """Return the corpus file at a path, or why it is not read."""
    packed, resolved = path.name.lower().endswith(".gz"), path.absolute()
    parent, grandparent = resolved.parent.name, resolved.parent.parent.name
    name = path.name[: -len(".gz")] if packed else path.name
    if treebank := _TREEBANK.fullmatch(name):
        split = _SPLITS[treebank["split"].lower()]
        return _placed(path, UD, treebank["language"], treebank["corpus"], split, path.parent, ".conllu")
    if wikiann := _WIKIANN.fullmatch(name):
        return _placed(path, "ner", wikiann["language"], "wikiann", "whole", path.parent, ".bio")
    if name.lower().endswith(".arrow") and parent.lower() in _SPLITS:  # save_to_disk has a folder for each split
        language, home = grandparent, path.absolute().parent.parent.parent
        task, corpus = _task(home.name)
        return _placed(path, task, language, corpus, _SPLITS[parent.lower()], home, ".arrow")
    named, inner = _NAMED_SPLIT.fullmatch(name), Path(name)
    suffix = (inner.suffix if not named else named["suffix"] or "").lower()
    in_language = _is_language(parent, grandparent)
    if suffix not in READERS or (suffix in PLAIN and not (named and in_language)):
        return skip_reason(path, suffix, named is not None, in_language or _is_language(inner.stem, parent))
    if in_language:
        task, corpus = _task(grandparent)
        if not named and (inside := _SPLIT_INSIDE.search(inner.stem)):
            return (
                "error",
                f"expected a name that ends in its split, got '{inside[0]}' before its end; rename it to "
                f"<corpus>-{inside[0]}{suffix}, or remove it",
            )
        if not named:
            return _placed(path, task, parent, inner.stem, "whole", path.parent.parent, suffix)
        name = named["corpus"] or corpus
        split = _SPLITS[named["split"].lower()]
        return _placed(path, task, parent, corpus if name == parent else name, split, path.parent.parent, suffix)
    if not named and _is_language(inner.stem, parent):
        task, corpus = _task(parent)
        return _placed(path, task, inner.stem, corpus, "whole", path.parent, suffix)
    return (
        "error",
        f"expected it in a folder named by its language, <task>/<language>/{path.name}, but '{parent}' is none; "
        "move it, or rename the folder to an ISO 639 code",
    )


def _is_language(name: str, above: str) -> bool:
    return find_language(name) is not None and (name not in _TASKS or above in _TASKS)


def _task(folder: str) -> tuple[str, str]:
    """Return the task that a folder's name stands for, and the name of its corpus."""
    folded = folder.lower()
    if folded == UD or folded.startswith(("ud-treebanks", "ud_", "universal")):
        return UD, "ud"
    if folded.startswith(("wikiann", "panx", "pan-x")):
        return "ner", "wikiann"
    return task_name(folder), folder


def _placed(
    path: Path, task: str, code: str, corpus: str, split: Split, home: Path, suffix: str
) -> SourceFile | tuple[Level, str]:
    if (language := find_language(code)) is None:
        return "error", f"expected a language code of ISO 639, UD or WikiANN, got '{code}'; rename it"
    return SourceFile(path, task, language, corpus, split, home, suffix)
