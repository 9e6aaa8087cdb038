"""Ray that does not start is an error with a remedy, whatever Ray raises."""

import sys
from types import SimpleNamespace

import pytest

from crossfill.errors import ConfigError
from crossfill.executors.worker_jobs import ExecutionSettings, build_executor


@pytest.mark.parametrize("error", [Exception("The current node timed out during startup."), RuntimeError()])
def test_a_ray_that_does_not_start_is_told(error: Exception, monkeypatch: pytest.MonkeyPatch):
    def start(**_: object) -> None:
        raise error

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=start))
    with pytest.raises(ConfigError, match=r"expected Ray to start on this machine; .*; run again, or use local"):
        build_executor(ExecutionSettings(executor="ray"))
