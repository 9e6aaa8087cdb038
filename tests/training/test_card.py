"""Accelerators, by fake tensors on a made-up device; `card.py` says how."""

import subprocess
import sys
from pathlib import Path

import torch

from crossfill.training.processes import widest

CHECKS = """\
refused: CPU index
refused: float64
pf-lr: training, plug-in
pf-d: training, plug-in
jm: training, plug-in
pf-lr: posteriors
pf-d: posteriors
votes, intervals
"""


def test_what_runs_on_a_card_stays_on_it_and_has_no_float64():
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("card.py"))]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.stdout == CHECKS, run.stderr[-3000:]


def test_only_mps_lacks_float64():
    assert {name: widest(torch.device(name)) for name in ("cpu", "cuda", "mps")} == {
        "cpu": torch.float64,
        "cuda": torch.float64,
        "mps": torch.float32,
    }
