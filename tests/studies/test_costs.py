"""What a study is expected to cost."""

import threading
from pathlib import Path

import numpy as np

from crossfill.studies.costs import job_seconds, machine_speed
from tests.encoders.tiny import bert
from tests.studies.studies import checked


def test_layers_that_do_not_train_are_not_counted(tmp_path: Path):
    folder = bert(tmp_path)

    def seconds(mode: str) -> float:
        encoder = {"name": str(folder), "pretrained": {"mode": mode, "freeze_below": 2, "max_pieces": 32, "overlap": 8}}
        found = checked(config={"encoder": encoder, "latents": {"prior": "standard"}}, methods={"jm": {}})
        assert found.grid is not None
        overhead = job_seconds(next(iter(found.plan.jobs.values())), found.grid, 1e30)
        return job_seconds(next(iter(found.plan.jobs.values())), found.grid, 1e6) - overhead

    whole, top, frozen = seconds("finetune"), seconds("partial"), seconds("frozen")
    assert whole > top > frozen


def test_the_speed_of_a_busy_machine_is_that_of_one_core():
    quiet = machine_speed.__wrapped__()
    stop = threading.Event()

    def work() -> None:
        a = np.ones((400, 400), dtype=np.float32)
        while not stop.is_set():
            np.matmul(a, a)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    busy = machine_speed.__wrapped__()
    stop.set()
    for thread in threads:
        thread.join()
    assert busy > quiet / 5
