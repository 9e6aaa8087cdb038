"""Data folders as they come, into a grid."""

import unicodedata
from pathlib import Path

import pytest

import crossfill
from crossfill.data.folder import ReadOptions, load_grid, read_folder
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Grid
from tests.data.folders import bio, conllu, numbered, write

POS = [[("moku", "NOUN"), ("erwa", "VERB")], [("tilo", "NOUN")]]
NER = [[("Dakar", "B-LOC"), ("mooy", "O")], [("Aminata", "B-PER"), ("Sow", "I-PER")]]


def sizes(grid: Grid) -> dict[str, dict[str, tuple[int, int, int, int]]]:
    return {
        str(cell): {s.name: (len(s.train), len(s.dev), len(s.test), len(s.surplus)) for s in grid[cell]}
        for cell in grid.cells
    }


def test_scripts_dialects_and_names_of_ones_own_are_columns(tmp_path: Path):
    shared, train, test = ([(word, "NOUN")] for word in ("Beograd", "reka", "more"))
    write(
        tmp_path,
        {
            "pos/srp-Latn/train.conllu": conllu(shared, train),
            "pos/srp-cyrl/test.conllu": conllu(shared, test),
            "pos/stan1295/train.conllu": conllu(*POS),
            "pos/my-dialect/train.conllu": conllu(*POS),
            "ner/my-dialect/my-corpus-train.bio": bio(*NER),
            "ner/my-corpus.bio": bio(*NER),
            "ner/wol/old-files/train.bio": bio(*NER),
            "data2024/train.bio": bio(*NER),
            "text/my-other/a.txt": "Dakar mooy péeyu Senegaal.",
        },
    )
    reading = read_folder(tmp_path)
    columns = ["my-dialect", "srp-Cyrl", "srp-Latn", "stan1295"]
    assert list(reading.grid.languages) == columns
    assert "my-other" in reading.grid.inventory.newcomers
    assert len(reading.grid.training(Cell("pos", "srp-Latn"))) == 1  # the other script is tested on the same text
    found = {str(message).partition("  ")[0]: message.level for message in reading.problems}
    assert [str(error) for error in reading.errors] == [
        f"{name}: expected it in a folder named by its language, <task>/<language>/{name.rpartition('/')[2]}, but "
        f"'{Path(name).parent.name}' is none; move it, or rename the folder to an ISO 639 code, or in <task>/ to a "
        "name of your own with a hyphen, as my-dialect"
        for name in ("data2024/train.bio", "ner/my-corpus.bio", "ner/wol/old-files/train.bio")
    ], found
    notes = {message.where: message for message in reading.problems if "no code of ISO 639" in message.text}
    assert {where: note.level for where, note in notes.items()} == {"my-dialect": "note", "stan1295": "note"}


def test_tasks_languages_and_splits_are_folders_and_files(tmp_path: Path):
    write(
        tmp_path,
        {
            "ud/wo/train.conllu": conllu(*numbered(3, "NOUN")),
            "ud/wo/test.conllu": conllu(*POS),
            "ud/amh/surplus.conllu": conllu(*numbered(2, "NOUN")),
            "ud/amh/test.conllu": conllu(*POS),
            "ud/amh/test.txt": "Moku erwa.",
            "ner/wol/train.bio": bio(*numbered(5, "B-PER")),
            "ner/wol/valid.tsv": bio(*NER),
            "chunk/eus/test.iob2": bio(*NER),
            "typology/fam.tsv": "language\tF_X\nwol\t1\n",
            "manifest.tsv": "a\tb\n",
            "README.md": "# hello\n",
            "ner/.hidden/train.bio": "?",
        },
    )
    grid = crossfill.load_grid(str(tmp_path))
    assert sizes(grid) == {
        "chunk/eus": {"chunk": (0, 0, 2, 0)},
        "ner/wol": {"ner": (5, 2, 0, 0)},
        "pos/amh": {"ud": (0, 0, 2, 2)},
        "pos/wol": {"ud": (3, 0, 2, 0)},
    }
    assert grid.inventory.task("pos").labels == ("NOUN", "VERB")
    assert load_grid(tmp_path / "ner").cells == (Cell("ner", "wol"),)


