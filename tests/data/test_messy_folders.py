"""Folders as people bring them: each is read right, or refused with a remedy; none trains on wrong columns."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data.folder import load_grid, read_folder
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from tests.data.folders import bio, conllu, numbered, write

NER = [
    [("Awa", "B-PER"), ("Ndiaye", "I-PER"), ("dem", "O"), ("na", "O"), ("Dakar", "B-LOC")],
    [("Dafa", "O"), ("liggéey", "O"), ("ca", "O"), ("Sonatel", "B-ORG")],
    [("Mu", "O"), ("ngi", "O"), ("ca", "O"), ("Ndar", "B-LOC"), (".", "O")],
]
POS = [
    [("Awa", "PROPN"), ("Ndiaye", "PROPN"), ("dem", "VERB"), ("na", "AUX"), ("Dakar", "PROPN")],
    [("Dafa", "AUX"), ("liggéey", "VERB"), ("ca", "ADP"), ("Sonatel", "PROPN")],
    [("Mu", "PRON"), ("ngi", "AUX"), ("ca", "ADP"), ("Ndar", "PROPN"), (".", "PUNCT")],
]
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "B-ORG")
Files = Mapping[str, str | bytes]


def rows(line: str, tagged=NER, head: str = "", before: str = "") -> str:
    """A file with a line for each word, from its place `i` in its sentence `s` (both from 0), the word and the tag."""
    return head + "".join(
        before.format(s=s)
        + "".join(line.format(i=i, s=s, word=word, tag=tag) for i, (word, tag) in enumerate(sentence))
        + "\n"
        for s, sentence in enumerate(tagged)
    )


def numbers(tagged=NER):
    return [[(word, str(LABELS.index(tag))) for word, tag in sentence] for sentence in tagged]


def lower(tagged):
    return [[(word, tag.lower()) for word, tag in sentence] for sentence in tagged]


READ_RIGHT: dict[str, tuple[Files, str]] = {  # the file that is read comes first; what `crossfill grid` says of it
    "a header": (
        {"ner/wol/train.tsv": rows("{word}\t{tag}\n", head="token\tlabel\n")},
        "first line is a header (token, label); first sentence: Awa/B-PER",
    ),
    "a header that names another order": (
        {"ner/wol/train.tsv": rows("{tag}\t{i}\t{word}\n", head="ner_tag\tid\tword\n")},
        "word in column 3, tag in column 1 of 3; first line is a header",
    ),
    "an index before each word, and columns named in a file": (
        {
            "ner/wol/train.tsv": rows("{i}\t{word}\t{tag}\tO\n", before="#\tsource {s}\n"),
            "ner/wol/columns.txt": "word=2 tag=3\n",
        },
        "word in column 2, tag in column 3 of 4; as columns.txt says; first sentence: Awa/B-PER",
    ),
    "WikiANN of 2017": (
        {"wikiann/wo/train": rows("wo:{word}\tx\tx\tx\tx\tx\t{tag}\n")},
        "word in column 1, tag in column 7 of 7; first sentence: Awa/B-PER",
    ),
    "comments before each sentence": (
        {"ner/wol/train.conll": rows("{word} _ _ {tag}\n", before="# id 5ab-{s}\tdomain=train\n")},
        "",
    ),
    "tags that are numbers, named beside": (
        {"ner/wol/train.tsv": rows("{word}\t{tag}\n", numbers()), "ner/labels.txt": "\n".join(LABELS)},
        "tags are numbers, named by the list of labels; first sentence: Awa/B-PER",
    ),
    "tags in lower case": (
        {"ner/wol/train.bio": rows("{word}\t{tag}\n", lower(NER))},
        "tags rewritten in upper case",
    ),
    "two columns of tags": (
        {"ner/wol/train.tsv": rows("{word}\tX\t{tag}\n")},
        "word in column 1, tag in column 3 of 3; first sentence: Awa/B-PER",
    ),
    "CoNLL-2003, with -DOCSTART-": (
        {"ner/wol/train.txt": rows("{word} NN B-NP {tag}\n", head="-DOCSTART- -X- -X- O\n\n")},
        "word in column 1, tag in column 4 of 4; first sentence: Awa/B-PER",
    ),
    "columns named in a file": (
        {"ner/wol/train.tsv": rows("{tag}\t{word}\t{i}.5\n"), "columns.txt": "word=2 tag=1\n"},
        "as columns.txt says; first sentence: Awa/B-PER",
    ),
    "Windows": (
        {"ner/wol/train.bio": b"\xef\xbb\xbf" + rows("{word}\t{tag}\n").replace("\n", "\r\n").encode()},
        "",
    ),
    "packed": ({"ner/wol/train.bio.gz": gzip.compress(rows("{word}\t{tag}\n").encode())}, ""),
    "packed and unpacked side by side": (
        {
            "ner/wol/train.bio": rows("{word}\t{tag}\n"),
            "ner/wol/train.bio.gz": gzip.compress(rows("{word}\t{tag}\n").encode()),
        },
        "ner/wol/train.bio.gz  not read: train.bio next to it is read instead",
    ),
    "two formats of one file": (
        {"ner/wol/train.bio": rows("{word}\t{tag}\n"), "ner/wol/train.iob2": rows("{word}\t{tag}\n")},
        "not read: train.bio next to it is read instead",
    ),
    "one bad line": (
        {"ner/wol/train.bio": rows("{word}\t{tag}\n") + "Saint Louis\n"},
        "sentence left out: expected a word and a tag, got one column",
    ),
    "what tools leave behind": (
        {
            "ner/wol/train.bio": rows("{word}\t{tag}\n"),
            "ner/wol/.train.bio.swp": b"\0\1",
            "ner/wol/train.bio~": "old",
            "ner/wol/notes.docx": b"PK",
            "__MACOSX/._train.bio": b"\0",
            "model/weights.safetensors": b"\0",
            **{f"model/step{i}.json": "{}" for i in range(12)},
        },
        "model/*.json (12 files)",
    ),
    "a corpus in a format of another tool": (
        {"ner/wol/train.bio": rows("{word}\t{tag}\n"), "ner/yor/train.xlsx": b"PK"},
        "ner/yor/train.xlsx  not read: no corpus by its ending .xlsx; convert it to .conllu",
    ),
    "word, part of speech, lemma, tag": (
        {"ner/wol/train.tsv": rows("{word}\tNOUN\t{word}\t{tag}\n")},
        "",
    ),
}

REFUSED: dict[str, tuple[Files, str]] = {
    "an index before each word": (
        {"ner/wol/train.bio": rows("{i}\t{word}\t{tag}\n")},
        "expected words in column 1, got numbers (0 | Awa | B-PER); words were read from column 1 of 3, tags from 3: "
        "name others in a file columns.txt next to it",
    ),
    "tag before word": (
        {"ner/wol/train.tsv": rows("{tag}\t{word}\n")},
        "expected the tags of ner in column 2, got what looks like words (B-PER | Awa)",
    ),
    "numbers without names": (
        {"ner/wol/train.tsv": rows("{word}\t{tag}\n", numbers())},
        "expected the tags of ner in column 2, got numbers; write their names in the order of their numbers",
    ),
    "lemmas after the tags": (
        {"chunk/wol/train.tsv": rows("{word}\t{tag}\t{word}\n")},
        "expected the tags of chunk in column 3, got what looks like words",
    ),
    "parts of speech in a folder of names": (
        {"ner/wol/train.tsv": rows("{word}\t{tag}\n", POS)},
        "expected the tags of ner in column 2, got parts of speech",
    ),
    "names in a folder of parts of speech": (
        {"pos/wol/train.tsv": rows("{word}\t{tag}\n")},
        "expected the tags of pos in column 2, got tags of spans",
    ),
    "CoNLL-U by another name": (
        {"pos/wol/train.tsv": rows("{i}\t{word}\t_\t{tag}\t_\t_\t0\tdep\t_\t_\n", POS)},
        "is this CoNLL-U? rename it to .conllu",
    ),
    "CoNLL-U with its columns moved": (
        {"ud/wol/train.conllu": "".join(f"{i}\ta{i}\tNOUN\tb{i}\t_\t_\t0\tdep\t_\t_\n" for i in range(1, 20)) + "\n"},
        "expected parts of speech in column 4 (UPOS), got what looks like words",
    ),
    "token columns by the name of CoNLL-U": (
        {"ud/wol/train.conllu": rows("{word}\t{tag}\n", POS)},
        "expected 10 columns, got 2; is this a BIO file? rename it to .bio",
    ),
    "another encoding": (
        {"ner/wol/train.bio": rows("{word}\t{tag}\n").encode("latin-1")},
        "expected UTF-8, got byte 0xe9; save the file as UTF-8",
    ),
    "sixteen bits a letter": (
        {"ner/wol/train.bio": rows("{word}\t{tag}\n").encode("utf-16")},
        "expected UTF-8, got UTF-16; save the file as UTF-8",
    ),
    "most lines bad": (
        {"ner/wol/train.bio": rows("{word}\n") + rows("{word}\t{tag}\n")},
        "3 of 6 sentences are bad",
    ),
    "a packed file cut off": (
        {"ner/wol/train.bio.gz": gzip.compress(rows("{word}\t{tag}\n").encode())[:-20]},
        "expected gzip, got damaged bytes",
    ),
    "a backup that would be a corpus": (
        {"ner/wol/train.bio": rows("{word}\t{tag}\n"), "ner/wol/train (copy).bio": rows("{word}\t{tag}\n")},
        "expected a name that ends in its split, got 'train' before its end; rename it to <corpus>-train.bio",
    ),
    "splits, and one file without": (
        {"ner/wol/train.bio": bio(*NER), "ner/wol.bio": bio(*numbered(20, "B-PER"))},
        "expected ner in files by split (train, dev, test) or in one without, got both: ner/wol.bio, ner/wol/train.bio",
    ),
    "language above task": (
        {"wolof/ner/train.bio": rows("{word}\t{tag}\n")},
        "expected it in a folder named by its language, <task>/<language>/train.bio, but 'ner' is none",
    ),
    "columns.txt that names too many": (
        {"ner/wol/train.tsv": rows("{word}\t{tag}\n"), "ner/columns.txt": "word=1 tag=4"},
        "expected 4 columns or more, got 2; correct columns.txt",
    ),
    "columns in no order": (
        {"ner/wol/train.bio": "a b c\nd e\n\ne f g h\n\nb c d e f\n"},
        "expected 3 columns, as in other lines, got 2; write _ for an empty one (3 of 3 sentences are bad)",
    ),
    "nothing but other files": (
        {f"ner/wol/part{i}.pkl": b"\x80" for i in range(5)} | {"README.md": "#"},
        "ner/wol/*.pkl (5 files): no corpus by its ending",
    ),
}


@pytest.mark.parametrize("name", READ_RIGHT)
def test_is_read_right_and_said_so(tmp_path: Path, name: str):
    files, told = READ_RIGHT[name]
    data = write(tmp_path / "data", files)
    grid = load_grid(data)
    assert grid.cells == (Cell("ner", "wol"),)
    found = [list(zip(s.words, s.labels, strict=True)) for s in grid.training(Cell("ner", "wol"))]
    assert found == NER
    shown = CliRunner().invoke(app, ["grid", str(data)], env={"COLUMNS": "400"})
    assert shown.exit_code == 0
    assert told in shown.output
    named = {problem.where for problem in read_folder(data).problems}
    assert {file for file in list(files)[1:] if Path(file).name not in ("columns.txt", "labels.txt")} <= named


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_with_a_remedy(tmp_path: Path, name: str):
    files, told = REFUSED[name]
    data = write(tmp_path / "data", files)
    with pytest.raises(DataError) as caught:
        load_grid(data)
    assert told in str(caught.value)


def test_columns_that_are_refused_can_be_named(tmp_path: Path):
    files, _ = REFUSED["tag before word"]
    grid = load_grid(write(tmp_path, {**files, "ner/wol/columns.txt": "word=2 tag=1"}))
    assert [list(zip(s.words, s.labels, strict=True)) for s in grid.training(Cell("ner", "wol"))] == NER


def test_tags_of_ones_own_in_place_of_upos_are_a_warning(tmp_path: Path):
    own = [[(word, tag[:2]) for word, tag in sentence] for sentence in POS]
    data = write(tmp_path / "data", {"ud/wol/train.conllu": conllu(*own)})
    shown = CliRunner().invoke(app, ["grid", str(data)], env={"COLUMNS": "200"})
    assert (
        "100% of the words have labels that are not UPOS (PR, AU, VE, AD, PU): is this the right column?"
        in shown.output
    )
