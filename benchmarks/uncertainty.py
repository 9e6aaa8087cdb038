"""How good is a model's uncertainty, compared with another's? Calibration, abstention, label sets.

    python benchmarks/uncertainty.py DATA MODEL [--against JM_MODEL] --max-train 300 --max-dev 60 --max-test 150

The models come from `crossfill train` over the same data and caps, with --expect; features
come from the cache. Means are over corpora. `errors_removed`: share of a corpus' errors among the 20 % of its words
that the model is least sure of.
"""

import argparse
import json
from pathlib import Path

import torch

from crossfill.cli.evaluate import as_report
from crossfill.data.folder import load_grid
from crossfill.data.splits import capped_grid
from crossfill.tagger.tagger import load


def rounded(value: float) -> float:
    return round(value, 4)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--encoder")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    for name in ("train", "dev", "test"):
        parser.add_argument(f"--max-{name}", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cache = arguments.cache or True
    grid = load_grid(arguments.data, seed=arguments.seed, max_train=arguments.max_train, cache=cache)
    grid = capped_grid(grid, arguments.max_dev, arguments.max_test, arguments.seed)
    report: dict[str, object] = {"benchmark": "uncertainty", "alpha": arguments.alpha}
    for name, folder in (("model", arguments.model), ("against", arguments.against)):
        if folder is None:
            continue
        tagger = load(folder, arguments.encoder, cache)
        assert tagger.calibration is not None, f"{folder}: train with --expect"
        results = tagger.evaluate(grid, arguments.alpha)
        found = as_report(results)
        report[name] = {
            "method": tagger.config.method,
            "temperature": {task: c.temperature for task, c in tagger.calibration.averaged.items()},
            "means": [{k: rounded(v) if isinstance(v, float) else v for k, v in m.items()} for m in found["means"]],
            "unseen_coverage": {
                f"{r.cell} {r.corpus}": [rounded(r.label_sets.coverage), rounded(r.label_sets.set_size)]
                for r in results
                if not r.seen and r.label_sets is not None
            },
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
