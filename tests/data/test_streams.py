"""Text to be tagged, as it is read."""

from io import BytesIO

from crossfill.data.streams import read_items


def test_a_word_that_looks_like_a_comment_is_a_word():
    text = "# a comment before the words\n# O\nDakar O\n-DOCSTART- O\n# O\n\n# id\twol\tdomain\nmooy\n"
    items = read_items(BytesIO(text.encode()), "in.bio", "bio", "wol")
    assert [item.sentence.words for item in items] == [("#", "Dakar", "#"), ("mooy",)]
