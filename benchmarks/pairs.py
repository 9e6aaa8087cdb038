"""How well does a model label pairs of sentences, in languages it was trained on and in others?

    python benchmarks/pairs.py DATA --encoder NAME_OR_PATH [--task nli] [--method jm --method pf-lr] [--seeds 3]

DATA has one task of pairs, such as AmericasNLI's files in nli/<language>/. Its languages are held out in two halves,
each in turn: a language without a seen cell has nothing but its text. Prints one JSON line: accuracy and macro-F1,
means over languages, and the share of the most frequent label.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from crossfill.config import parse_config
from crossfill.data.folder import load_grid
from crossfill.data.splits import capped_grid
from crossfill.encoders.base import build_encoder
from crossfill.evaluation.scoring import evaluate
from crossfill.settings import read_settings
from crossfill.tagger.train import train_model

FROZEN = Path(__file__).parents[1] / "configs" / "frozen.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--task", default="nli")
    parser.add_argument("--method", action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-train", type=int, default=300)
    parser.add_argument("--max-dev", type=int, default=60)
    parser.add_argument("--max-test", type=int, default=150)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    grid = load_grid(arguments.data, tasks=[arguments.task], max_train=arguments.max_train)
    grid = capped_grid(grid, arguments.max_dev, arguments.max_test, 0)
    base = parse_config(read_settings(FROZEN)["config"], str(FROZEN)).change({"encoder.name": arguments.encoder})
    base = base.change({"training.steps": 1000, "training.validate_every": 125})
    encoder = build_encoder(base, grid.inventory.languages)
    found: dict[str, dict[str, list[float]]] = {}
    for method in arguments.method or ["jm", "pf-lr"]:
        measured = found.setdefault(method, {})
        for seed in range(arguments.seeds):
            config = base.change({"method": method, "training.seed": seed})
            for half in (0, 1):
                trained = train_model(grid, grid.cells[half::2], config, encoder=encoder)
                for result in evaluate(trained.model, grid, config):
                    which = "seen" if result.seen else "unseen"
                    for name in ("accuracy", "macro_f1"):
                        measured.setdefault(f"{which}_{name}", []).append(result.plug_in[name])
                    measured.setdefault(f"{which}_ece", []).append(result.averaged["ece"])
    tests = [grid[cell][0].test.labels.counts() for cell in grid.cells]
    frequent = np.mean([max(counts.values()) / counts.total() for counts in tests])
    means = {method: {name: round(float(np.mean(v)), 4) for name, v in own.items()} for method, own in found.items()}
    sizes = {"languages": len(grid.cells), "test_pairs": sum(counts.total() for counts in tests)}
    print(json.dumps({"benchmark": "pairs", **sizes, "most_frequent": round(float(frequent), 4), "methods": means}))


if __name__ == "__main__":
    main()
