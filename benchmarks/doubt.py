"""What is it worth that samples of heads also vary by what seen cells leave open in the generator's last layer?

Trains pf-lr once for each seed and predicts unseen cells with and without that variance (`generator.doubt`), on the
synthetic grid or, with DATA and --encoder, on the first random half of a real one. Prints one JSON line: averaged NLL,
ECE and AURC, and the correlation of entropy and score within each task, means over seeds.

    python benchmarks/doubt.py --seeds 1 2 3
    python benchmarks/doubt.py DATA --encoder GEMMA --partition 1 --seeds 0
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from crossfill.config import Config, load_run_config
from crossfill.data.synthetic import SyntheticConfig, synthetic_grid
from crossfill.evaluation.results import CellResult, average, entropy_correlation, entropy_points
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.partition import random_halves
from crossfill.studies.demo import CONFIG
from crossfill.studies.grids import load_study_grid, typology_folder
from crossfill.studies.study import DataSettings
from crossfill.tagger.train import train_model

MEASURES = ("score", "nll", "ece", "aurc")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--encoder")
    parser.add_argument("--partition", type=int, default=0, help="seed of the random halves of a real grid")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, list[dict]] = {"without": [], "with": []}
    for seed in options.seeds:
        grid, seen, config = _case(options, seed)
        model = train_model(grid, seen, config).model
        for name, kept in (("with", True), ("without", False)):
            if not kept:
                for task in range(len(grid.tasks)):
                    model.heads.doubt.variance(task).zero_()
            found[name].append(_measures(evaluate(model, grid, config)))
    tasks = list(found["with"][0])
    told = {
        name: {t: {m: round(float(np.mean([run[t][m] for run in runs])), 3) for m in runs[0][t]} for t in tasks}
        for name, runs in found.items()
    }
    print(json.dumps({"seeds": options.seeds, **told}))


def _case(options: argparse.Namespace, seed: int) -> tuple[Grid, frozenset[Cell], Config]:
    changes = {"training.seed": seed, "generator.doubt": True}
    if options.data is None:
        grid = synthetic_grid(SyntheticConfig(), seed).grid
        config, partition = load_run_config(CONFIG, "pf-lr"), random_halves(grid.cells, seed)[0]
        changes["training.steps"] = options.steps or 2500
    else:
        data = DataSettings(
            path=options.data, tasks=("pos", "ner"), languages="both-tasks", source_only=("eng",),
            max_train=300, max_dev=60, max_test=150,
        )  # fmt: skip
        grid = load_study_grid(data).grid
        config, partition = (
            load_run_config(Path("configs/frozen.yaml"), "pf-lr"),
            random_halves(grid.cells, options.partition)[0],
        )
        changes |= {"encoder.name": options.encoder, "sources.vectors": typology_folder(data)}
        changes |= {"training.steps": options.steps} if options.steps else {}
    return grid, partition.seen, config.change(changes)


def _measures(results: list[CellResult]) -> dict[str, dict[str, float]]:
    unseen = [result for result in results if not result.seen]
    return {
        task: {m: average((r for r in unseen if r.cell.task == task), m, "averaged") for m in MEASURES}
        | {"r": entropy_correlation(entropy_points(unseen, task)).r}
        for task in sorted({result.cell.task for result in unseen})
    }


if __name__ == "__main__":
    main()
