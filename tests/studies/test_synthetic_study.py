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
    partition = {"kind": "random", "halves": [1], "seed": 11}
    run_demo(demo_study(changes={"data.seed": 11, "seeds": [11], "partitions": [partition]}), tmp_path, quiet=True)
    results = open_results(tmp_path)
    factorized, joint = (task_means(results.unseen(results.proper(method))) for method in ("pf-lr", "jm"))
    assert np.mean(list(factorized.values())) > np.mean(list(joint.values())) + 0.03
    for task, score in joint.items():
        assert factorized[task] > score
