"""Ray: the same results as local processes, and none lost with a worker."""

import os
import signal
import time
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest

from crossfill.errors import ConfigError
from crossfill.executors.worker_jobs import ExecutionSettings, build_executor
from crossfill.studies.run import run_study
from tests.executors.inline import InlineExecutor
from tests.studies.studies import checked, outcomes

HAS_RAY = find_spec("ray") is not None
FOUR = {
    "methods": {},
    "partitions": [{"kind": "random", "methods": ["jm", "pf-lr"]}],
    "config": {"training": {"steps": 60}},
}


@pytest.mark.skipif(HAS_RAY, reason="Ray is installed")
def test_without_ray_its_extra_is_named():
    with pytest.raises(ConfigError, match=r"pip install 'crossfill\[ray\]'"):
        build_executor(ExecutionSettings(executor="ray"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed: pip install '.[ray]'")
@pytest.mark.filterwarnings("ignore")
def test_local_processes_and_ray_agree_and_a_killed_worker_costs_nothing(tmp_path: Path):
    import ray

    study = checked(**FOUR)
    run_study(study, tmp_path / "inline", InlineExecutor())
    local = run_study(study, tmp_path / "local", build_executor(ExecutionSettings(jobs=2)))
    assert (local, len(outcomes(tmp_path / "local"))) == ({}, 4)
    killed: list[int] = []
    stop = []
    watcher = Thread(target=_kill_one_worker, args=(tmp_path / "ray", killed, stop))
    watcher.start()
    try:
        outcome = run_study(study, tmp_path / "ray", build_executor(ExecutionSettings(executor="ray", jobs=2)))
    finally:
        stop.append(True)
        watcher.join()
        ray.shutdown()
    assert killed, "no worker was killed"
    assert (outcome, len(outcomes(tmp_path / "ray"))) == ({}, 4)
    assert outcomes(tmp_path / "ray") == outcomes(tmp_path / "local") == outcomes(tmp_path / "inline")


def _kill_one_worker(run: Path, killed: list[int], stop: list[bool]) -> None:
    """Kill a Ray worker as soon as it has begun to train: it holds the lock file of its job open."""
    while not killed and not stop:
        for path in Path("/proc").glob("[0-9]*/fd/*"):
            try:
                target = path.readlink()
            except OSError:
                continue
            trains = target.name == ".lock" and target.is_relative_to(run / "jobs")
            if trains and list(target.parent.glob("training/training.safetensors")):
                pid = int(path.parts[2])
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
        time.sleep(0.05)
