"""Running a study: complete, resumable, and not stopped by a job that fails."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.config import Config
from crossfill.errors import OutputError
from crossfill.evaluation.results import CellResult
from crossfill.executors.worker_jobs import LOCK, Event, Executor, WorkerJob, attempt
from crossfill.files import locked
from crossfill.grid.cells import Cell, Grid
from crossfill.report.tables import held_out_table
from crossfill.studies.run import run_study
from crossfill.studies.run_folder import StudyResults, open_results
from crossfill.tagger import train
from crossfill.tagger.train import train_model
from tests.executors.processes import children
from tests.studies.studies import InlineExecutor, checked, conduct, outcomes, study

RUN = CliRunner()
TWO = {"partitions": [{"kind": "random", "halves": [1], "methods": ["jm", "pf-lr"]}]}
LONGER = {"training": {"steps": 100, "checkpoint_every": 10}}


def test_a_study_of_six_methods_leaves_one_result_per_job_and_a_flat_row_per_cell(tmp_path: Path):
    run = tmp_path / "run"
    assert conduct(run, partitions=[{"kind": "random", "halves": [1]}]) == {}
    assert len(outcomes(run)) == 5
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    assert len(rows) == 6 * 16  # entries × cells
    shared = set.intersection(*(set(row) for row in rows))
    for name in ("method", "partition", "seed", "cell", "seen", "score", "averaged_nll", "n_words", "train_seconds",
                 "parameters", "job", "version_torch"):  # fmt: skip
        assert name in shared
    assert all(not isinstance(value, list | dict) for row in rows for value in row.values())
    assert not list(run.glob("jobs/*/training"))
    results = open_results(run)
    assert results.methods == ["bea", "ns", "ls", "jm", "pf-d", "pf-lr"]
    posteriors = results.jobs[results.proper("pf-lr")[0].job]["posteriors"]
    assert len(posteriors["means"]) == 4
    assert all(len(q["variance"]) == 3 and len(q["factor"]) == 3 for q in posteriors["chosen"].values())


def test_a_second_run_does_nothing_and_a_larger_study_only_what_is_new(tmp_path: Path):
    conduct(tmp_path, **TWO)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("jobs/*/result.json")}
    assert not run_study(checked(**TWO, seeds=[0, 1]), tmp_path, InlineExecutor())
    assert (len(outcomes(tmp_path)), len(before)) == (4, 2)
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())


def test_languages_that_chose_the_settings_train_and_are_not_scored(tmp_path: Path):
    language = checked(**TWO).grid.grid.languages[0]
    chosen = {"date": "2026-11-18", "languages": [language]}
    conduct(tmp_path, **TWO, chosen=chosen, few_shot={"sentences": [0, 1], "draws": 1})
    results = open_results(tmp_path)
    for entry in results.entries:
        job = results.jobs[entry.job]
        assert any(cell.endswith(language) for cell in job["seen"])
        cells = [result.cell for result in results.cells(entry)]
        assert cells
        assert language not in {cell.language for cell in cells}
        points = {Cell.parse(row["cell"]).language for rows in job["few_shot"].values() for row in rows}
        assert points
        assert language not in points


def test_decisions_are_fitted_on_held_out_cells_once_for_all_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    trained: list[tuple[str, int, int]] = []

    def noted(grid, seen, config, out, *given):
        if "held_out" in str(out):
            trained.append((config.method, config.training.seed, len(seen)))
        return train_model(grid, seen, config, out, *given)

    monkeypatch.setattr(train, "train_model", noted)
    partitions = [{"kind": "random", "halves": [1], "methods": ["jm", "ns", "bea"]}]
    conduct(tmp_path, partitions=partitions, seeds=[3, 4], folds=2)
    assert sorted(method for method, _, _ in trained) == ["jm", "jm", "ns", "ns"]  # bea has the heads of ns
    assert {seed for _, seed, _ in trained} == {3}
    found = StudyResults(tmp_path)
    n_seen = len(next(iter(found.jobs.values()))["seen"])
    assert all(n < n_seen for _, _, n in trained)
    rules = [job["rules"] for job in found.jobs.values()]
    assert [sorted(own) for own in rules].count(["bea", "ns"]) == 2
    assert rules[0] in rules[1:]  # the other seed's
    for own in rules:
        for method in own.values():
            assert all(task["temperature"] > 0 and task["n_cells"] > 1 for task in method["plug_in"].values())
            assert set(method["plug_in"]["ner"]["offsets"]) == {"f1", "precision", "recall"}
    cells = [cell for job in found.jobs.values() for own in job["methods"].values() for cell in own["cells"]]
    assert all("label_sets" in cell for cell in cells)
    table = held_out_table(open_results(tmp_path))
    assert {(row[1].text, row[2].text) for row in table.rows} == {
        (task, method) for task in ("chunk", "deprel", "ner", "pos") for method in ("BEA", "NS", "JM")
    }
    (row,) = (row for row in table.rows if row[1].text == "ner" and row[2].text == "JM")
    own = [
        CellResult.from_dict(cell)
        for job in found.jobs.values()
        for cell in job["methods"].get("jm", {"cells": ()})["cells"]
        if cell["cell"].startswith("ner/") and not cell["seen"]
    ]
    assert row[4].value == pytest.approx(100 * np.mean([r.score for r in own]))
    assert row[11].value == pytest.approx(np.mean([r.label_sets.coverage for r in own if r.label_sets]))
    assert not conduct(tmp_path / "plain", partitions=partitions, seeds=[3])
    assert len(outcomes(tmp_path / "plain")) == 2
    assert not set(StudyResults(tmp_path / "plain").jobs) & set(found.jobs)


def test_oracle_selection_is_another_job_and_is_told_in_every_row(tmp_path: Path):
    oracle = {"oracle": {"training": {"selection": "oracle"}}}
    partitions = [{"kind": "random", "halves": [1], "methods": ["jm"]}]
    conduct(tmp_path, partitions=partitions, ablations=[{"name": "selection", "variants": oracle}])
    rows = list(StudyResults(tmp_path).rows())
    assert {row["selection"] for row in rows if row["variant"] == "oracle"} == {"oracle"}
    assert {row["selection"] for row in rows if row["variant"] == "base"} == {"seen"}


def test_a_failed_job_is_reported_with_its_log_and_does_not_stop_the_others(tmp_path: Path, monkeypatch, capsys):
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(study(**TWO)))
    run = tmp_path / "run"
    from crossfill.cli.app import main
    from crossfill.executors import worker_jobs

    def diverge(grid: Grid, seen: frozenset[Cell], config: Config, *given: object, **named: object) -> object:
        if config.method == "jm":  # no study may set such a rate
            rates = config.training.model_copy(update={"learning_rate": 1e38})
            config = config.model_copy(update={"training": rates})
        return train_model(grid, seen, config, *given, **named)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(train, "train_model", diverge)
    monkeypatch.setattr(worker_jobs, "build_executor", lambda _: InlineExecutor())
    monkeypatch.setattr(sys, "argv", ["crossfill", "experiment", str(config), "--out", str(run)])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert "1 of 2 jobs failed; the others are done" in message
    assert "expected a finite loss" in message
    assert len(outcomes(run)) == 1
    failures = [json.loads(path.read_text()) for path in run.glob("jobs/*/failed.json")]
    assert len(failures) == 1
    assert all("Error: " in failure["message"] and failure["trace"] for failure in failures)


def test_one_study_at_a_time_in_a_folder(tmp_path: Path):
    with locked(tmp_path / LOCK, wait=False), pytest.raises(OutputError, match="another crossfill experiment"):
        conduct(tmp_path, **TWO)


def test_a_dry_run_shows_the_plan_and_trains_nothing(tmp_path: Path):
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(study()))
    result = RUN.invoke(app, ["experiment", str(config), "--out", str(tmp_path / "run"), "--dry-run"])
    assert result.exit_code == 0, result.output
    assert "10 jobs for 12 entries, 10 to do: 120 training steps at most" in result.output
    assert not (tmp_path / "run").exists()


def test_a_bad_study_fails_before_anything_is_written(tmp_path: Path, monkeypatch, capsys):
    from crossfill.cli.app import main

    config = tmp_path / "study.yaml"
    config.write_text(
        yaml.safe_dump(study(data={"synthetic": None, "path": "nowhere"}, config={"training": {"stesp": 3}}))
    )
    monkeypatch.setattr(sys, "argv", ["crossfill", "experiment", str(config), "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert "unknown setting 'stesp'" in message
    assert not (tmp_path / "run").exists()


def killed(tmp_path: Path, n_kills: int, jobs: int, seed: int, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """SIGKILL a study at random moments: its outcomes in the end, and those of one that was left alone."""
    config, run, whole = tmp_path / "study.yaml", tmp_path / "run", tmp_path / "whole"
    config.write_text(yaml.safe_dump(study(**changes, config=LONGER, execution={"jobs": jobs})))
    run_study(checked(**changes, config=LONGER), whole, InlineExecutor())
    rng = random.Random(seed)
    command = [sys.executable, "-m", "crossfill", "--quiet", "experiment", str(config), "--out", str(run)]
    finished: dict[Path, int] = {}
    for i in range(n_kills):
        process = subprocess.Popen(command)
        before = len(list(run.glob("jobs/*/*")))
        while (i + 1) % 3 and process.poll() is None and len(list(run.glob("jobs/*/*"))) == before:
            time.sleep(0.05)  # two times of three, something has happened when it is killed
        time.sleep(rng.uniform(0.0, 3.0))
        process.kill()
        process.wait()
        for path, written in finished.items():
            assert path.stat().st_mtime_ns == written, "a completed job ran again"
        for path in run.glob("jobs/*/result.json"):
            json.loads(path.read_text())
            finished[path] = path.stat().st_mtime_ns
    subprocess.run(command, check=True)
    assert all(path.stat().st_mtime_ns == written for path, written in finished.items())
    assert len(list(open_results(run).rows())) == len(outcomes(whole)) * 16
    return outcomes(run), outcomes(whole)


class Crash(BaseException):
    """What nothing but the test catches."""


class CrashingExecutor(Executor):
    """Goes down with its first job, at a training step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def run(self, jobs: Mapping[str, WorkerJob]) -> Iterator[Event]:
        for name, job in jobs.items():
            attempt(name, job.work, 1, self.report)
            yield from ()

    def report(self, step: int, _note: str) -> None:
        if step == self.step:
            raise Crash


