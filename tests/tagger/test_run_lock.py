"""A model folder holds one run: nothing is overwritten unasked, and nothing of two runs is ever mixed."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import crossfill
from crossfill import checkpoint
from crossfill.encoders.cache import FeatureCache, Key
from crossfill.errors import CheckpointError, ConfigError
from crossfill.files import locked, write_atomically
from crossfill.grid.cells import Grid
from crossfill.tagger.training_run import run_state
from crossfill.training.loop import InterruptedTraining, Trainer
from tests.data.folders import bio, write
from tests.scenarios import SMALL, small_grid

GRID = small_grid()[0].grid
FEW = SMALL.change({"training.steps": 4, "training.validate_every": 2})


def stop_at(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """Interrupt, as Ctrl-C does, when this step is taken."""

    def advance(self: Trainer, own: Callable[[Trainer], None] = Trainer.advance) -> None:
        own(self)
        if self.progression.step == last:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Trainer, "advance", advance)


def test_a_finished_model_is_replaced_only_when_asked(tmp_path: Path):
    crossfill.train(GRID, config=FEW, out=tmp_path)
    assert run_state(tmp_path) == "finished"
    assert not (tmp_path / checkpoint.STATE).exists()  # the optimiser's state serves nobody now
    before = (tmp_path / checkpoint.WEIGHTS).read_bytes()
    other = FEW.change({"training.seed": 1})
    with pytest.raises(CheckpointError, match=r"found a finished model; --force \(force=True\) replaces it"):
        crossfill.train(GRID, config=other, out=tmp_path)
    with pytest.raises(CheckpointError, match="expected a run to resume, found a finished one"):
        crossfill.train(GRID, config=FEW, out=tmp_path, resume=True)
    assert (tmp_path / checkpoint.WEIGHTS).read_bytes() == before
    crossfill.train(GRID, config=other, out=tmp_path, force=True)
    assert (tmp_path / checkpoint.WEIGHTS).read_bytes() != before


def test_a_run_that_is_refused_leaves_nothing(tmp_path: Path):
    for out in (tmp_path / "new" / "model", tmp_path / "there"):
        there = out.name == "there"
        if there:
            out.mkdir()
        with pytest.raises(ConfigError, match="unknown method"):
            crossfill.train(GRID, method="none", config=FEW, out=out)
        with pytest.raises(CheckpointError, match="expected a run to resume, found none"):
            crossfill.train(GRID, config=FEW, out=out, resume=True)
        assert out.exists() == there
        assert not there or list(out.iterdir()) == []
    (out / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="unknown method"):
        crossfill.train(GRID, method="none", config=FEW, out=out)
    assert (out / "mine.txt").exists()


def test_an_interrupted_run_is_resumed_or_given_up_and_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    crossfill.train(GRID, config=FEW, out=whole)
    with pytest.raises(CheckpointError, match="expected a run to resume, found none; train without --resume"):
        crossfill.train(GRID, config=FEW, out=broken, resume=True)
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(InterruptedTraining, match="interrupted at step 3"):
            crossfill.train(GRID, config=FEW, out=broken)
    assert run_state(broken) == "unfinished"
    with pytest.raises(CheckpointError, match=r"found an unfinished run; --resume \(resume=True\) continues it"):
        crossfill.train(GRID, config=FEW, out=broken)
    with pytest.raises(CheckpointError, match="started with other settings"):
        crossfill.train(GRID, config=FEW.change({"training.clip": 4.0}), out=broken, resume=True)
    half = Grid({cell: tuple(corpora) for cell, corpora in GRID.corpora.items()}).map(
        lambda splits: type(splits)(splits.name, splits.train[:-1], splits.dev, splits.test)
    )
    with pytest.raises(CheckpointError, match="started with other data"):
        crossfill.train(half, config=FEW, out=broken, resume=True)
    crossfill.train(GRID, config=FEW, out=broken, resume=True)
    for name in (checkpoint.WEIGHTS, checkpoint.DESCRIPTION, checkpoint.HISTORY):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
    assert run_state(broken) == "finished"


def test_a_run_killed_before_its_first_validation_leaves_no_other_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tagger = crossfill.train(GRID, config=FEW, out=tmp_path)
    tagger.evaluate(GRID)
    tagger.save(tmp_path)
    assert (tmp_path / checkpoint.RESULTS).exists()
    stop_at(monkeypatch, 1)
    with pytest.raises(InterruptedTraining):
        crossfill.train(GRID, config=FEW.change({"training.seed": 1}), out=tmp_path, force=True)
    assert not (tmp_path / checkpoint.RESULTS).exists()
    with pytest.raises(CheckpointError, match="found a run that is not finished"):
        crossfill.load(tmp_path)


def test_weights_and_settings_of_two_runs_are_not_mixed(tmp_path: Path):
    one, other = tmp_path / "one", tmp_path / "other"
    crossfill.train(GRID, config=FEW, out=one)
    crossfill.train(GRID, config=FEW.change({"training.seed": 1}), out=other)
    (one / checkpoint.WEIGHTS).write_bytes((other / checkpoint.WEIGHTS).read_bytes())
    with pytest.raises(CheckpointError, match="found those of another"):
        crossfill.load(one)


def test_two_processes_do_not_train_into_one_folder(tmp_path: Path):
    with locked(tmp_path / checkpoint.LOCK, wait=False) as held:
        assert held
        with pytest.raises(CheckpointError, match="another process is training into this folder"):
            crossfill.train(GRID, config=FEW, out=tmp_path, force=True)
    crossfill.train(GRID, config=FEW, out=tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="no permission bits")
def test_files_have_the_permissions_of_the_umask(tmp_path: Path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a.json", b"{}")
        FeatureCache(tmp_path).fetch(Key({"x": 1}, 2, 2, "<f4"), lambda: [np.ones((2, 2))])
    finally:
        os.umask(before)
    for path in (tmp_path / "a.json", FeatureCache(tmp_path).entries()[0].path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("which", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_the_command_that_resumes_is_printed_and_works(which: signal.Signals, tmp_path: Path):
    """A real process, told to stop while it trains, as by Ctrl-C or by a scheduler."""
    sentences = [[(f"erwa{i}", "B-PER"), ("moku", "O")] for i in range(12)]
    data = write(tmp_path / "data", {f"ner/{code}/train.bio": bio(*sentences) for code in ("wol", "yor")})
    few = ("--set", "training.steps=3000", "--set", "training.validate_every=3000", "--set", "encoder.hidden=8")
    given = ["train", str(data), "--encoder", "compact", *few, "--out", str(tmp_path / "my model")]
    environment = {**os.environ, "PYTHONPATH": "src", "CROSSFILL_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "crossfill"]
    process = subprocess.Popen([*command, *given, "--force"], env=environment, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (tmp_path / "my model" / checkpoint.DESCRIPTION).exists():
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(which)
    told = process.communicate()[1]
    assert process.returncode == 130, told
    found = re.search(r"interrupted at step ([\d,]+); continue with: crossfill (.*)", told)
    assert found, told
    assert found[2].endswith(f"--out '{tmp_path / 'my model'}' --resume")
    notes = checkpoint.read_tensors(tmp_path / "my model" / checkpoint.STATE)[1]
    assert notes["progression"]["step"] == int(found[1].replace(",", ""))
    assert json.loads((tmp_path / "my model" / checkpoint.DESCRIPTION).read_text())["config"]["encoder"]["hidden"] == 8
