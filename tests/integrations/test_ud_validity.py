"""What is predicted into CoNLL-U is valid where the input was, by the validator of Universal Dependencies (udtools).

udtools is under the GPL: it is no dependency of crossfill, only of this test. Install it by hand to run it.
"""

import io
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import crossfill
from crossfill.cli.app import app
from crossfill.data.segmentation import Segmenter
from crossfill.data.streams import read_items
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.prediction.tagging import TaggingOptions
from crossfill.tagger import render
from tests.scenarios import SMALL, small_grid

pytestmark = pytest.mark.slow
CASES = {"NOUN": "Nom", "PROPN": "Acc"}
WOLOF = [
    (("Xale", "yi", "dem", "nañu", "Dakar", "."), ("NOUN", "DET", "VERB", "ADV", "PROPN", "PUNCT")),
    (("Dakar", "mooy", "péeyu", "Senegaal", "."), ("PROPN", "VERB", "NOUN", "PROPN", "PUNCT")),
    (("Ban", "jamono", "nga", "ñëw", "?"), ("DET", "NOUN", "ADV", "VERB", "PUNCT")),
]


@pytest.fixture(scope="module")
def tasked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the tasks pos, feats:Case and deprel, and tags of its own invention."""
    made, _ = small_grid()
    names = dict(zip(made.grid.languages, ("ara", "fin", "tha", "wol"), strict=True))
    cells = {Cell(cell.task, names[cell.language]): corpora for cell, corpora in made.grid.corpora.items()}
    cells = {cell: corpora for cell, corpora in cells.items() if cell.task in ("pos", "deprel")}
    cells |= {
        Cell("feats:Case", cell.language): [cased(c) for c in cells[cell]] for cell in cells if cell.task == "pos"
    }
    out = tmp_path_factory.mktemp("ud") / "model"
    crossfill.train(Grid(cells), out=out, config=SMALL.change({"training.steps": 12}))
    return out


def cased(splits):
    def change(corpus: Corpus) -> Corpus:
        return Corpus.from_sentences(
            Sentence(s.words, tuple(CASES.get(label, "_") for label in s.labels), s.spaces) for s in corpus
        )

    changed = {f.name: change(value) for f in fields(splits) if isinstance(value := getattr(splits, f.name), Corpus)}
    return replace(splits, **changed)


def problems(text: str, level: int, folder: Path) -> str:
    """What the validator says of CoNLL-U in Wolof; nothing if it is valid."""
    from udtools import Validator

    file, told = folder / "checked.conllu", io.StringIO()
    file.write_text(text, encoding="utf-8")
    state = Validator(lang="wo", level=level, output=told).validate_files([str(file)])
    return "" if state.passed() else told.getvalue()


def treebank(sentences: Sequence[tuple[Sequence[str], Sequence[str]]]) -> str:
    """A valid treebank: the first verb is the root, and all else depends on it."""
    blocks = []
    for number, (words, tags) in enumerate(sentences, start=1):
        root = next((i for i, tag in enumerate(tags) if tag == "VERB"), 0) + 1
        rows = [f"# sent_id = s{number}", f"# text = {' '.join(words[:-1])}{words[-1]}"]
        for i, (word, tag) in enumerate(zip(words, tags, strict=True), start=1):
            relation = "root" if i == root else "punct" if tag == "PUNCT" else "dep"
            misc = "SpaceAfter=No" if i == len(words) - 1 else "Gloss=x" if i == 1 else "_"
            features = "Number=Plur" if tag == "NOUN" else "_"
            head = 0 if i == root else root
            rows.append("\t".join([str(i), word, word.lower(), tag, "_", features, str(head), relation, "_", misc]))
        blocks.append("\n".join(rows) + "\n\n")
    return "".join(blocks)


@pytest.mark.parametrize(
    "options", [(), ("--distribution",), ("--samples", "0"), ("--cell", "pos/wol", "--cell", "deprel/wol")]
)
@pytest.mark.parametrize("cell", ["pos/wol", "feats:Case/wol", "deprel/wol"])
def test_predictions_are_valid_where_the_input_was(tasked: Path, tmp_path: Path, cell: str, options):
    pytest.importorskip("udtools")
    given = treebank(WOLOF)
    assert problems(given, 3, tmp_path) == ""
    (tmp_path / "given.conllu").write_text(given, encoding="utf-8")
    arguments = ["predict", str(tasked), "--cell", cell, *options, str(tmp_path / "given.conllu"), "--format", "conllu"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert done.stdout != given
    # level 2: the format, trees, and the inventories of tags; above it, the validator judges the labels themselves
    assert problems(done.stdout, 2, tmp_path) == ""


def test_predictions_that_are_right_are_as_valid_as_the_truth(tasked: Path, tmp_path: Path):
    pytest.importorskip("udtools")
    tagger = crossfill.load(tasked)
    names = tagger.model.inventory.task("pos").labels
    given, made = treebank(WOLOF), []
    for item, (_, tags) in zip(
        read_items(io.BytesIO(given.encode()), "given", "conllu", Segmenter("wol")), WOLOF, strict=True
    ):
        found = tagger.tag(item.sentence, "pos/wol", options=TaggingOptions(interval=0.9))
        sets = np.ones((len(tags), len(names)), dtype=np.bool_)
        made.append(render.conllu(item, [replace(found, labels=tags, sets=sets)], whole=True, number=1))
    for level in (1, 2, 3, 4, 5):
        assert problems("".join(made), level, tmp_path) == problems(given, level, tmp_path) == ""
