"""How well does each method fill the synthetic grid, on fresh seeds, and as languages become more alike?

Runs each method on each seed and diversity, two processes at a time. `oracle` knows each language's settings;
`all-seen` is PF-lr trained on every cell, the ones it is scored on included. Prints one JSON line.
"""

import argparse
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from oracle import oracle_heads

from crossfill.config import load_run_config
from crossfill.data.synthetic import SyntheticConfig, synthetic_grid
from crossfill.encoders.base import build_encoder
from crossfill.evaluation.results import entropy_correlation, entropy_points, task_means
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.partition import random_halves
from crossfill.methods.registry import build_model
from crossfill.model import Model
from crossfill.studies.demo import CONFIG
from crossfill.training.labelled import prepare_grid
from crossfill.training.loop import Trainer


class Job(NamedTuple):
    method: str
    seed: int
    diversity: float
    steps: int


def run(job: Job) -> dict:
    torch.set_num_threads(1)
    made = synthetic_grid(SyntheticConfig(diversity=job.diversity), job.seed)
    partition = random_halves(made.grid.cells, job.seed)[0]
    config = load_run_config(CONFIG, "pf-lr" if job.method in ("oracle", "all-seen") else job.method)
    config = config.change({"training.steps": job.steps, "training.seed": job.seed})
    inventory = made.grid.inventory
    seen = frozenset(made.grid.cells) if job.method == "all-seen" else partition.seen
    if job.method == "oracle":
        torch.manual_seed(job.seed)
        encoder = build_encoder(config, inventory.languages)
        heads = oracle_heads(inventory, seen, encoder.n_features, config, made.typology)
        model = Model(encoder, heads, inventory, seen)
    else:
        model = build_model(config, inventory, seen)
    Trainer(model, *prepare_grid(model, made.grid), config).run()
    results = [replace(r, seen=r.cell in partition.seen) for r in evaluate(model, made.grid, config)]
    return {
        "unseen": task_means(results),
        "correlations": {
            name: entropy_correlation(entropy_points(results, task)).r
            for name, task in {**{task: task for task in made.grid.tasks}, "pooled": None}.items()
        },
    }


def summarise(runs: list[dict]) -> dict:
    """Means over seeds, and the standard deviation of the mean over tasks."""
    tasks = list(runs[0]["unseen"])
    means = [100 * float(np.mean(list(run["unseen"].values()))) for run in runs]
    return {
        "unseen": {t: round(100 * float(np.mean([run["unseen"][t] for run in runs])), 1) for t in tasks},
        "mean": round(float(np.mean(means)), 1),
        "sd": round(float(np.std(means, ddof=1)), 1) if len(means) > 1 else None,
        "by_seed": [round(mean, 1) for mean in means],
        "correlations": {k: round(float(np.mean([r["correlations"][k] for r in runs])), 2) for k in (*tasks, "pooled")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--methods", nargs="+", default=["pf-lr", "pf-d", "jm", "oracle", "all-seen"])
    parser.add_argument("--diversities", type=float, nargs="+", default=[1.0])
    parser.add_argument("--steps", type=int, default=2500)
    arguments = parser.parse_args()
    grid = product(arguments.methods, arguments.seeds, arguments.diversities)
    jobs = [Job(method, seed, diversity, arguments.steps) for method, seed, diversity in grid]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        runs = dict(zip(jobs, pool.map(run, jobs), strict=True))
    found = {
        f"diversity {d:g}": {
            m: summarise([runs[Job(m, s, d, arguments.steps)] for s in arguments.seeds]) for m in arguments.methods
        }
        for d in arguments.diversities
    }
    print(json.dumps({"benchmark": "synthetic_grid", "seeds": arguments.seeds, "steps": arguments.steps, **found}))


if __name__ == "__main__":
    main()