def test_a_ud_release_as_it_comes_has_a_corpus_per_treebank(tmp_path: Path):
    write(
        tmp_path / "ud-treebanks-v2.4",
        {
            "UD_Wolof-WTF/wo_wtf-ud-train.conllu": conllu(*numbered(3, "NOUN")),
            "UD_Wolof-WTF/wo_wtf-ud-test.conllu": conllu(*POS),
            "UD_Wolof-WTF/README.md": "#",
            "UD_Wolof-WTF/stats.xml": "<x/>",
            "UD_Turkish-IMST/tr_imst-ud-test.conllu": conllu(*POS),
            "UD_Turkish-PUD/tr_pud-ud-test.conllu": conllu(*POS[:1]),
            "UD_German-HDT/de_hdt-ud-train-a-1.conllu": conllu(*numbered(2, "NOUN")),
            "UD_German-HDT/de_hdt-ud-train-a-2.conllu": conllu(*numbered(2, "NOUN", start=2)),
        },
    )
    assert sizes(load_grid(tmp_path)) == {
        "pos/deu": {"hdt": (4, 0, 0, 0)},
        "pos/tur": {"imst": (0, 0, 2, 0), "pud": (0, 0, 1, 0)},
        "pos/wol": {"wtf": (3, 0, 2, 0)},
    }


def test_wikiann_as_it_comes(tmp_path: Path):
    prefixed = bio(*[[(f"wo:{word}", tag) for word, tag in sentence] for sentence in NER])
    write(
        tmp_path,
        {
            "wikiann/wo/train": prefixed,
            "wikiann/wo/extra": bio([("wo:Ndar", "B-LOC")]),
            "wikiann/zh-yue/zh-yue.test.bio": bio(*NER),
            "raw/wikiann-gn.bio": bio(*numbered(20, "B-PER")),
        },
    )
    reading = read_folder(tmp_path)
    assert sizes(reading.grid) == {
        "ner/gun": {"wikiann": (16, 2, 2, 0)},
        "ner/wol": {"wikiann": (2, 0, 0, 1)},
        "ner/yue": {"wikiann": (0, 0, 2, 0)},
    }
    assert list(reading.grid.training(Cell("ner", "wol")).words) == ["Dakar", "mooy", "Aminata", "Sow", "Ndar"]
    told = [str(problem) for problem in reading.problems]
    assert "ner/wol: prefix wo: taken off every word" in told
    assert "ner/gun: wikiann comes without splits: 20 sentences parted 80–10–10 by seed 0" in told


def test_one_treebank_holds_many_tasks(tmp_path: Path):
    write(
        tmp_path,
        {
            "ud/wol/train.conllu": conllu(*POS),
            "ner/wol/train.bio": bio(*NER),
            "xpos/wol/dev.conllu": conllu(*numbered(2, "NOUN")),
        },
    )
    assert load_grid(tmp_path).tasks == ("ner", "pos", "xpos")
    grid = load_grid(tmp_path, tasks=("upos", "deprel", "feats:Case"))
    labels = {name: task.labels for name, task in grid.inventory.tasks.items()}
    assert labels == {"deprel": ("dep",), "feats:Case": ("Nom", "_"), "pos": ("NOUN", "VERB")}
    reading = read_folder(tmp_path, ReadOptions(tasks=("pos", "feats:Gender")))
    assert [str(problem) for problem in reading.problems] == [
        "feats:Gender/wol: ud has no labels for feats:Gender: left out",
        f"{tmp_path}: unknown task 'feats:Gender'; known: ner, pos, xpos",
        "cache: the cache of crossfill",
        "ner: 1 file of ner: not asked for",
        "xpos: 1 file of xpos: not asked for",
    ]
    with pytest.raises(DataError, match="unknown task 'topic'; known: ner, pos"):
        load_grid(tmp_path, tasks=("topic",))
    with pytest.raises(DataError, match="unknown task 'nre'; did you mean 'ner'"):
        load_grid(tmp_path, tasks=("ner", "nre"))


def test_schemes_and_unicode_are_normalised_and_said_so(tmp_path: Path):
    decomposed = unicodedata.normalize("NFD", "péey")
    write(
        tmp_path,
        {
            "ner/wol/train.bio": bio([(decomposed, "S-LOC"), ("a", "O"), ("b", "B-PER"), ("c", "E-PER")]),
            "ner/yor/train.bio": bio([("a", "I-PER"), ("b", "O"), ("c", "B-LOC")]),
            "ner/tha/train.bio": bio([("a", "person"), ("b", "other")]),
        },
    )
    reading = read_folder(tmp_path)
    training = reading.grid.training(Cell("ner", "wol"))
    assert list(training.labels) == ["B-LOC", "O", "B-PER", "I-PER"]
    assert training.words[0] == "péey"
    assert [str(p) for p in reading.problems] == [
        "ner/tha: suspicious scheme: expected IOB tags (B-PER, I-PER, O), got other labels",
        "ner/wol: tags rewritten as IOB2",
        "ner/wol: words composed (NFC)",
        "ner/yor: tags rewritten as IOB2",
    ]


