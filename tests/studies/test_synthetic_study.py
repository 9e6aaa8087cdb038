"""The claim of the demo, on a seed that nothing was chosen on: factorization fills cells that a shared head cannot."""

from pathlib import Path

import numpy as np
import pytest

from crossfill.evaluation.results import task_means
from crossfill.studies.demo import demo_study, run_demo
from crossfill.studies.run_folder import open_results


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_factorization_beats_the_shared_head_in_every_task(tmp_path: Path):
    run_demo(demo_study(seed=11), tmp_path, quiet=True)
    results = open_results(tmp_path)
    factorized, joint = (task_means(results.unseen(results.proper(method))) for method in ("pf-lr", "jm"))
    assert np.mean(list(factorized.values())) > np.mean(list(joint.values())) + 0.03
    for task, score in joint.items():
        assert factorized[task] > score
