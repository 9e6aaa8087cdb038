"""How many languages have to be seen in both tasks, before a language's one task says anything of its other?

On the synthetic grid with two tasks, `--bridges` languages are seen in both, the others in one each. Scores are those
of the cells that are unseen with every number of bridges. Typology is what a handbook would say: the family of a
language and its word order, not its hidden settings. The seed is that of the grid, the partition and the training.
With `--log`, each result is kept in a file, and a run that was stopped goes on from there. Prints one JSON line.
"""

import argparse
import json
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from crossfill.config import load_run_config
from crossfill.data.synthetic import N_HIDDEN, SETTINGS, SyntheticConfig, SyntheticGrid, synthetic_grid
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.partition import bridge_halves
from crossfill.settings import parse_assignments
from crossfill.studies.demo import CONFIG
from crossfill.tagger.train import train_model

Changes = dict[str, Any]
METHODS: dict[str, tuple[str, Changes]] = {
    "pf-lr": ("pf-lr", {}),
    "pf-lr + typology": ("pf-lr", {"latents.prior": "similar", "latents.size": 16}),
    "jm": ("jm", {}),
    "jm-kernel": ("jm-kernel", {"latents.size": 16}),
}


class Job(NamedTuple):
    """One training."""

    method: str
    bridges: int
    seed: int
    half: int


def write_typology(made: SyntheticGrid, folder: Path) -> None:
    """The families and the visible settings (word order) of the languages, as tables."""
    visible = SETTINGS[N_HIDDEN:]
    families = sorted({language.family for language in made.languages})
    order = ["\t".join(("language", *visible))]
    kin = ["\t".join(("language", *(f"family_{family}" for family in families)))]
    for language in made.languages:
        order.append("\t".join((language.code, *(str(2 * language.setting(name) - 1) for name in visible))))
        kin.append("\t".join((language.code, *(str(int(language.family == family)) for family in families))))
    (folder / "word_order.tsv").write_text("\n".join(order) + "\n", encoding="utf-8")
    (folder / "fam.tsv").write_text("\n".join(kin) + "\n", encoding="utf-8")


def run(job: Job, tasks: tuple[str, ...], changes: Changes) -> dict[str, float]:
    """Train, and score the unseen cells."""
    made = synthetic_grid(SyntheticConfig(), job.seed)
    grid = made.grid.where(lambda cell: cell.task in tasks)
    partition = bridge_halves(grid.cells, job.bridges, job.seed)[job.half - 1]
    method, own = METHODS[job.method]
    with tempfile.TemporaryDirectory() as folder:
        write_typology(made, Path(folder))
        common = {"training.seed": job.seed, "sources.vectors": folder, "latents.similarity": ["fam", "word_order"]}
        config = load_run_config(CONFIG, "jm").change({"method": method} | common | own | changes)
        model = train_model(grid, partition.seen, config).model
    unseen = Grid({cell: grid[cell] for cell in sorted(partition.unseen)})
    return {str(r.cell): r.score for r in evaluate(model, unseen, config.change({"prediction.samples": 0}))}


def table(found: dict[Job, dict[str, float]]) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Mean and standard deviation over seeds, by number of bridges, method and task, over the cells common to all."""
    seeds, halves = sorted({job.seed for job in found}), sorted({job.half for job in found})
    common = {
        (s, h): set.intersection(*(set(found[j]) for j in found if (j.seed, j.half) == (s, h)))
        for s, h in product(seeds, halves)
    }
    rows: dict[str, dict[str, dict[str, list[float]]]] = {}
    for n, method in sorted({(job.bridges, job.method) for job in found}):
        means: dict[str, list[float]] = {}
        for seed in seeds:
            scores: dict[str, list[float]] = {}
            for half in halves:
                for cell in common[seed, half]:
                    scores.setdefault(Cell.parse(cell).task, []).append(found[Job(method, n, seed, half)][cell])
            for task, values in sorted(scores.items()):
                means.setdefault(task, []).append(100 * float(np.mean(values)))
        rows.setdefault(str(n), {})[method] = {
            task: [round(float(np.mean(v)), 1), round(float(np.std(v, ddof=1)), 1) if len(v) > 1 else 0.0]
            for task, v in means.items()
        }
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--halves", type=int, nargs="+", default=[1])
    parser.add_argument("--bridges", type=int, nargs="+", default=[0, 5, 10, 30])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--tasks", nargs="+", default=["ner", "pos"])
    parser.add_argument("--set", nargs="*", default=[], help="settings of all trainings, as training.steps=500")
    parser.add_argument("--log", type=Path, help="JSON lines, one for each training that is done")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = arguments.log.read_text(encoding="utf-8").splitlines() if arguments.log and arguments.log.exists() else []
    done = {Job(*entry["job"]): entry["scores"] for entry in map(json.loads, lines)}
    found: dict[Job, dict[str, float]] = {}
    for seed, half, n, method in product(arguments.seeds, arguments.halves, arguments.bridges, arguments.methods):
        job, started = Job(method, n, seed, half), time.monotonic()
        if job not in done:
            done[job] = run(job, tuple(arguments.tasks), parse_assignments(arguments.set))
            if arguments.log:
                seconds = round(time.monotonic() - started, 1)
                with arguments.log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"job": job, "scores": done[job], "seconds": seconds}) + "\n")
        found[job] = done[job]
    print(json.dumps({"benchmark": "bridges", "seeds": arguments.seeds, "scores": table(found)}))


if __name__ == "__main__":
    main()