def test_no_problem_hides_another(tmp_path: Path):
    write(
        tmp_path,
        {
            "ud/wol/train.conllu": conllu(*POS),
            "ud/yor/train.conllu": "oops\tO\n",
            "ner/wol/train.bio": b"Dakar\tB-LOC\n\xff\tO\n",
            "ner/tha/test.bio": "",
            "ner/notalanguage/train.bio": bio(*NER),
            "ner/train.bio": bio(*NER),
            "ner/zz/train.bio": bio(*NER),
            "chunk/wol/train.conllu": conllu(*POS),
        },
    )
    reading = read_folder(tmp_path)
    assert reading.grid.cells == (Cell("pos", "wol"),)
    told = "\n".join(str(problem) for problem in reading.errors)
    assert "pos/yor ud/yor/train.conllu:1: expected 10 columns, got 2; is this a BIO file? rename it to .bio" in told
    assert "ner/wol ner/wol/train.bio:2: expected UTF-8, got byte 0xff; save the file as UTF-8" in told
    assert "ner/notalanguage/train.bio: expected it in a folder named by its language" in told
    assert (
        "ner/train.bio: expected it in a folder named by its language, <task>/<language>/train.bio, but 'ner'" in told
    )
    assert "chunk/wol chunk/wol/train.conllu: expected a task that names a CoNLL-U column" in told
    assert len(reading.errors) == 6
    with pytest.raises(DataError) as caught:
        load_grid(tmp_path)
    assert str(caught.value) == told
    assert "ner/tha/test.bio: has no sentences" in [str(p) for p in reading.problems]


def test_a_bad_line_loses_its_sentence_and_not_the_treebank(tmp_path: Path):
    write(tmp_path, {"ud/yor/train.conllu": conllu(*POS) + "oops\tO\n\n" + conllu(*numbered(3, "NOUN"))})
    reading = read_folder(tmp_path, ReadOptions(tasks=("pos", "deprel"), cache=False))
    assert sizes(reading.grid) == {"pos/yor": {"ud": (5, 0, 0, 0)}, "deprel/yor": {"ud": (5, 0, 0, 0)}}
    problem = "expected 10 columns, got 2; is this a BIO file? rename it to .bio"
    assert [str(p) for p in reading.problems] == [f"ud/yor/train.conllu:6: sentence left out: {problem}"]


def test_files_of_one_kind_that_are_not_read_are_summed_up(tmp_path: Path):
    write(tmp_path, {f"model/part{i}.safetensors": "?" for i in range(9)} | {"ner/wol/train.bio": bio(*NER)})
    told = [str(problem) for problem in read_folder(tmp_path, ReadOptions(cache=False)).problems]
    assert told == [f"model/part{i}.safetensors: no corpus by its ending" for i in range(9)]
    (tmp_path / "ner" / "wol" / "train.bio").unlink()
    with pytest.raises(DataError, match=r"^model/\*.safetensors \(9 files\): no corpus by its ending\n.*got none$"):
        load_grid(tmp_path)


def test_folders_without_corpora_are_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"expected a folder of corpora, .*; got nothing"):
        load_grid(tmp_path / "missing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match=r"expected a folder of corpora, .*; got a file"):
        load_grid(tmp_path / "file")
    with pytest.raises(DataError, match=r"expected corpora as <task>/<language>/train.conllu .* got none"):
        load_grid(tmp_path)


def test_caps_come_after_leaks(tmp_path: Path):
    write(tmp_path, {"ner/wol/train.bio": bio(*numbered(10, "B-PER")), "ner/wol/test.bio": bio(*numbered(4, "B-PER"))})
    reading = read_folder(tmp_path, ReadOptions(max_train=5, seed=3))
    assert sizes(reading.grid) == {"ner/wol": {"ner": (5, 0, 4, 0)}}
    assert [str(p) for p in reading.problems] == ["ner/wol: sentences left out as dev or test text of ner: 4 training"]
    assert {s.words[0] for s in reading.grid.training(Cell("ner", "wol"))} < {f"erwa{i}" for i in range(4, 10)}


def test_one_file_per_language_and_corpora_of_one_name(tmp_path: Path):
    write(
        tmp_path,
        {
            "a/ner/wol.bio": bio(*numbered(10, "B-PER")),
            "b/ner/wol/train.bio": bio(*NER),
            "b/ner/wol/second-test.bio": bio(*numbered(2, "B-LOC", start=20)),
            "b/ner/wol/third.bio": bio(*numbered(10, "B-LOC")),
        },
    )
    assert sizes(load_grid(tmp_path)) == {
        "ner/wol": {"a/ner": (8, 1, 1, 0), "b/ner": (2, 0, 0, 0), "second": (0, 0, 2, 0), "third": (8, 1, 1, 0)}
    }
