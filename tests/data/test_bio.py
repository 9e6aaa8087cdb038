"""Token columns in the states they come in."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossfill.data import bio
from crossfill.errors import DataError
from crossfill.grid.sentence import Column, Sentence
from tests.data.folders import read_bio

PLAIN = "Dakar\tB-LOC\nmooy\tO\n\nAminata\tB-PER\n\n"
SENTENCES = [Sentence(("Dakar", "mooy"), ("B-LOC", "O")), Sentence(("Aminata",), ("B-PER",))]


def parse(text: str) -> list[Sentence]:
    return list(read_bio(text.encode(), "train.bio"))


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "\ufeff" + PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\t", " "),
        PLAIN.replace("\t", "   "),
        PLAIN.replace("\n\n", "\n \t\n \n"),
        PLAIN.replace("\n", "  \n"),
        PLAIN.replace("\tO", "\tO\t"),
        PLAIN.rstrip("\n"),
        PLAIN.replace("\t", "\tNNP\t_\t"),
        PLAIN.replace("\t", " NNP B-NP "),
        "-DOCSTART- -X- -X- O\n\n" + PLAIN.replace("\t", " NNP B-NP "),
        "-DOCSTART-\tO\n" + PLAIN,
        "# id 7 domain=wo\n" + PLAIN,
    ],
)
def test_states_that_corpora_come_in(text: str):
    assert parse(text) == SENTENCES


def test_words_may_hold_spaces_between_tabs_and_hashes_are_words():
    assert parse("Hà Nội\tB-LOC\n#\tO\n") == [Sentence(("Hà Nội", "#"), ("B-LOC", "O"))]
    assert parse("# O\n\xa0 O\n")[0].words == ("#", "\xa0")


def test_the_prefix_of_wikiann_is_taken_off_only_where_every_word_has_it():
    def without(*words: str) -> tuple[list[str], str]:
        column, prefix = bio.without_prefix(Column.of(words))
        return list(column), prefix

    assert without("wo:Dakar", "wo:mooy", "wo:Dakar") == (["Dakar", "mooy", "Dakar"], "wo:")
    assert without("Dakar", "mooy") == (["Dakar", "mooy"], "")
    assert without("wo:a", "b") == (["wo:a", "b"], "")
    assert without("zh-yue:我", "zh-yue:") == (["我", "zh-yue:"], "zh-yue:")
    assert without() == ([], "")


token = st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=6).filter(
    lambda text: text != "-DOCSTART-"
)


@given(st.lists(st.lists(st.tuples(token, st.sampled_from(["O", "B-A", "I-A"])), min_size=1, max_size=4), max_size=4))
@example([[("\ufeff", "O")], [("\ufeffa", "O")]])
def test_what_is_written_is_read_back(drawn: list[list[tuple[str, str]]]):
    sentences = [Sentence(*(tuple(column) for column in zip(*rows, strict=True))) for rows in drawn]
    assert [s for s in parse(bio.render(sentences)) if not s.words[0].startswith("-DOCSTART-")] == [
        s for s in sentences if not s.words[0].startswith("-DOCSTART-")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tO\nb\n", "train.bio:2: expected a word and a tag, got one column; separate them"),
        ("a\tO\n\n\tO\n", "train.bio:3: expected a word before the tag, got nothing; remove"),
        (
            "1\tw\t_\tX\t_\t_\t0\troot\t_\tMisc=1\n",
            "train.bio:1: expected words in column 1, got numbers; is this CoNLL-U? rename it to .conllu (1 | w",
        ),
    ],
)
def test_what_is_wrong_is_said_with_line_and_remedy(text: str, message: str):
    with pytest.raises(DataError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)
