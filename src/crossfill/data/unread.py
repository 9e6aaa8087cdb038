"""Why files in a data folder are not read as corpora."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePath

from crossfill.data.checks import Level, Problem

KNOWN_FOLDERS = {
    "typology": "typological vectors, which say how similar languages are",
    "text": "unlabelled text",
}
"""Folders at the top of a data folder that hold no corpora."""

_ABOUT = re.compile(
    r"(?:readme|licen[cs]e|copying|notice|changelog|contributing|citation|authors|manifest|stats)\b.*"
    r"|.*\.(?:md|rst|html?|pdf|xml|bib|cff|log)",
    re.IGNORECASE,
)
_MOST_NAMED = 3  # files of one kind in one folder that are named one by one
_ARCHIVE = re.compile(r".*\.(?:zip|tar|tgz|tar\.gz|7z|rar|bz2|xz|zst)", re.IGNORECASE)


def why_unread(path: Path, suffix: str, named: bool, in_language: bool) -> tuple[Level, str]:
    """Why a file is not read, as a warning if name (`named` after a split) and place look like a corpus."""
    if _ABOUT.fullmatch(path.name):
        return "unread", "documentation"
    if _ARCHIVE.fullmatch(path.name):
        return ("warning" if in_language else "unread"), "an archive: unpack it to have it read"
    if suffix == ".txt" and path.with_suffix(".conllu").exists():
        return "unread", "plain text of the treebank beside it"
    if suffix in (".txt", ""):
        return "unread", "not named after a split (train, dev, test, surplus) in a folder <task>/<language>"
    if suffix == ".tsv":
        rename = "rename it after its split (train, dev, test), or to .bio if it has none"
        return (
            ("warning", f"not read: {rename}")
            if in_language
            else ("unread", f"no corpus by its name; if it is, {rename}")
        )
    if named and in_language:
        return (
            "warning",
            f"not read: no corpus by its ending {suffix}; convert it to .conllu, or to word<TAB>tag in .bio",
        )
    return "unread", "no corpus by its ending"


def summed(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, with one line for more than a few files of one kind in one folder that are not read for one reason.

    `cache/a.bin`, `cache/b.bin`, … become `cache/*.bin (212 files)`.
    """
    groups: dict[Problem, list[Problem]] = {}
    for problem in problems:
        path = PurePath(problem.where)
        kind = str(path.parent / f"*{path.suffix}") if problem.level == "unread" else problem.where
        groups.setdefault(Problem(problem.level, kind, problem.message), []).append(problem)
    return [
        told
        for group, found in groups.items()
        for told in (
            found
            if group.level != "unread" or len(found) <= _MOST_NAMED
            else [Problem("unread", f"{group.where} ({len(found):,} files)", group.message)]
        )
    ]
