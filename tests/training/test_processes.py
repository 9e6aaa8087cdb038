"""Two processes take the steps that one takes with the whole batch."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.encoders.tiny import bert
from tests.own_cache import own_cache as own_cache
from tests.training.steps import run

NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def together(runs: dict[str, list[str]]) -> list[list[dict[str, Any]]]:
    """What each of two processes reports of these runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = os.environ | {
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
    }
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.training.steps", json.dumps(runs)],
            env=common | {"RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    try:
        reports = [process.communicate(timeout=250)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()
    assert [process.returncode for process in started] == [0, 0]
    return [json.loads(report.splitlines()[-1]) for report in reports]


@pytest.mark.slow
def test_two_processes_take_the_same_steps_as_one(tmp_path: Path):
    folder = bert(tmp_path / "bert", **NO_DROPOUT)
    common = [
        "encoder.dropout=0",
        "training.steps=8",
        "training.weight_decay=0.1",
        "training.cells_per_step=2",
        "training.batch_sentences=3",
    ]
    pieces = ["encoder.pretrained.max_pieces=60", "encoder.pretrained.overlap=20"]
    runs = {
        str(tmp_path / "latents"): [*common, "latents.dropout=0.3"],
        str(tmp_path / "finetuned"): [*common, *pieces, f"encoder.name={folder}"],
        str(tmp_path / "lonely"): [
            "encoder.dropout=0",
            "training.steps=8",
            "training.batch_sentences=1",
        ],  # one rank has no sentence
    }
    alone = [run(settings) for settings in runs.values()]
    first, second = together(runs)
    assert first == second
    for one, two in zip(alone, first, strict=True):
        assert len(one["losses"]) == 8
        for expected, found in zip(one["losses"], two["losses"], strict=True):
            assert found == pytest.approx(expected, abs=1e-5, rel=1e-5)
    assert all((Path(out) / "model.safetensors").exists() for out in runs)


def test_bfloat16_computes_near_float32():
    exact, rough = (run(["encoder.dropout=0", f"training.precision={p}"]) for p in ("float32", "bfloat16"))
    differences = [abs(a[0] - b[0]) for a, b in zip(exact["losses"], rough["losses"], strict=True)]
    assert 0 < max(differences) < 0.1