def test_cut_short_in_the_middle_it_ends_the_same(tmp_path: Path):
    longer = checked(**TWO, config={"training": {"steps": 30, "checkpoint_every": 10}})
    run_study(longer, tmp_path / "whole", InlineExecutor())
    for step in (4, 17):
        with pytest.raises(Crash):
            run_study(longer, tmp_path / "run", CrashingExecutor(step))
        assert not outcomes(tmp_path / "run")
    run_study(longer, tmp_path / "run", InlineExecutor())
    assert outcomes(tmp_path / "run") == outcomes(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_killed_at_twenty_moments_it_ends_the_same(tmp_path: Path):
    partitions = [{"kind": "random", "methods": ["jm", "pf-d", "pf-lr"]}]
    found, expected = killed(tmp_path, 20, jobs=2, seed=1, partitions=partitions, seeds=[0, 1])
    assert found == expected


def test_ctrl_c_leaves_a_run_that_can_be_taken_up(tmp_path: Path):
    config, run = tmp_path / "study.yaml", tmp_path / "run"
    config.write_text(yaml.safe_dump(study(**TWO, config={"training": {"steps": 9000}}, execution={"jobs": 1})))
    command = [sys.executable, "-m", "crossfill", "experiment", str(config), "--out", str(run)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not list(run.glob("jobs/*/log.txt")):
        time.sleep(0.1)
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; the same command continues it" in message
    assert workers
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
