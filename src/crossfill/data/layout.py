"""Find the corpus files of a data folder, and their task, language and split."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crossfill.data.codes import find_language, is_own_name
from crossfill.data.labels import task_name
from crossfill.data.messages import Level, Message
from crossfill.data.readers import PLAIN, READERS
from crossfill.data.reading import is_hint_file
from crossfill.errors import DataError

Split = Literal["train", "dev", "test", "surplus", "whole"]
UD = "ud"  # the task given to files that hold several tasks, one per column
KNOWN_FOLDERS = {"typology": "typological vectors, which say how similar languages are", "text": "unlabelled text"}
"""Folders at the top of a data folder that hold no corpora."""
_DEPTH = 5
_SPLITS: dict[str, Split] = {"train": "train", "test": "test", "surplus": "surplus", "extra": "surplus"}
_SPLITS |= dict.fromkeys(("dev", "valid", "validation", "val"), "dev")
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
Reason = tuple[Level, str]
"""Why a file is not read."""


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

    Recognised: `<task>/<language>/{train,dev,test,surplus}.*`, where the language may also be a name of one's own (with
    a hyphen: `ner/my-dialect/train.bio`), one file per language (`<task>/<language>.bio`), UD releases
    (`UD_Wolof-WTF/wo_wtf-ud-train.conllu`) and WikiANN as it is distributed (`wikiann-wo.bio`, `wo/train`).
    """
    if not root.is_dir():
        got = "a file" if root.exists() else "nothing"
        raise DataError(f"{root}: expected a folder of corpora, <task>/<language>/train.conllu or .bio; got {got}")
    candidates: list[SourceFile] = []
    left: list[tuple[Path, Reason]] = []
    closed = {root / name: why for name, why in KNOWN_FOLDERS.items()}
    if cache is not None:
        closed[cache.absolute()] = closed[cache.resolve()] = "the cache of crossfill"
    for path, why in _walk(root, 0, closed):
        source = _classify(path, root) if why is None else why
        if isinstance(source, SourceFile):
            candidates.append(source)
        elif why is not None or not is_hint_file(path.name):
            left.append((path, source))
    preferred: dict[str, SourceFile] = {}  # of files with the same name but for its ending
    for source in sorted(candidates, key=lambda source: (source.suffix in PLAIN, source.packed)):
        preferred.setdefault(source.stem, source)
    sources = []
    for source in candidates:
        if source is preferred[source.stem]:
            sources.append(source)
        else:
            why = f"{preferred[source.stem].path.name} next to it is read instead"
            left.append((source.path, ("warning", f"not read: {why}")))
    return sources, [Message(level, str(path.relative_to(root)), why) for path, (level, why) in sorted(left)]


def _walk(folder: Path, depth: int, closed: Mapping[Path, str]) -> Iterator[tuple[Path, Reason | None]]:
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
        elif why := closed.get(entry) or closed.get(entry.absolute()):
            yield entry, ("unread", why)
        elif depth == _DEPTH:
            yield entry, ("unread", f"a folder more than {_DEPTH} folders deep")
        else:
            yield from _walk(entry, depth + 1, closed)


def _classify(path: Path, root: Path) -> SourceFile | Reason:
    """Return the corpus file at a path, or why it is not read."""
    name = path.name[: -len(".gz")] if path.name.lower().endswith(".gz") else path.name
    parent, grandparent = path.absolute().parent, path.absolute().parent.parent
    if treebank := _TREEBANK.fullmatch(name):
        split = _SPLITS[treebank["split"].lower()]
        return _placed(path, UD, treebank["language"], treebank["corpus"], split, path.parent, ".conllu")
    if wikiann := _WIKIANN.fullmatch(name):
        return _placed(path, "ner", wikiann["language"], "wikiann", "whole", path.parent, ".bio")
    if name.lower().endswith(".arrow") and parent.name.lower() in _SPLITS:  # save_to_disk has a folder for each split
        home = grandparent.parent
        return _placed(path, *_task(home.name, grandparent.name), _SPLITS[parent.name.lower()], home, ".arrow")
    named, inner = _NAMED_SPLIT.fullmatch(name), Path(name)
    suffix = (inner.suffix if not named else named["suffix"] or "").lower()
    is_own = grandparent.parent == root.absolute() and is_own_name(parent.name)
    in_language = _is_language(parent.name, grandparent.name) or (is_own and named is not None)
    if suffix in PLAIN and not (named and in_language):
        return "unread", "not named after a split (train, dev, test, surplus) in a folder <task>/<language>"
    if suffix not in READERS:
        if named and in_language:
            return "warning", f"not read: no corpus by its ending {suffix}; convert it to .conllu or .bio"
        return "unread", "no corpus by its ending"
    if in_language:
        task, language, corpus = _task(grandparent.name, parent.name)
        if named:
            corpus = corpus if named["corpus"] in (None, language) else named["corpus"]
            return _placed(path, task, language, corpus, _SPLITS[named["split"].lower()], path.parent.parent, suffix)
        if inside := _SPLIT_INSIDE.search(inner.stem):
            why = f"expected a name that ends in its split, got '{inside[0]}' before its end; rename it to "
            return "error", f"{why}<corpus>-{inside[0]}{suffix}, or remove it"
        return _placed(path, task, language, inner.stem, "whole", path.parent.parent, suffix)
    if not named and _is_language(inner.stem, parent.name):
        return _placed(path, *_task(parent.name, inner.stem), "whole", path.parent, suffix)
    why = f"expected it in a folder named by its language, <task>/<language>/{path.name}, but '{parent.name}' is none; "
    why += "move it, or rename the folder to an ISO 639 code"
    return "error", f"{why}, or in <task>/ to a name of your own with a hyphen, as my-dialect"


def _is_language(name: str, above: str) -> bool:
    return find_language(name) is not None and (name not in _TASKS or above in _TASKS)


def _task(folder: str, language: str) -> tuple[str, str, str]:
    """Return the task that a folder's name stands for, the language, and the name of its corpus."""
    folded = folder.lower()
    if folded == UD or folded.startswith(("ud-treebanks", "ud_", "universal")):
        return UD, language, "ud"
    if folded.startswith(("wikiann", "panx", "pan-x")):
        return "ner", language, "wikiann"
    return task_name(folder), language, folder


def _placed(
    path: Path, task: str, code: str, corpus: str, split: Split, home: Path, suffix: str
) -> SourceFile | Reason:
    language = find_language(code)
    if language is None and not is_own_name(code):
        return "error", f"expected a language code of ISO 639, UD or WikiANN, got '{code}'; rename it"
    return SourceFile(path, task, language or code, corpus, split, home, suffix)
