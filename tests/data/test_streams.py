"""Text to be tagged, as it is read."""

import json
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossfill.data import streams
from crossfill.data.segmentation import Segmenter
from crossfill.data.streams import Cutting, Format, Item, read_items
from crossfill.errors import DataError

TEXT = "Dakar mooy péeyu.  Helsinki on kaupunki.\n\n ฉันเป็นนักเรียน 👨‍👩‍👧 🇸🇳 !\n"


def read(text: str, form: Format, cutting: Cutting = "raw") -> list[Item]:
    return list(read_items(BytesIO(text.encode()), f"in.{form}", form, Segmenter("wol"), cutting))


def objects(*found: object, cutting: Cutting = "raw") -> list[Item]:
    return read("".join(json.dumps(line) + "\n" for line in found), "jsonl", cutting)


def test_a_word_that_looks_like_a_comment_is_a_word():
    text = "# a comment before the words\n# O\nDakar O\n-DOCSTART- O\n# O\n\n# id\twol\tdomain\nmooy\n"
    items = read_items(BytesIO(text.encode()), "in.bio", "bio", Segmenter("wol"))
    assert [item.sentence.words for item in items] == [("#", "Dakar", "#"), ("mooy",)]


@pytest.mark.parametrize("cutting", ["raw", "lines", "words"])
def test_texts_in_json_are_cut_as_text_files_are(cutting: Cutting):
    plain = [item.sentence for item in read(TEXT, "text", cutting) if item.sentence]
    found = objects({"id": 7, "text": TEXT}, cutting=cutting)
    assert [item.sentence for item in found] == plain
    assert [item.fields["sentence"] for item in found] == list(range(len(found)))
    assert {item.fields["id"] for item in found} == {7}
    for item in found:
        text, start = item.fields["text"], item.fields["start"]
        assert item.sentence.original == text == TEXT[start : start + len(text)]
        assert [text[a:b] for a, b in item.sentence.offsets] == list(item.sentence.words)


def test_what_is_cut_from_text_says_where_it_stood():
    found = [(item.fields["line"], item.fields["sentence"], item.sentence.words[0]) for item in read(TEXT, "text")]
    assert found == [(1, 0, "Dakar"), (1, 1, "Helsinki"), (3, 0, "ฉัน")]
    lines = ["Dakar mooy", " péeyu. Ñi fa!  Awa", "dem na.", "", "Ndar."]
    for item in (items := read("\n".join(lines), "text")):
        line = "\n".join(lines[item.fields["line"] - 1 :])
        assert line.startswith(item.fields["text"], item.fields["start"])
        assert item.sentence.offsets[0][0] == 0
        assert item.sentence.offsets[-1][1] == len(item.fields["text"])
    assert [(item.fields["line"], item.fields["start"]) for item in items] == [(1, 0), (2, 8), (2, 16), (5, 0)]


@pytest.mark.parametrize(
    ("cutting", "sentences"),
    [
        ("raw", ["Dakar mooy péeyu Senegaal .", "Awa dem", "na ."]),
        ("texts", ["Dakar mooy", "péeyu Senegaal .", "Awa dem", "na ."]),
        ("lines", ["Dakar mooy", "péeyu Senegaal .", "Awa dem", "", "na ."]),
    ],
)
def test_lines_are_one_paragraph_up_to_a_blank_line(cutting: Cutting, sentences: list[str]):
    items = read("Dakar mooy\npéeyu Senegaal.\nAwa dem\r\n \r\nna.", "text", cutting)
    assert [" ".join(item.sentence.words) for item in items] == sentences


def test_a_text_of_many_lines_without_a_blank_one_is_read_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "LONGEST_WINDOW", 100)
    items = read("Dakar mooy péeyu.\n" * 50, "text")
    assert [item.fields["line"] for item in items] == list(range(1, 51))
    assert max(item.fields["sentence"] for item in items) < 10


