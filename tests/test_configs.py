"""Every shipped config is a config, and only what trains pretrained encoders imports what they need."""

import subprocess
import sys
from pathlib import Path

import pytest

from crossfill.config import load_config

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_shipped_configs_parse(path: Path):
    load_config(path)


def test_light_commands_stay_light():
    program = (
        "import sys, crossfill, crossfill.cli.app\n"
        "assert 'torch' not in sys.modules\n"
        "import crossfill.training, crossfill.experiments.run\n"
        "assert not {'transformers', 'accelerate', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
