"""Codes of UD, WikiANN and ISO 639."""

import pytest

from crossfill.data.codes import find_cell, find_language, language_code, language_name
from crossfill.errors import DataError
from crossfill.grid.cells import Cell

CODES = {
    # the paper's special cases (docs/data.md)
    "ar": "ara",
    "ku": "kmr",
    "gn": "gun",
    "kv": "kpv",
    "arc": "aii",
    "zh-yue": "yue",
    "zh_yue": "yue",
    "sme": "sme",
    # the paper's other languages, as UD and WikiANN write them
    "am": "amh",
    "bm": "bam",
    "cy": "cym",
    "et": "est",
    "eu": "eus",
    "fo": "fao",
    "hsb": "hsb",
    "hy": "hye",
    "myv": "myv",
    "tl": "tgl",
    "ug": "uig",
    "wo": "wol",
    "yue": "yue",
    # editions of Wikipedia, withdrawn and bibliographic codes, regions and scripts, codes of UD's own
    "zh-min-nan": "nan",
    "be-x-old": "bel",
    "simple": "eng",
    "iw": "heb",
    "ger": "deu",
    "sr-Latn": "srp",
    "pt_BR": "por",
    "qtd": "qtd",
}


@pytest.mark.parametrize(("code", "expected"), CODES.items())
def test_codes_become_iso_639_3(code: str, expected: str):
    assert language_code(code) == expected


def test_what_is_no_code_is_refused():
    for text in ("", "x", "typology", "train", "zz", "0a"):
        assert find_language(text) is None
    with pytest.raises(DataError, match=r"expected a language code of ISO 639, UD or WikiANN, .* got 'zz'"):
        language_code("zz")


def test_names():
    assert language_name("wol") == "Wolof"
    assert language_name("swa") == "Swahili"
    assert language_name("qtd") == "qtd"


def test_an_unknown_cell_is_told_with_those_that_are_nearest():
    known = [Cell(task, language) for task in ("chunk", "ner", "pos") for language in ("fin", "vie")]
    with pytest.raises(
        DataError, match=r"known: fin, vie; Wolof is not among these; .*add-language MODEL --language wol"
    ):
        find_cell("ner/wo", known)
    with pytest.raises(DataError, match="known: chunk/vie, ner/vie, pos/vie, chunk/fin"):
        find_cell("topic/vi", known)