def test_contractions_come_back_from_json():
    fields = {"words": ["Il", "de", "le", "ch"], "offsets": [[0, 2], [3, 5], [3, 5], [6, 8]], "text": "Il du ch"}
    fields |= {"surfaces": ["Il", "du", "", "ch"], "spaces": [True, False, True, False]}
    (item,) = objects(fields)
    assert item.sentence.tokens == [(0, 1, "Il"), (1, 3, "du"), (3, 4, "ch")]
    assert [list(place) for place in item.sentence.offsets] == fields["offsets"]


def test_a_text_without_words_is_still_an_object():
    first, second = objects({"id": 1, "text": " \n "}, {"id": 2, "text": ""})
    assert (first.fields, len(first.sentence)) == ({"id": 1, "text": " \n ", "sentence": 0}, 0)
    assert second.fields["id"] == 2


def test_words_are_placed_in_their_text_by_offsets():
    words = ["Dakar", ",", "mooy"]
    (placed,) = objects({"words": words, "text": "Dakar,  mooy", "offsets": [[0, 5], [5, 6], [8, 12]], "sentence": 1})
    assert (placed.sentence.offsets, placed.sentence.spaces) == (((0, 5), (5, 6), (8, 12)), (False, True, False))
    assert placed.fields == {"text": "Dakar,  mooy", "sentence": 1}
    (other,) = objects({"words": words, "text": "Dakar , muy"})
    assert (other.sentence.original, other.fields) == ("Dakar , mooy", {})


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            {"words": ["a"], "text": "ab", "offsets": [[1, 2]]},
            "in.jsonl:1: expected 'a' at character 1 of the text, got 'b'",
        ),
        ({"words": ["a", "b"], "text": "a b", "offsets": [[0, 1]]}, "one per word"),
        ({"words": ["a"], "text": "a", "offsets": [[0, True]]}, "expected offsets as a list of [start, end]"),
        ({"words": ["a"], "text": "a", "offsets": 3}, "expected offsets as a list of [start, end]"),
        ({"text": "Dakar \ud83d"}, "in.jsonl:1: expected whole characters, got half of a surrogate pair"),
        ({"words": ["\udc00"]}, "half of a surrogate pair"),
        ({"words": ["a"], "surfaces": [""]}, "expected surfaces as a list of strings"),
        ({"words": ["a"], "surfaces": ["a", "b"]}, "expected 1 surfaces, one per word, got 2"),
    ],
)
def test_objects_that_contradict_themselves_are_refused(found: object, message: str):
    with pytest.raises(DataError) as refused:
        objects(found)
    assert message in str(refused.value)


SPACES = st.sampled_from([" ", "  ", "\t", "\u00a0", "\n", "\r\n", "\u2028", "\x0c", ""])
WORDS = st.sampled_from(["Dakar", "mooy.", "ฉันเป็น", "👨‍👩‍👧!", "pe\u0301ey", "مُحَمَّد؟", "J.", "। नमस्ते"])


@settings(deadline=None)
@given(st.lists(st.tuples(SPACES, WORDS), max_size=12), SPACES, st.sampled_from(["raw", "lines", "words"]))
def test_nothing_of_a_text_is_lost_between_its_sentences(drawn: list[tuple[str, str]], last: str, cutting: Cutting):
    text = "".join(space + word for space, word in drawn) + last
    in_file, in_object = (
        read(text, "text", "layout" if cutting == "raw" else cutting),
        objects({"text": text}, cutting=cutting),
    )
    assert "".join(item.before + between(item) + item.after for item in in_file) == text
    assert "".join(item.before + between(item) + item.after for item in in_object) == text + "\n"
    assert all("\n" in item.after for item in (*in_file[:-1], *in_object[:-1]) if item.after)


def between(item: Item) -> str:
    """The text from the first word to the last."""
    offsets = item.sentence.offsets
    return item.sentence.original[offsets[0][0] : offsets[-1][1]] if offsets else ""
