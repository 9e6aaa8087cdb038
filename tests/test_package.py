"""The package itself: light to import, and honest about its public names."""

import subprocess
import sys

import crossfill

CODE = """
import sys, time
started = time.perf_counter()
import crossfill
print(time.perf_counter() - started, "torch" in sys.modules, "numpy" in sys.modules)
"""


def test_import_is_instant_and_without_torch():
    out = [subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True) for _ in range(3)]
    seconds, torch, numpy = min(run.stdout.split() for run in out)
    assert float(seconds) < 0.3
    assert (torch, numpy) == ("False", "False")


def test_public_names_load_on_first_use():
    for name in crossfill.__all__:
        assert getattr(crossfill, name) is not None
    assert sorted(crossfill.__all__) == dir(crossfill)


def test_light_commands_stay_light():
    program = (
        "import sys, crossfill, crossfill.cli.app\n"
        "assert 'torch' not in sys.modules\n"
        "import crossfill.training.loop, crossfill.tagger.train\n"
        "assert not {'transformers', 'accelerate', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
