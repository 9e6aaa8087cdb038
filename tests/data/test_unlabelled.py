"""Words that nobody has labelled: how files say so, and that nothing else of their sentence is lost."""

from pathlib import Path

import pytest

from crossfill.data.folder import load_grid, read_file
from crossfill.data.labels import iob2
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import UNLABELLED
from tests.data.folders import write

POS, NER, MOOD = Cell("pos", "wol"), Cell("ner", "wol"), Cell("mood", "wol")
CONLLU = "1\tDakar\t_\tPROPN\t_\t_\t_\t_\t_\t{}\n2\tmooy\t_\t{}\t_\t_\t_\t_\t_\t{}\n\n"


@pytest.mark.parametrize(
    ("cell", "name", "text", "labels"),
    [
        (POS, "a.bio", "Dakar\tPROPN\nmooy\t_\npéey\t?\nla\t\n\n", ("PROPN", "", "", "")),
        (POS, "a.conllu", CONLLU.format("_", "_", "_"), ("PROPN", "")),
        (POS, "a.jsonl", '{"words": ["Dakar", "mooy"], "labels": ["PROPN", null]}\n', ("PROPN", "")),
        (NER, "a.bio", "Dakar\tB-LOC\nmooy\tO\nSall\t_\n\n", ("B-LOC", "O", "")),
        (NER, "a.conllu", CONLLU.format("NER=B-LOC", "VERB", "NER=?"), ("B-LOC", "")),
        (MOOD, "a.bio", "Dakar\t?\nmooy\t_\nla\tgood\n\n", ("?", "_", "good")),
    ],
)
def test_marks_of_words_without_a_label(cell: Cell, name: str, text: str, labels: tuple[str, ...], tmp_path: Path):
    (tmp_path / name).write_text(text)
    reading = read_file(tmp_path / name, cell)
    assert reading.corpus[0].labels == labels
    n_open = labels.count("")
    said = [f"{n_open} of {len(labels)} words have no label: not learnt from, not scored"] if n_open else []
    assert [text for _, text in reading.changes] == said


def test_the_user_says_what_means_no_label(tmp_path: Path):
    (tmp_path / "a.bio").write_text("Dakar\tgood\nmooy\t-\nla\t_\n\n")
    assert read_file(tmp_path / "a.bio", MOOD, unlabelled=["-"]).corpus[0].labels == ("good", "", "_")
    (tmp_path / "b.bio").write_text("Aminata\tI-PER\nSall\tI-PER\nmooy\tO\nDakar\tI-LOC\n\n")
    partly = read_file(tmp_path / "b.bio", NER, spans_partial=True).corpus[0].labels
    assert partly == ("B-PER", "I-PER", "", "B-LOC") == read_file(tmp_path / "b.bio", NER, ["O"]).corpus[0].labels
    marked = '{"text": "Aminata Sall mooy Dakar", "spans": [{"start": 18, "end": 23, "label": "LOC"}]}\n'
    (tmp_path / "c.jsonl").write_text(marked)
    assert read_file(tmp_path / "c.jsonl", NER, spans_partial=True).corpus[0].labels == ("", "", "", "B-LOC")


def test_a_file_next_to_a_corpus_says_it_for_all_commands(tmp_path: Path):
    files = {f"{task}/wol/{split}.bio": text for split in ("train", "test") for task, text in (
        ("mood", f"Dakar\tgood\nmooy{split}\t-\n\n"), ("ner", f"Dakar\tB-LOC\nmooy{split}\tO\n\n"),
    )}  # fmt: skip
    write(
        tmp_path, files | {"mood/columns.txt": "unlabelled=-\n", "ner/wol/columns.txt": "word=1 tag=2 spans=partial\n"}
    )
    grid = load_grid(tmp_path, cache=False)
    assert grid.inventory.tasks["mood"].labels == ("good",)
    assert grid[MOOD][0].train[0].labels == ("good", UNLABELLED)
    assert grid[NER][0].test[0].labels == ("B-LOC", UNLABELLED)
    assert grid.inventory.label_ids("mood", grid[MOOD][0].train.labels).tolist() == [0, -1]
    write(tmp_path, {"mood/columns.txt": "spans=some\n"})
    with pytest.raises(DataError, match=r"mood/columns.txt: expected two columns.*or spans=partial"):
        load_grid(tmp_path, cache=False)


def test_a_span_may_begin_in_a_word_without_a_label():
    assert iob2(["", "I-PER", "I-PER", "O", "I-PER"]) == ["", "I-PER", "I-PER", "O", "B-PER"]
