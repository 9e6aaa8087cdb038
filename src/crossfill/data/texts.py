"""Unlabelled text of a data folder, `text/<language>/*.txt`: enough to give a language without any corpus a place."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from crossfill.data.checks import Problem
from crossfill.data.codes import find_language
from crossfill.data.gzipped import MAGIC, unpacked
from crossfill.data.lines import decode
from crossfill.data.segmentation import split_text
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus, Sentence

FOLDER = "text"
MOST_SENTENCES = 1000
"""Sentences of a language that are read: more do not move its centroid."""


def read_texts(root: Path) -> tuple[dict[str, Corpus], list[Problem]]:
    """The text of each language under `text/`, and what is wrong with it."""
    texts: dict[str, Corpus] = {}
    problems: list[Problem] = []
    folder = root / FOLDER
    for home in sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ():
        where, language = f"{FOLDER}/{home.name}", find_language(home.name)
        files = sorted(path for path in home.iterdir() if path.name.lower().endswith((".txt", ".txt.gz")))
        if language is None:
            problems.append(Problem("warning", where, "not read: expected a folder named by an ISO 639 code"))
            continue
        try:
            corpus = Corpus.from_text(islice(_sentences(files, language), MOST_SENTENCES))
        except DataError as error:
            place, _, message = str(error).partition(": ")
            problems.append(Problem("error", place, message))
            continue
        if len(corpus):
            texts[language] = corpus
            message = f"{len(corpus):,} sentences of unlabelled text"
            problems.append(Problem("note", where, message))
        else:
            problems.append(Problem("warning", where, "has no text in files *.txt"))
    return texts, problems


def read_text(path: Path, language: str) -> Corpus:
    """The sentences of a file of plain text, at most `MOST_SENTENCES`."""
    return Corpus.from_text(islice(_sentences([path], language), MOST_SENTENCES))


def _sentences(files: list[Path], language: str) -> Iterator[Sentence]:
    for path in files:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: expected readable text; {error.strerror}; check the path") from None
        content = unpacked(content, str(path)) if content.startswith(MAGIC) else content
        yield from split_text("\n".join(decode(content, str(path))), language)
