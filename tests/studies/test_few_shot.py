"""A study with learning curves: points of every unseen cell, and their tables."""

from pathlib import Path

import pytest

from crossfill.report.tables import few_shot_tables
from crossfill.studies.run_folder import open_results
from tests.studies.studies import checked, conduct

CHANGES = {
    "partitions": [{"kind": "random", "halves": [1], "methods": ["jm", "pf-lr"]}],
    "few_shot": {"sentences": [0, 1, 4], "draws": 2, "annotate": True},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("few") / "run"
    assert not conduct(folder, **CHANGES)
    return folder


def test_every_unseen_cell_has_a_curve(run: Path) -> None:
    results = open_results(run)
    for entry in results.entries:
        rows = results.jobs[entry.job]["few_shot"][entry.method]
        zero_shot = {str(r.cell): r.score for r in results.unseen([entry])}
        assert {row["cell"] for row in rows} == set(zero_shot)
        for row in rows:
            if row["choice"] == "random" and row["sentences"] == 0:
                assert row["adapted"] == pytest.approx(zero_shot[row["cell"]], abs=1e-5)
            if row["draw"] or row["choice"] == "annotate":
                assert row["scratch"] is None
        budgets = {(r["cell"], r["sentences"]): r["words"] for r in rows if r["choice"] == "random" and not r["draw"]}
        chosen = [row for row in rows if row["choice"] == "annotate"]
        assert len(chosen) == (2 * len(zero_shot) if entry.method == results.focus else 0)
        for row in chosen:
            assert row["words"] <= budgets[row["cell"], 4] or row["sentences"] == 1


def test_tables_show_the_curves(run: Path) -> None:
    results = open_results(run)
    scores, losses, priors = few_shot_tables(results)
    assert scores.columns == ("task", "head", "0", "1", "4")
    names = {row[1].text for row in scores.rows}
    assert {"JM", "PF-lr", "from scratch", "chosen", "cells"} <= names
    assert len(losses.rows) == 2 * len(results.tasks)
    assert {row[1].text for row in priors.rows} == {"PF-lr"}


def test_a_study_without_curves_has_no_such_tables_and_the_same_jobs() -> None:
    plain, asked = (checked(**changes).plan for changes in ({}, {"few_shot": {"draws": 1}}))
    assert set(plain.jobs).isdisjoint(asked.jobs)
    assert all(job.few_shot is None for job in plain.jobs.values())
