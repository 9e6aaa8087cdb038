"""Tables against results made by hand, and their forms."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from crossfill.report import rendering
from crossfill.report.rendering import Datum, Table, with_best_in_bold
from crossfill.report.tables import main_table, make_tables
from crossfill.studies.run_folder import StudyResults, open_results
from tests.studies.studies import hand_made

LANGUAGES = [f"l{i:02d}" for i in range(12)]


@pytest.fixture
def results(tmp_path):
    """Three methods on 12 pos cells and 2 ner cells, two seeds: jm is far below pf-lr, pf-d level with it."""
    scores = {"jm": {}, "pf-d": {}, "pf-lr": {}}
    for i, language in enumerate(LANGUAGES):
        base = 0.5 + 0.02 * i
        scores["pf-lr"][f"pos/{language}"] = [base, base + 0.02]
        scores["pf-d"][f"pos/{language}"] = [base + (0.01 if i % 2 else -0.015), base + 0.02]
        scores["jm"][f"pos/{language}"] = [base - 0.2, base - 0.18]
    for method, low, high in (("jm", 0.3, 0.4), ("pf-d", 0.2, 0.3), ("pf-lr", 0.4, 0.6)):
        scores[method] |= {"ner/l00": [low, low], "ner/l01": [high, high]}
    return open_results(hand_made(tmp_path, scores))


def test_table_1_has_means_spreads_and_marks(results):
    table = main_table(results, "random")
    assert table.columns == ("task", "JM", "PF-d", "PF-lr")
    ner, pos, mean = table.rows
    # the mean over l00 … l11 of 0.5 + 0.02 i is 0.61, and 0.63 with the other seed: sd = 0.02 / √2
    assert pos[3] == Datum("62.0 ± 1.4", pytest.approx(62.0), bold=True)
    assert pos[1].text == "42.0 ± 1.4"
    assert (pos[1].mark, pos[1].bold) == ("†", False)
    assert (pos[2].text, pos[2].mark, pos[2].bold) == ("61.9 ± 1.6", "", False)  # not the best, but level with it
    # two cells cannot show a difference; the best is the best nevertheless
    assert [datum.mark for datum in ner[1:]] == ["", "", ""]
    assert [datum.bold for datum in ner[1:]] == [False, False, True]
    assert ner[3].value == pytest.approx(50.0)
    # tasks weigh the same in the mean, however many cells they have
    assert mean[3].value == pytest.approx((62.0 + 50.0) / 2)
    assert [datum.bold for datum in mean[1:]] == [False, False, True]
    assert "± standard deviation over 2 seeds. Bold: the best. †" in table.caption


def test_there_is_one_table_1_however_many_groups_and_kinds(results, tmp_path):
    assert [table.title for table in make_tables(results)[:2]] == [
        "Table 1: scores on unseen cells, posterior means plugged in",
        "Averaged prediction: scores on unseen cells",
    ]
    plan = json.loads((results.run / "plan.json").read_text())
    plan["entries"] += [entry | {"partition": "hold-out", "group": "hold-out"} for entry in plan["entries"]]
    (results.run / "plan.json").write_text(json.dumps(plan))
    tables = make_tables(StudyResults(results.run))
    assert [table.name for table in tables[:4]] == ["table1", "averaged", "plug-in-hold-out", "averaged-hold-out"]
    assert [table.title.startswith("Table 1") for table in tables].count(True) == 1
    assert tables[2].title == "Plug-in prediction: scores on unseen cells (partitions: hold-out)"
    assert len({table.title for table in tables}) == len({table.name for table in tables}) == len(tables)


def test_one_seed_has_no_deviation_and_one_method_nothing_in_bold(tmp_path):
    cells = {f"{task}/{language}": [0.5] for task in ("ner", "pos") for language in LANGUAGES}
    for table in make_tables(open_results(hand_made(tmp_path, {"pf-lr": cells}))):
        assert "±" not in rendering.markdown(table)
        assert "seed" not in table.caption
        assert "Bold" not in table.caption
        assert not any(datum.bold for row in table.rows for datum in row)


def test_ties_share_the_bold_to_the_digit_shown():
    def bold(*values: float | None) -> list[bool]:
        return [datum.bold for datum in with_best_in_bold([Datum(str(value), value) for value in values])]

    assert bold(50.2, 49.9, 50.2) == [True, False, True]
    assert bold(50.24, 50.16, 50.11) == [True, True, False]  # 50.2, 50.2 and 50.1
    assert bold(50.0, 50.0) == [False, False]  # nothing is better than anything
    assert bold(None, 3.0, None) == [False, False, False]
    assert bold(None, 3.0, 0.0) == [False, True, False]
    assert not with_best_in_bold([Datum("50.2", 50.24), Datum("50.2", 50.16, mark="†"), Datum("1", 1.0)])[1].bold


def test_bold_is_never_below_the_best_of_its_row(results):
    for table in make_tables(results):
        for row in table.rows:
            scores = [datum.value for datum in row if datum.value is not None]
            assert all(datum.value == pytest.approx(max(scores), abs=0.1) for datum in row if datum.bold)


def test_all_tables_are_there_and_entropy_goes_with_error(results):
    tables = {table.name: table for table in make_tables(results)}
    expected = {"table1", "averaged", "calibration", "entropy", "differences", "languages"}
    assert set(tables) == expected
    # made so that a cell's entropy is 1 − its score
    assert [row[2].value for row in tables["entropy"].rows] == pytest.approx([-1.0] * 3)
    assert len(tables["languages"].rows) == 14
    assert len(tables["calibration"].rows) == 2 * 3 * 2


def test_methods_are_compared_with_the_rival_and_sizes_with_scores(tmp_path: Path):
    cells = [f"pos/l{i:02}" for i in range(12)]
    scores = {
        "jm": {cell: [0.5 + 0.01 * i] for i, cell in enumerate(cells)},
        "pf-d": {cell: [0.5 + 0.01 * i] for i, cell in enumerate(cells)},
        "pf-lr": {cell: [0.6 + 0.01 * i] for i, cell in enumerate(cells)},
    }
    run = hand_made(tmp_path, scores)
    for path in run.glob("jobs/*/result.json"):
        result = json.loads(path.read_text())
        result["words"] = {f"ner/l{i:02}": 1000 * 2**i for i in range(12)}
        path.write_text(json.dumps(result))
    study = json.loads((run / "study.json").read_text())
    (run / "study.json").write_text(json.dumps(study | {"encoder_languages": ["l00", "l01"]}))
    tables = {table.name: table for table in make_tables(StudyResults(run))}
    rows = {(row[1].text, row[2].text): row for row in tables["differences"].rows}
    assert set(rows) == {("PF-d", "JM"), ("PF-lr", "JM"), ("PF-lr", "PF-d")}
    assert (rows["PF-lr", "JM"][3].text, rows["PF-lr", "JM"][4].text) == ("+10.0", "+10.0 to +10.0")
    assert rows["PF-lr", "JM"][6].value < 0.01  # all twelve signs agree
    assert [rows[pair, "JM"][6].mark for pair in ("PF-lr", "PF-d")] == ["*", ""]
    assert (rows["PF-d", "JM"][3].text, rows["PF-d", "JM"][7].text) == ("+0.0", "0 / 0")
    assert rows["PF-lr", "PF-d"][7:] == rows["PF-lr", "JM"][7:]
    assert rows["PF-lr", "JM"][8].text == "12 of 12"
    assert all(row[2].text == "1.00" for row in tables["size"].rows)  # scores grow with the logarithm of the words
    known = {row[1].text: [datum.text for datum in row[2:]] for row in tables["knowledge"].rows}
    assert known["JM"] == ["50.5 (2)", "56.5 (10)", "−6.0"]
    assert known["PF-lr"] == ["60.5 (2)", "66.5 (10)", "−6.0"]


def test_a_table_says_that_other_languages_chose_the_settings(tmp_path: Path):
    run = hand_made(tmp_path, {"jm": {"pos/aaa": [0.5]}})
    assert "chosen" not in main_table(StudyResults(run), "random").caption
    study = json.loads((run / "study.json").read_text())
    chosen = {"date": "2026-11-18", "languages": ["bbb", "ccc"]}
    (run / "study.json").write_text(json.dumps(study | {"chosen": chosen}))
    assert "chosen on 2026-11-18 on 2 other languages" in main_table(StudyResults(run), "random").caption


TABLE = Table("t", "A title", ("|L|", "x_1"), ((Datum("a & b"), Datum("1.5 ± 0.2", 1.5, True, "†")),), "50 % of it")


def test_markdown():
    lines = rendering.markdown(TABLE).splitlines()
    assert lines[2:5] == [r"| \|L\| | x_1 |", "| --- | ---: |", "| a & b | **1.5 ± 0.2†** |"]


def test_html_and_terminal():
    text = rendering.html(TABLE)
    assert '<td class=number data-value="1.5"><b>1.5 ± 0.2<sup>†</sup></b></td>' in text
    assert "a &amp; b" in text
    console = Console(width=60, record=True, file=StringIO())
    console.print(rendering.terminal(TABLE))
    assert "1.5 ± 0.2†" in console.export_text()
