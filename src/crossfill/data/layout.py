"""Find the corpus files of a data folder, and their task, language and split."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crossfill.data.checks import Problem
from crossfill.data.codes import find_language
from crossfill.data.labels import task_name
from crossfill.data.readers import PLAIN, READERS
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
_NAMED_SPLIT = re.compile(rf"(?:(?P<corpus>.+)[._-])?(?P<split>{'|'.join(_SPLITS)})(?P<suffix>\.[a-z0-9]+)?")
_TREEBANK = re.compile(r"(?P<language>[a-z]{2,3})_(?P<corpus>[a-z0-9]+)-ud-(?P<split>train|dev|test)(?:-.*)?\.conllu")
_WIKIANN = re.compile(r"wikiann-(?P<language>[a-z-]+)\.bio")
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


def find_sources(root: Path) -> tuple[list[SourceFile], list[Problem]]:
    """The corpus files under a folder, in a fixed order, and problems with misplaced files.

    Recognised: `<task>/<language>/{train,dev,test,surplus}.*`, one file per language (`<task>/<language>.bio`), UD
    releases (`UD_Wolof-WTF/wo_wtf-ud-train.conllu`) and WikiANN as it is distributed (`wikiann-wo.bio`, `wo/train`).
    """
    if not root.is_dir():
        found = "a file" if root.exists() else "nothing"
        raise DataError(f"{root}: expected a folder of corpora, <task>/<language>/train.conllu or .bio; got {found}")
    sources, problems = [], []
    for path in _files(root):
        found = _classify(path)
        if isinstance(found, SourceFile):
            sources.append(found)
        elif found:
            problems.append(Problem("error", str(path.relative_to(root)), found))
    annotated = {source.path.with_suffix("") for source in sources if source.path.suffix not in PLAIN}
    # UD releases contain the plain text of a treebank beside it, as .txt
    return [s for s in sources if s.path.suffix not in PLAIN or s.path.with_suffix("") not in annotated], problems


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root.resolve(), followlinks=True):
        depth = len(Path(folder).relative_to(root.resolve()).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < _DEPTH else []
        for name in sorted(files):
            if not name.startswith("."):
                yield root / Path(folder).relative_to(root.resolve()) / name


def _classify(path: Path) -> SourceFile | str | None:
    """The corpus file at a path, a message if it is misplaced, or none if it is not a corpus."""
    name, (parent, grandparent) = path.name, _parents(path)
    if treebank := _TREEBANK.fullmatch(name):
        split = _SPLITS[treebank["split"]]
        return _placed(path, UD, treebank["language"], treebank["corpus"], split, path.parent)
    if wikiann := _WIKIANN.fullmatch(name):
        return _placed(path, "ner", wikiann["language"], "wikiann", "whole", path.parent)
    named = _NAMED_SPLIT.fullmatch(name)
    suffix = path.suffix if not named else named["suffix"] or ""
    in_language = _is_language(parent, grandparent)
    if suffix not in READERS or (suffix in PLAIN and not (named and in_language)):
        return None
    if in_language:
        task, corpus = _task(grandparent)
        if not named:
            return _placed(path, task, parent, path.stem, "whole", path.parent.parent)
        own = named["corpus"] or corpus
        split = _SPLITS[named["split"]]
        return _placed(path, task, parent, corpus if own == parent else own, split, path.parent.parent)
    if not named and _is_language(path.stem, parent):
        task, corpus = _task(parent)
        return _placed(path, task, path.stem, corpus, "whole", path.parent)
    return (
        f"expected it in a folder named by its language, <task>/<language>/{name}, but '{parent}' is none; "
        "move it, or rename the folder to an ISO 639 code"
    )


def _is_language(name: str, above: str) -> bool:
    return find_language(name) is not None and (name not in _TASKS or above in _TASKS)


def _parents(path: Path) -> tuple[str, str]:
    resolved = path.absolute()
    return resolved.parent.name, resolved.parent.parent.name


def _task(folder: str) -> tuple[str, str]:
    """The task that a folder's name stands for, and the name of its corpus."""
    folded = folder.lower()
    if folded == UD or folded.startswith(("ud-treebanks", "ud_", "universal")):
        return UD, "ud"
    if folded.startswith(("wikiann", "panx", "pan-x")):
        return "ner", "wikiann"
    return task_name(folder), folder


def _placed(path: Path, task: str, code: str, corpus: str, split: Split, home: Path) -> SourceFile | str:
    if (language := find_language(code)) is None:
        return f"expected a language code of ISO 639, UD or WikiANN, got '{code}'; rename it"
    return SourceFile(path, task, language, corpus, split, home)
