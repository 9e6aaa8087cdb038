"""A small grid of text with known sizes, and typological vectors for its languages."""

from pathlib import Path

from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence
from tests.scenarios import SMALL

SETTINGS = SMALL.change({"training.steps": 6, "training.validate_every": 3, "prediction.samples": 5})
LANGUAGES = ("aaa", "bbb", "ccc", "ddd")
N_TRAIN = {"aaa": 6, "bbb": 9, "ccc": 5, "ddd": 7}
"""Training sentences per cell, three words each."""


def corpus(task: str, language: str, n: int, start: int = 0) -> Corpus:
    """Sentences of three words whose labels follow from the words."""
    tags = ("NOUN", "VERB", "X") if task == "pos" else ("B-PER", "I-PER", "O")
    return Corpus.from_sentences(
        Sentence((f"{language}{i}", "goes", "on"), tags if i % 2 else tags[::2] + tags[-1:])
        for i in range(start, start + n)
    )


def splits(task: str, language: str, n_train: int) -> tuple[Splits, ...]:
    parts = {"train": (n_train, 0), "dev": (3, 50), "test": (8, 80)}
    return (Splits(language, **{name: corpus(task, language, *part) for name, part in parts.items()}),)


GRID = Grid({Cell(task, lang): splits(task, lang, N_TRAIN[lang]) for task in ("ner", "pos") for lang in LANGUAGES})
SEEN = frozenset(Cell.parse(name) for name in ("ner/aaa", "ner/bbb", "pos/ccc", "pos/ddd", "pos/aaa"))
VECTORS = {"aaa": (1, 0, 0), "bbb": (0.9, 0.1, 0), "ccc": (0, 1, 0.1), "ddd": (0.1, 0.1, 1)}


def write_vectors(folder: Path, languages: tuple[str, ...] = LANGUAGES) -> Path:
    """The vectors as a table."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{language}\t" + "\t".join(map(str, VECTORS[language])) for language in languages]
    (folder / "own.tsv").write_text("\n".join(["language\tone\ttwo\tthree", *rows]) + "\n")
    return folder
