"""The folder that a reader of the documentation is in: corpora, encoders, a model, and text to tag."""

from pathlib import Path

from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data.synthetic import SyntheticConfig, synthetic_grid
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.teaching.journal import Accepted, Journal
from tests.data.field_texts import elan, flex
from tests.data.folders import bio, conllu, write
from tests.encoders.tiny import bert

CODES = {"wo": "wol", "vi": "vie", "ta": "tam", "fi": "fin", "en": "eng"}
FEW_STEPS = {
    "training.steps": "2",
    "training.validate_every": "2",
    "training.learning_rate": "0.01",
    "generator.hidden": "[8]",
    "encoder.hidden": "8",
    "encoder.buckets": "64",
    "prediction.samples": "2",
}
"""Everything is run as it stands on the page, but for studies, whose trainings are cut short and made small."""


def build(folder: Path) -> None:
    """Fill the folder. `ner/wol` is the empty cell; `bert-base-multilingual-cased` and `gemma` are tiny encoders."""
    settings = SyntheticConfig(
        families=1, branches=1, languages_per_family=len(CODES),
        train_sentences=9, dev_sentences=4, test_sentences=4, roots=30,
    )  # fmt: skip
    grid = synthetic_grid(settings, seed=0).grid
    files = {}
    for (short, code), language in zip(CODES.items(), grid.languages, strict=True):
        for split in ("train", "dev", "test"):
            tagged = {
                task: [list(zip(s.words, s.labels, strict=True)) for s in getattr(grid[Cell(task, language)][0], split)]
                for task in ("pos", "ner")
            }
            files[f"data/ud/UD_{code}-X/{short}_x-ud-{split}.conllu"] = conllu(*tagged["pos"])
            if code != "wol":
                files[f"data/ner/{code}/{split}.bio"] = bio(*tagged["ner"])
    wolof = [list(zip(s.words, s.labels, strict=True)) for s in grid[Cell("pos", grid.languages[0])][0].test]
    lines = [" ".join(word for word, _ in sentence) for sentence in wolof]
    files |= {"in.conllu": conllu(*wolof), "pool.conllu": conllu(*wolof), "in.bio": bio(*wolof)}
    half = [[(word, label if i % 2 else "_") for i, (word, label) in enumerate(sentence)] for sentence in wolof]
    named = grid[Cell("ner", grid.languages[0])][0].train
    files |= {"half.bio": bio(*half), "names.bio": bio(*[list(zip(s.words, s.labels, strict=True)) for s in named])}
    listed = "".join(f"{word}\t{label}\n" for sentence in wolof[:2] for word, label in sentence)
    kind = next(label[2:] for s in named for label in s.labels if label != "O")
    files |= {"words.tsv": listed, "places.tsv": f"Ndar\t{kind}\nDakar\t{kind}\n"}
    files |= {"words.txt": "\n".join(lines) + "\n", "text.txt": " ".join(lines) + "\n"}
    files |= {"talk.eaf": elan({"ANA": wolof[:2], "BEN": wolof[2:]}), "story.flextext": flex(wolof)}
    tagged = {"anna": wolof, "ben": [[(word, wolof[0][0][1]) for word, _ in wolof[0]], *wolof[1:]]}
    files |= {f"{name}/pos/wol/train.conllu": conllu(*sentences) for name, sentences in tagged.items()}
    for language, code in zip(grid.languages, ("wol-Latn", "wol-Arab", "my-dialect"), strict=False):
        splits = grid[Cell("pos", language)][0]
        for split in ("train", "dev", "test"):
            sentences = [list(zip(s.words, s.labels, strict=True)) for s in getattr(splits, split)]
            files[f"varieties/pos/{code}/{split}.conllu"] = conllu(*sentences)
    write(folder, files)
    (folder / "taught").mkdir()
    both = ((who, sentence) for who, sentences in tagged.items() for sentence in sentences)
    entries = [
        Accepted(f"{i:012x}", who, "2026-11-19T12:00:00Z", Sentence(*map(tuple, zip(*sentence, strict=True))))
        for i, (who, sentence) in enumerate(both)
    ]
    Journal(folder / "taught", Cell("pos", "wol")).append(*entries)
    encoders(folder)


def encoders(folder: Path, gemma: str = "") -> None:
    """Put the encoders that pages name into the folder: tiny ones, or the real Gemma if its folder is given."""
    for name in ("bert-base-multilingual-cased", "gemma"):
        if name == "gemma" and gemma:
            (folder / name).symlink_to(gemma)
        else:
            bert(folder / name, max_position_embeddings=256)


def crossfill(*given: str, text: str = "") -> str:
    """What a crossfill command prints, run within this process; the trainings of a study take few steps."""
    few = FEW_STEPS if given[0] == "experiment" else {}
    cut = [part for name, value in few.items() for part in ("--set", f"config.{name}={value}")]
    result = CliRunner().invoke(app, [*given, *cut], input=text)
    assert result.exit_code == 0, f"crossfill {' '.join(given)}\n{result.output}\n{result.exception!r}"
    return result.output
