"""Expected scores of unseen cells against the truth, and the method that `auto` keeps against the best of three.

    python benchmarks/expected.py DATA --encoder NAME_OR_PATH --half 1 --steps 400

A random half of the cells is held out (300, 60 and 150 sentences at most). The other half is held out in turn to choose
a method and to fit the relation of doubt to score; then every method is trained on it, and scored on the unseen cells.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from crossfill.config import load_run_config
from crossfill.data.folder import load_grid
from crossfill.data.splits import capped_grid
from crossfill.encoders.base import build_encoder
from crossfill.evaluation.results import place_means
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.partition import random_halves
from crossfill.grid.typology import vectors_beside
from crossfill.tagger.crossfit import CANDIDATES, compare_held_out, expect_unseen
from crossfill.tagger.train import train_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--half", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--outside", default="eng", help="a language that is left out")
    given = parser.parse_args()
    torch.set_num_threads(1)
    grid = capped_grid(load_grid(given.data, seed=0, max_train=300), 60, 150, 0)
    grid = grid.where(lambda cell: cell.language != given.outside)
    partition = random_halves(grid.cells, 0)[given.half - 1]
    changes = {"encoder.name": given.encoder, "sources.vectors": vectors_beside(given.data)}
    changes |= {"training.steps": given.steps, "training.validate_every": max(1, given.steps // 4)}
    base = load_run_config(Path("configs/frozen.yaml"), "pf-lr").change(changes | {"prediction.samples": 30})
    encoder = build_encoder(base, grid.inventory.languages)
    found = {}
    for name in CANDIDATES:
        config = base.change({"method": name})
        comparison = compare_held_out(grid, partition.seen, [config], lambda: encoder)
        model = train_model(grid, partition.seen, config, encoder=encoder).model
        expected = expect_unseen(model, grid, sorted(partition.unseen), comparison)
        results = [r for r in evaluate(model, grid, config, comparison.calibration) if not r.seen]
        for task in grid.tasks:
            truth = {}
            for (cell, _), score in place_means([r for r in results if r.cell.task == task]).items():
                truth.setdefault(cell, []).append(score)
            scores = {cell: float(np.mean(values)) for cell, values in truth.items()}
            told = [one for one in expected.expected if one.cell in scores]
            found[f"{task} {name}"] = {
                "held_out": np.mean([one.score for one in expected.held_out if one.cell.task == task]),
                "unseen": np.mean(list(scores.values())),
                "mean_absolute_error": np.mean([abs(one.score - scores[one.cell]) for one in told]),
                "coverage": np.mean([one.low <= scores[one.cell] <= one.high for one in told]),
                "cells": len(told),
            }
    print(json.dumps({name: {k: round(float(v), 4) for k, v in values.items()} for name, values in found.items()}))


if __name__ == "__main__":
    main()
