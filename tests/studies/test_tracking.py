"""Event files, read again by TensorBoard's own reader."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from crossfill.errors import ConfigError
from crossfill.studies.tracking import require_tensorboard
from tests.studies.studies import conduct

HAS_TENSORBOARD = find_spec("tensorboard") is not None


@pytest.mark.skipif(HAS_TENSORBOARD, reason="TensorBoard is installed")
def test_without_tensorboard_its_extra_is_named():
    with pytest.raises(ConfigError, match=r"pip install 'crossfill\[tensorboard\]'"):
        require_tensorboard()


@pytest.mark.skipif(not HAS_TENSORBOARD, reason="TensorBoard is not installed")
@pytest.mark.filterwarnings("ignore")
def test_event_files_hold_the_curves_and_the_scores(tmp_path: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    only = [{"kind": "random", "halves": [1], "methods": ["pf-lr"]}]
    conduct(tmp_path, partitions=only, tensorboard=True)
    [folder] = tmp_path.glob("jobs/*/tensorboard")
    found = EventAccumulator(str(folder)).Reload()
    assert [event.step for event in found.Scalars("training/nll")] == [4, 8, 12]
    tags = found.Tags()["scalars"]
    assert "dev/mean" in tags
    assert sum(tag.startswith("unseen/pf-lr/") for tag in tags) == 8
