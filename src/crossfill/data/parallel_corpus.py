"""Everyday sentences in real languages, written for crossfill: the same sixty in each, with word classes and names.

`parallel/README.md` says how they were made and checked. In `parallel/<language>.txt`, a line is a sentence and
`word/UPOS/tag` a word with its label in `pos` and in `ner`; no tag means `O`, and `~` that no space stands before it:

    Amina/PROPN/B-PER lives/VERB in/ADP Dakar/PROPN/B-LOC ~./PUNCT
"""

from importlib.resources import files

from crossfill.data.codes import find_language_in
from crossfill.errors import DataError, unknown
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence

NAME = "parallel"
TASKS = ("pos", "ner")
GLUED = "~"
TEST, DEV = (2, 5, 8), (9,)
"""Last digits of the numbers (from 0) of the sentences that test and that choose; all others train."""


def parallel_languages() -> tuple[str, ...]:
    """List the languages of the corpus, by ISO 639-3 code."""
    names = (file.name for file in files("crossfill.data").joinpath(NAME).iterdir())
    return tuple(sorted(name.removesuffix(".txt") for name in names if name.endswith(".txt")))


def parallel_sentences(task: str, language: str) -> tuple[Sentence, ...]:
    """Read the sentences in a language, labelled for `pos` or `ner`; sentence i means the same in every language."""
    if task not in TASKS:
        raise DataError(unknown("task", task, TASKS))
    known = parallel_languages()
    code = find_language_in(language, known)
    if code not in known:
        raise DataError(unknown("language", language, known))
    text = files("crossfill.data").joinpath(NAME, f"{code}.txt").read_text(encoding="utf-8")
    return tuple(_sentence(line, task) for line in text.splitlines())


def parallel_grid() -> Grid:
    """Return both tasks in every language.

    Sentences are divided by their number, alike everywhere: no translation of a test sentence is ever trained on.
    """
    corpora = {}
    for cell in (Cell(task, code) for task in TASKS for code in parallel_languages()):
        parts: dict[str, list[Sentence]] = {"train": [], "dev": [], "test": []}
        for number, sentence in enumerate(parallel_sentences(cell.task, cell.language)):
            last = number % 10
            parts["test" if last in TEST else "dev" if last in DEV else "train"].append(sentence)
        corpora[cell] = (Splits(NAME, *map(Corpus.from_sentences, parts.values())),)
    return Grid(corpora)


def _sentence(line: str, task: str) -> Sentence:
    items = line.split(" ")
    words, labels = [], []
    for item in items:
        word, *tags = item.removeprefix(GLUED).split("/")
        words.append(word)
        labels.append(tags[0] if task == "pos" else [*tags, "O"][1])
    spaces = (*(not item.startswith(GLUED) for item in items[1:]), False)
    return Sentence(tuple(words), tuple(labels), spaces)
