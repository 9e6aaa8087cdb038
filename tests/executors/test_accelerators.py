"""Jobs and accelerators: as many jobs as the accelerators have room for, each with its own."""

import os
from multiprocessing import Pipe

import pytest

from crossfill.errors import ConfigError
from crossfill.executors import local
from crossfill.executors.local import LocalExecutor
from crossfill.executors.worker_jobs import ExecutionSettings, shares


@pytest.fixture(autouse=True)
def sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "usable_cores", lambda: 16)


@pytest.mark.parametrize(
    ("cards", "settings", "devices"),
    [
        (["0"], {"gpus": 1}, ["0"]),
        (["0"], {"gpus": 0.5}, ["0", "0"]),
        (["0", "1"], {"gpus": 0.5, "jobs": 3}, ["0", "0", "1"]),
        (["3", "5"], {"gpus": 1}, ["3", "5"]),
        (["0", "1", "2", "3", "4"], {"gpus": 2}, ["0,1", "2,3"]),
        (["0"], {"gpus": 1, "jobs": 8}, ["0"]),
        (["0"], {}, [""] * 16),
        ([], {"gpus": 1, "jobs": 2}, ["", ""]),
    ],
)
def test_slots_are_what_the_accelerators_have_room_for(
    cards: list[str], settings: dict[str, float], devices: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(local, "accelerators", lambda: cards)
    executor = LocalExecutor(ExecutionSettings(**settings))
    assert executor.devices == devices
    assert executor.slots == len(devices)


def test_a_job_that_wants_more_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local, "accelerators", lambda: ["0"])
    with pytest.raises(ConfigError, match="expected 2 accelerators for a job, found 1"):
        LocalExecutor(ExecutionSettings(gpus=2))
    assert shares(0.3, 0.1) == 3


def test_a_worker_sees_the_accelerators_of_its_slot(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    for signal_or_thread in ("signal.signal", "threading.Thread"):
        monkeypatch.setattr(f"crossfill.executors.local.{signal_or_thread}", lambda *_, **__: _Nothing())
    ours, theirs = Pipe()
    ours.close()
    local._work(theirs, 1, "0,1")  # returns at once, as the pipe is closed
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_visible_devices_are_those_that_the_user_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("torch.accelerator.is_available", lambda: True)
    monkeypatch.setattr("torch.accelerator.device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert local.accelerators() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4, 6")
    assert local.accelerators() == ["4", "6"]
    monkeypatch.setattr("torch.accelerator.is_available", lambda: False)
    assert local.accelerators() == []


class _Nothing:
    def start(self) -> None:
        """Start nothing."""
