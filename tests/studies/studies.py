"""Small studies, an executor without processes, and RUN folders made by hand."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from crossfill.errors import ConfigError
from crossfill.settings import merged
from crossfill.studies.plan import CheckedStudy, check_study
from crossfill.studies.run import run_study
from tests.executors.inline import InlineExecutor

SMALL: dict[str, Any] = {
    "title": "A small study",
    "data": {
        "synthetic": {
            "families": 2,
            "languages_per_family": 2,
            "train_sentences": 8,
            "dev_sentences": 3,
            "test_sentences": 4,
            "roots": 30,
        },
        "seed": 3,
    },
    "config": {
        "encoder": {"hidden": 8, "buckets": 64},
        "latents": {"size": 3, "rank": 2},
        "generator": {"hidden": [8], "initial_variance": 0.01},
        "training": {
            "steps": 12,
            "batch_sentences": 4,
            "learning_rate": 0.01,
            "validate_every": 4,
            "checkpoint_every": 50,
        },
        "prediction": {"samples": 4},
    },
    "methods": {"bea": {}, "ns": {}, "ls": {}, "jm": {}, "pf-d": {}, "pf-lr": {}},
    "partitions": [{"kind": "random"}],
    "seeds": [0],
}


def study(**changes: Any) -> dict[str, Any]:
    """The small study, changed."""
    return merged(copy.deepcopy(SMALL), changes)


def checked(**changes: Any) -> CheckedStudy:
    """The small study, changed and validated."""
    return check_study(study(**changes))


def problems(values: dict[str, Any]) -> list[str]:
    """The problems of a study that is not valid."""
    with pytest.raises(ConfigError) as caught:
        check_study(values, "s.yaml")
    return str(caught.value).splitlines()


def conduct(run: Path, **changes: Any) -> dict[str, str]:
    """Run the small study in this process; why jobs failed."""
    return run_study(checked(**changes), run, InlineExecutor())


def outcomes(run: Path) -> dict[str, Any]:
    """The results of every job in a RUN folder, but for what was measured of time and machine."""
    found = {}
    for path in sorted(run.glob("jobs/*/result.json")):
        result = json.loads(path.read_text())
        del result["measured"]
        found[path.parent.name] = result
    return found


def hand_made(run: Path, scores: dict[str, dict[str, list[float]]], **cell: Any) -> Path:
    """A RUN folder with these scores: by method, by cell, one per seed."""
    jobs, entries = {}, []
    n_seeds = len(next(iter(next(iter(scores.values())).values())))
    for method, cells in scores.items():
        for seed in range(n_seeds):
            job = f"{method}-{seed}"
            jobs[job] = {"id": job}
            entries.append(
                {
                    "method": method,
                    "partition": "random",
                    "group": "random",
                    "seed": seed,
                    "ablation": "",
                    "variant": "base",
                    "job": job,
                }
            )
            found = [_cell(name, values[seed]) | cell for name, values in cells.items()]
            _write(run / "jobs" / job / "result.json", _result(job, seed, method, found))
    study = {"title": "By hand", "methods": {method: {} for method in scores}}
    _write(run / "study.json", study)
    _write(run / "plan.json", {"format": 1, "jobs": jobs, "entries": entries})
    return run


def _cell(name: str, score: float) -> dict[str, Any]:
    measures = {"score": score, "nll": 1 - score, "brier": 1 - score, "ece": 0.1, "ece_adaptive": 0.1, "aurc": 0.2}
    measures |= {"accuracy": score, "entropy": 1 - score, "mutual_information": 0.0}
    return {
        "cell": name,
        "corpus": "made",
        "seen": False,
        "n_sentences": 40,
        "n_words": 10,
        "plug_in": measures,
        "averaged": measures,
        "by_label": {"X": score},
        "entropies": [1 - score, 1 - score],
        "reliability": {"count": [0] * 14 + [10], "confidence": [0.0] * 14 + [0.9], "accuracy": [0.0] * 14 + [score]},
        "risk_coverage": [1 - score] * 20,
        "counts": [[round(100 * score), 100, 100]] * 40,
    }


def _result(job: str, seed: int, method: str, cells: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "format": 1,
        "job": job,
        "seed": seed,
        "config": {"training": {"selection": "seen"}, "encoder": {"name": "compact"}},
        "seen": [],
        "unseen": [cell["cell"] for cell in cells],
        "methods": {method: {"cells": cells}},
        "history": [{"step": 5, "nll": 1.0, "kl": 2.0, "loss": 1.5, "scores": {"mean": 0.5}}],
        "posteriors": {"means": {}, "chosen": {}} if method.startswith("pf") else None,
        "sizes": {"training_sentences": 3, "training_words": 30, "parameters": 7, "steps": 5},
        "measured": {
            "train_seconds": 1.0,
            "evaluate_seconds": 0.5,
            "threads": 1,
            "machine": "x",
            "versions": {"crossfill": "0", "torch": "2"},
        },
    }


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
