"""Lexicons of each format, and what is wrong with them, with its line."""

from pathlib import Path

import pytest

from crossfill.data.lexicons import read_lexicon
from crossfill.errors import DataError
from crossfill.grid.task import Task, Unit

POS = Task("pos", ("ADJ", "NOUN", "PROPN", "VERB"))
NER = Task("ner", ("B-LOC", "B-PER", "I-LOC", "I-PER", "O"))
LIFT = """<?xml version="1.0" encoding="UTF-8"?>
<lift version="0.13"><entry><lexical-unit><form lang="wol"><text>dem</text></form></lexical-unit>
<sense><grammatical-info value="v"/></sense><sense><grammatical-info value="Noun"/></sense></entry></lift>
"""


def forms(source: Path | str | dict, task: Task) -> dict[str, list[list[str]]]:
    return {" ".join(form.words): [sorted(of_word) for of_word in form.allowed] for form in read_lexicon(source, task)}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.tsv",
            "# mine\ndem\tVERB\nbank\tNOUN, verb\n\ndem\tNOUN\nbu  baax\tADJ\n",
            {"dem": ["NOUN", "VERB"], "bank": ["NOUN", "VERB"], "bu baax": ["ADJ"]},
        ),
        ("a.txt", "dem\tVERB/NOUN\nxale\tNOUN|ADJ\n", {"dem": ["NOUN", "VERB"], "xale": ["ADJ", "NOUN"]}),
        (
            "a.db",
            "\\_sh v3.0\n\\lx dem\n\\ge go\n\\ps v\n\n\\lx xale\n\\ps Noun\n",
            {"dem": ["VERB"], "xale": ["NOUN"]},
        ),
        ("a.lift", LIFT, {"dem": ["NOUN", "VERB"]}),
    ],
)
def test_formats(name: str, text: str, expected: dict[str, list[str]], tmp_path: Path):
    (tmp_path / name).write_text(text)
    (tmp_path / "pos_labels.txt").write_text("v\tVERB\nn\tNOUN\n")
    assert forms(tmp_path / name, POS) == {form: [labels] for form, labels in expected.items()}


def test_a_text_is_read_as_a_file_is_and_its_labels_are_written_again():
    assert forms("dem\tVERB\nxale\tNOUN\n", POS) == {"dem": [["VERB"]], "xale": [["NOUN"]]}
    for text, task in (("dem\tVERB\nbank\tVERB/NOUN\n", POS), ("Saint Louis\tPER,loc\nmooy\tO\n", NER)):
        once = read_lexicon(text, task)
        assert read_lexicon({" ".join(form.words): form.labels for form in once}, task) == once
    assert forms(LIFT.replace('"v"', '"VERB"'), POS) == {"dem": [["NOUN", "VERB"]]}
    with pytest.raises(DataError, match="the word list:2: unknown label 'X'"):
        read_lexicon("dem\tVERB\nxale\tX\n", POS)


def test_names_of_several_words_and_a_mapping():
    given = {"Dakar": "LOC", "Aminata Sall": ["PER"], "Saint Louis": "loc,PER", "mooy": "O"}
    assert forms(given, NER) == {
        "Dakar": [["B-LOC"]],
        "Aminata Sall": [["B-PER"], ["I-PER"]],
        "Saint Louis": [["B-LOC", "B-PER"], ["I-LOC", "I-PER"]],
        "mooy": [["O"]],
    }


@pytest.mark.parametrize(
    ("text", "task", "message"),
    [
        ("dem\tVERB\nxale\tNUON\n", POS, r"a.tsv:2: unknown label 'NUON'.*NOUN"),
        ("Dakar\tPLACE\n", NER, r"a.tsv:1: unknown label 'PLACE'.*LOC"),
        ("dem\n", POS, r"a.tsv:1: expected a form, a tab and its labels, as bank<TAB>NOUN,VERB; got 'dem'"),
        ("\tNOUN\n", POS, "a.tsv:1: expected a form"),
        ("\n# nothing\n", POS, "a.tsv: expected from 1 to 20,000 forms with their labels, got 0"),
        ("a b\tX\n", Task("chunk", ("B-X", "O")), "a.tsv:1: expected a name of one word"),
        ("a\tX\n", Task("topic", ("X",), Unit.SENTENCE), "expected a task that labels words"),
        ("<lift><entry/></lift>", POS, "a.tsv: expected from 1 to 20,000 forms with their labels, got 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, task: Task, message: str, tmp_path: Path):
    (tmp_path / "a.tsv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_lexicon(tmp_path / "a.tsv", task)


def test_files_that_are_not_there_or_not_xml(tmp_path: Path):
    with pytest.raises(DataError, match=r"a\.tsv"):
        read_lexicon(tmp_path / "a.tsv", POS)
    (tmp_path / "a.lift").write_text("<!DOCTYPE lift><lift/>")
    with pytest.raises(DataError, match=r"a\.lift:1: expected XML without a DTD"):
        read_lexicon(tmp_path / "a.lift", POS)
