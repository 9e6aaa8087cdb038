"""Progress: what a line says, and that lines come without a terminal, too."""

import sys
import time

import pytest

from crossfill import progress
from crossfill.progress import ProgressBar, duration, state


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.05)
    monkeypatch.setattr(ProgressBar, "last_line", None)


def test_durations_in_words():
    told = {0.4: "0 s", 42: "42 s", 99.4: "99 s", 100: "2 min", 5900: "98 min", 9000: "2.5 h"}
    assert {seconds: duration(seconds) for seconds in told} == told


def test_rate_and_time_left_are_those_of_this_run():
    now = 0.0
    bars = ProgressBar(quiet=True)
    bars.bars.get_time = lambda: now
    report = bars.add("training", 1000)
    [task] = bars.bars.tasks
    now = 30.0
    assert state(task) == "0/1,000, 30 s so far"
    now = 40.0
    report(500, "loss 2.000")  # resumed at step 500
    now = 60.0
    assert state(task) == "500/1,000, 60 s so far, loss 2.000"
    report(600, "loss 1.000")
    assert state(task) == "600/1,000, 5/s, 80 s left, loss 1.000"
    now = 240.0
    assert state(task) == "600/1,000, 2 s each, 13 min left, loss 1.000"  # a step that takes long
    report(1000, "loss 0.500")
    assert state(task) == "1,000/1,000, done, loss 0.500"


def test_stages_have_no_amount():
    now = 0.0
    bars = ProgressBar(quiet=True)
    bars.bars.get_time = lambda: now
    bars.add("exporting")(0, "tracing")
    now = 130.0
    assert state(bars.bars.tasks[0]) == "2 min so far, tracing"


def test_lines_come_while_one_step_takes_long(capsys: pytest.CaptureFixture[str]):
    with ProgressBar() as bars:
        update = bars.add("Encoding [default]", 10)
        update(0, "pieces")
        time.sleep(0.3)
        update(1, "pieces")
        time.sleep(0.1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Encoding [default]: 0/10, 0 s so far, pieces"
    assert 5 <= len(lines) <= 10
    assert lines[-1].startswith("Encoding [default]: 1/10, ")
    assert " left, pieces" in lines[-1]


def test_many_short_bars_print_as_often_as_a_long_one(capsys: pytest.CaptureFixture[str]):
    for i in range(20):
        with ProgressBar() as bars:
            bars.add(f"Encoding {i}", 10)(0, "pieces")
            time.sleep(0.02)
    assert 3 <= len(capsys.readouterr().err.splitlines()) <= 10


def test_quiet_and_quick_work_print_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    with ProgressBar(quiet=True) as bars:
        bars.add("Encoding", 10)(0, "pieces")
        time.sleep(0.2)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 10.0)
    with ProgressBar() as bars:
        bars.add("Encoding", 10)(10, "pieces")
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar_and_a_dumb_one_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for term, bar in (("xterm", True), ("dumb", False)):
        monkeypatch.setenv("TERM", term)
        with ProgressBar() as bars:
            bars.add("Encoding", 10)(3, "pieces")
            time.sleep(0.3)
        told = capsys.readouterr().err
        assert ("━" in told, "Encoding: 3/10, " in told) == (bar, not bar)
        assert "3/10" in told


def test_lines_are_of_work_that_is_not_done(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 60.0)  # only what is asked for here
    with ProgressBar() as bars:
        reports = [bars.add(title, 2) for title in ("first", "second")]
        reports[0](2, "")
        bars.print_lines()
        bars.print("first [done]")
        reports[1](2, "")
        bars.print_lines()
    lines = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["second: 0/2", "first [done]"]
