"""Shapes and types are checked in every test: the hook instruments crossfill before it is first imported."""

import os
import signal

import hypothesis
import jaxtyping
import torch

import tests.typecheck

os.environ["OMP_NUM_THREADS"] = "1"  # small tensors: a second thread costs more than it brings, here and in children
torch.set_num_threads(1)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # shells start what runs in the background like that
    signal.signal(signal.SIGINT, signal.default_int_handler)

# every module whose functions take arrays, but for those called once a word: there the checks cost more than the tests
CHECKED = (
    "adaptation", "encoders", "evaluation", "export", "grid.typology", "measures", "methods", "model", "prediction",
    "report", "tagger", "training",
)  # fmt: skip
jaxtyping.jaxtyped = tests.typecheck.first_calls
jaxtyping.install_import_hook([f"crossfill.{name}" for name in CHECKED], f"{tests.typecheck.__name__}.check")


def pytest_runtest_setup() -> None:
    tests.typecheck.begin_test()


hypothesis.settings.register_profile("shared machine", deadline=None)  # wall time says nothing where others compute too
hypothesis.settings.load_profile("shared machine")
