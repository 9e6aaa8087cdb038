"""Topics in unseen cells, by method; and do topics help PF with words, or words with topics?

    python benchmarks/topics.py DATA --encoder NAME_OR_PATH [--seeds 3] [--tested yor --tested tur …]

The grid and the settings of `configs/topics.yaml`, both random halves. Methods whose tasks share no weights over a
frozen encoder train on the seen topic cells alone. PF-lr trains on all seen cells, on words alone and on topics alone,
with as many steps for each task. Prints one JSON line: means over unseen cells, and PF's paired differences with p.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from crossfill.config import parse_config
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.partition import random_halves
from crossfill.measures.significance import paired_bootstrap
from crossfill.settings import read_settings
from crossfill.studies.grids import load_study_grid
from crossfill.studies.study import DataSettings
from crossfill.tagger.train import train_model

STUDY = Path(__file__).parents[1] / "configs" / "topics.yaml"
WORDS, TOPIC = ("ner", "pos"), ("topic",)
MIXED = {"training.step_tasks": "mixed"}
JOBS = {
    "ns": ("ns", TOPIC, MIXED),
    "ws": ("ws", TOPIC, MIXED),
    "bea": ("bea", TOPIC, MIXED),
    "ls": ("ls", TOPIC, MIXED),
    "jm": ("jm", TOPIC, {}),
    "pf-lr": ("pf-lr", (*WORDS, *TOPIC), {}),
    "pf-lr, topics alone": ("pf-lr", TOPIC, {}),
    "pf-lr, words alone": ("pf-lr", WORDS, {}),
}
STEPS = 1000
"""For each task."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tested", action="append", help="Languages whose topics are scored. [default: all]")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    values = read_settings(STUDY)
    grid = load_study_grid(DataSettings(**{**values["data"], "path": str(arguments.data)})).grid
    base = parse_config(values["config"], str(STUDY)).change({"encoder.name": arguments.encoder})
    tested = set(arguments.tested or grid.languages)
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for name, (method, tasks, change) in JOBS.items():
        steps = STEPS * len(tasks)
        change = {"method": method, "training.steps": steps, "training.validate_every": steps // 8, **change}
        for seed in range(arguments.seeds):
            config = base.change({**change, "training.seed": seed})
            for part in random_halves(grid.cells, 0):
                model = train_model(grid, [cell for cell in part.seen if cell.task in tasks], config).model
                unseen = {cell for cell in part.unseen if cell.task in tasks}
                scored = grid.where(lambda c, u=unseen: c in u and (c.task not in TOPIC or c.language in tested))
                for result in evaluate(model, scored, config):
                    scores[name][f"{result.cell} {result.corpus} {seed}"] = result.score
    report: dict[str, object] = {"benchmark": "topics", "means": {name: _means(own) for name, own in scores.items()}}
    for first, second in (("pf-lr", "jm"), ("pf-lr", "pf-lr, words alone"), ("pf-lr", "pf-lr, topics alone")):
        report[f"{first} − {second}"] = _differences(scores[first], scores[second])
    print(json.dumps(report, ensure_ascii=False))


def _means(scores: dict[str, float]) -> dict[str, float]:
    tasks = sorted({name.partition("/")[0] for name in scores})
    return {t: round(100 * float(np.mean([s for n, s in scores.items() if n.startswith(f"{t}/")])), 1) for t in tasks}


def _differences(first: dict[str, float], second: dict[str, float]) -> dict[str, tuple[float, float]]:
    found = {}
    for task in sorted({name.partition("/")[0] for name in first.keys() & second.keys()}):
        names = sorted(name for name in first.keys() & second.keys() if name.startswith(f"{task}/"))
        test = paired_bootstrap(*(np.array([own[name] for name in names]) for own in (first, second)))
        found[task] = (round(100 * test.difference, 1), round(test.p_value, 3))
    return found


if __name__ == "__main__":
    main()
