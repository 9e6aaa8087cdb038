"""Topics in unseen cells, by method; and do topics help PF with words, or words with topics?

    python benchmarks/topics.py DATA --encoder NAME_OR_PATH --out FOLDER [--seeds 3] [--only pf-lr --only jm …]

The grid and the settings of `configs/topics.yaml`, both random halves. Methods whose tasks share no weights over a
frozen encoder train on the seen topic cells alone. PF trains on all seen cells; PF-lr also on words alone and on topics
alone, with as many steps for each task. Each job leaves its results in FOLDER, from where another run
takes them up. Prints a JSON line for each job as it ends, with means over unseen cells, and at last one for each of
PF's paired differences, with their p over trainings and cells.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from crossfill.config import Config, parse_config
from crossfill.encoders.base import build_encoder
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.partition import random_halves
from crossfill.measures.significance import over_trainings_and_cells, summarise
from crossfill.model import Model
from crossfill.settings import read_settings
from crossfill.studies.study import DataSettings, load_study_grid
from crossfill.tagger.train import train_model

STUDY = Path(__file__).parents[1] / "configs" / "topics.yaml"
STEPS = 1000
"""For each task."""
WORDS, TOPIC = ("ner", "pos"), ("topic",)


class Job(NamedTuple):
    """What to train on which tasks, and how the tasks of a step are drawn."""

    method: str
    tasks: tuple[str, ...]
    step_tasks: str = "one"


JOBS = {
    "ns": Job("ns", TOPIC, "mixed"),
    "bea": Job("bea", TOPIC, "mixed"),
    "ls": Job("ls", TOPIC, "mixed"),
    "jm": Job("jm", TOPIC),
    "jm-kernel": Job("jm-kernel", TOPIC),
    "jm-deep": Job("jm-deep", TOPIC),
    "pf-lr": Job("pf-lr", (*WORDS, *TOPIC)),
    "pf-lr, topics alone": Job("pf-lr", TOPIC),
    "pf-lr, words alone": Job("pf-lr", WORDS),
    "pf-d": Job("pf-d", (*WORDS, *TOPIC)),
}
COMPARED = [("pf-lr", other) for other in ("jm", "jm-kernel", "pf-lr, words alone", "pf-lr, topics alone")]
Scores = dict[str, list[np.ndarray]]
"""For each task, the scores (seeds × unseen corpora) of each half."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(JOBS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    values = read_settings(STUDY)
    grid = load_study_grid(DataSettings(**{**values["data"], "path": str(arguments.data)})).grid
    base = parse_config(values["config"], str(STUDY)).change({"encoder.name": arguments.encoder})
    found: dict[str, Scores] = {}
    for name in arguments.only or JOBS:
        place = arguments.out / f"{name.replace(', ', '-').replace(' ', '-')}.json"
        if not place.exists():
            scores, about = run(grid, base, JOBS[name], arguments.seeds)
            kept = {task: [half.tolist() for half in own] for task, own in scores.items()}
            arguments.out.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps({"about": about, "scores": kept}))
        done = json.loads(place.read_text())
        found[name] = {task: [np.array(half) for half in own] for task, own in done["scores"].items()}
        print(json.dumps({"job": name, **done["about"]}), flush=True)
    for first, second in COMPARED:
        if found.keys() >= {first, second}:
            tested = differences(found[first], found[second])
            print(json.dumps({"first": first, "second": second, **tested}), flush=True)


def run(grid: Grid, base: Config, job: Job, n_seeds: int) -> tuple[Scores, dict[str, Any]]:
    """The scores of a job, and its means over unseen cells, each with its standard deviation over seeds."""
    steps = STEPS * len(job.tasks)
    base = base.change({"method": job.method, "training.steps": steps, "training.validate_every": steps // 8})
    base = base.change({"training.step_tasks": job.step_tasks})
    encoder = build_encoder(base, grid.inventory.languages)
    if encoder.stored is not None:
        encoder.stored.keep_open = True

    def trained(seen: list[Cell], config: Config) -> Model:
        return train_model(grid, seen, config, encoder=encoder.with_pooling(config.encoder.sentences)).model

    results = []
    for half in random_halves(grid.cells, 0):
        seen = [cell for cell in half.seen if cell.task in job.tasks]
        unseen = {cell for cell in half.unseen if cell.task in job.tasks}
        scored = grid.where(lambda cell, unseen=unseen: cell in unseen)
        configs = [base.change({"training.seed": seed}) for seed in range(n_seeds)]
        results.append([evaluate(trained(seen, c), scored, c) for c in configs])

    def of(task: str, measure: Callable[[Any], float]) -> list[np.ndarray]:
        return [np.array([[measure(r) for r in own if r.cell.task == task] for own in half]) for half in results]

    measures: dict[str, Callable[[Any], float]] = {
        "score": lambda result: 100 * result.score,
        "macro_f1": lambda result: 100 * result.averaged.get("macro_f1", float("nan")),
        "nll": lambda result: result.averaged["nll"],
        "ece": lambda result: result.averaged["ece"],
    }
    about = {}
    for task in job.tasks:
        for name, measure in measures.items():
            mean, sd, _ = summarise(np.concatenate(of(task, measure), axis=1).mean(1).tolist())
            about[f"{task} {name}"] = [round(mean, 3), round(sd, 3)]
    return {task: of(task, measures["score"]) for task in job.tasks}, about


def differences(first: Scores, second: Scores) -> dict[str, list[float]]:
    """Mean difference of scores in each task that both have, and its p, with trainings and cells as samples."""
    found = {}
    for task in sorted(first.keys() & second.keys()):
        test = over_trainings_and_cells([a - b for a, b in zip(first[task], second[task], strict=True)])
        found[task] = [round(test.difference, 2), round(test.p_value, 4), round(test.low, 2), round(test.high, 2)]
    return found


if __name__ == "__main__":
    main()
