"""Results as a table: every number of every corpus, as text and in a data frame."""

from dataclasses import replace

import pytest

from crossfill.evaluation.results import CellResult, Results, SetResult
from tests.evaluation.made_results import result

RISK = [0.0] * 15 + [0.1] * 4 + [0.4]


def some() -> list[CellResult]:
    first, second = result("ner/wol", 0.7, "<one>"), result("pos/wol", 0.9, seen=True)
    sets = SetResult(alpha=0.1, coverage=0.875, set_size=1.25, single=0.8, tempered_nll=0.4, tempered_ece=0.1)
    return [replace(first, risk_coverage=RISK, label_sets=sets), replace(second, risk_coverage=RISK)]


def test_it_is_the_list_it_was():
    assert Results(some()) == some()
    assert [found.score for found in Results(some())] == [0.7, 0.9]


def test_rows_have_every_number():
    rows = Results(some()).rows
    assert [row["cell"] for row in rows] == ["ner/wol", "pos/wol"]
    assert rows[0] | {"errors_removed": 0} == {
        "cell": "ner/wol", "corpus": "<one>", "seen": False, "words": 10, "score": 0.7, "averaged": 0.7, "nll": 0.5,
        "ece": 0.5, "aurc": 0.5, "errors_removed": 0, "coverage": 0.875, "set_size": 1.25,
    }  # fmt: skip
    # 10 words, of which 4 are wrong; of the 8 surest 0.8 are: 3.2 of 4 errors are among the rest
    assert rows[0]["errors_removed"] == pytest.approx(3.2 / 4)


def test_text_shows_all_rows():
    lines = repr(Results(some())).splitlines()
    assert [line.split()[0] for line in lines] == ["cell", "ner/wol", "pos/wol"]
    assert "0.875" in lines[1]
    assert repr(Results()) == "nothing"


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = Results(some()).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["score"].tolist() == [0.7, 0.9]
    assert frame["coverage"].isna().tolist() == [False, True]
