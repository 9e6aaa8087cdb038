"""Codes of UD, WikiANN and ISO 639."""

import pytest

from crossfill.data.codes import find_cell, find_language, is_own_name, language_code, language_name, language_tag
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
    "sr_Latn": "srp",
    # scripts as columns of their own, glottocodes, a name of one's own
    "sr-Latn": "srp-Latn",
    "srp-cyrl": "srp-Cyrl",
    "zh-Hans": "zho-Hans",
    "stan1295": "stan1295",
    "my-dialect": "my-dialect",
    "srp-Xxxy": "srp-Xxxy",
    "pt_BR": "por",
    "qtd": "qtd",
}


@pytest.mark.parametrize(("code", "expected"), CODES.items())
def test_codes_become_iso_639_3(code: str, expected: str):
    assert language_code(code) == expected


def test_what_is_no_code_is_refused():
    for text in ("", "x", "typology", "train", "zz", "0a", "stan1295", "my-dialect", "srp-Xxxy", "UD_Wolof-WTF"):
        assert find_language(text) is None
    for text in ("srp-Latn", "zh-yue", "train", "my_dialect", "-my", "my dialect", "../my-own", "stan0295"):
        assert not is_own_name(text)
    with pytest.raises(DataError, match=r"expected a language code, such as wol, .* such as my-dialect; got 'zz'"):
        language_code("zz")


def test_names():
    assert language_name("wol") == "Wolof"
    assert language_name("swa") == "Swahili"
    assert language_name("qtd") == "qtd"
    assert language_name("srp-Latn") == "Serbian (Latin)"
    assert language_name("zho-Hans") == "Chinese (Han)"
    assert language_name("my-dialect") == "my-dialect"


def test_tags_are_those_that_browsers_and_libraries_know():
    expected = {"wol": "wo", "kpv": "kpv", "srp-Latn": "sr-Latn", "nah": "nah", "qtd": "qtd"}
    assert {code: language_tag(code) for code in expected} == expected
    assert {language_tag(code) for code in ("stan1295", "my-dialect")} == {"und"}


def test_a_script_is_a_column_and_else_its_language_answers():
    both = [Cell("ner", language) for language in ("my-dialect", "srp", "srp-Latn", "stan1295")]
    for name, found in (("sr", "srp"), ("sr-latn", "srp-Latn"), ("srp-Cyrl", "srp"), ("stan1295", "stan1295")):
        assert find_cell(f"ner/{name}", both) == Cell("ner", found)
    assert find_cell("ner/my-dialect", both) == both[0]
    with pytest.raises(DataError, match="unknown cell 'ner/my-dialekt'; did you mean"):
        find_cell("ner/my-dialekt", both)
    assert Cell("feats:Case", "srp-Latn").file_name == "feats=Case-srp_Latn"
    for cell in (*both, Cell("a-b", "c-d"), Cell("feats:Case", "srp-Latn")):
        assert Cell.of_file(cell.file_name) == cell


def test_an_unknown_cell_is_told_with_those_that_are_nearest():
    known = [Cell(task, language) for task in ("chunk", "ner", "pos") for language in ("fin", "vie")]
    with pytest.raises(
        DataError, match=r"known: fin, vie; Wolof is not among these; .*add-language MODEL --language wol"
    ):
        find_cell("ner/wo", known)
    with pytest.raises(DataError, match="known: chunk/vie, ner/vie, pos/vie, chunk/fin"):
        find_cell("topic/vi", known)
