"""Places in UTF-16 units, against the encoding itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfill.errors import DataError
from crossfill.integrations.annotation_tools import Utf16Places


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_places_are_those_of_the_encoding(text: str):
    places = Utf16Places(text)
    for i in range(len(text) + 1):
        units = len(text[:i].encode("utf-16-le")) // 2
        assert places.units(i) == units
        assert places.character(units) == i


def test_places_outside_and_within_a_character_are_refused():
    places = Utf16Places("𞤀b")
    for wrong, message in ((1, "which is within one"), (-1, "within the text's 3"), (4, "within the text's 3")):
        with pytest.raises(DataError, match=message):
            places.character(wrong)
    with pytest.raises(DataError, match="within the text's 0"):
        Utf16Places("").character(1)
