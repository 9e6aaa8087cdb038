"""Does a training step cost more where a grid has sentences and pairs beside words, at equal words?

PF-lr over given features, with the default settings and with those of `configs/frozen.yaml`; steps of both grids
alternate. Prints one JSON line.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
import yaml

from crossfill.config import Config, parse_config
from crossfill.encoders.features import FeatureEncoder, FeatureInputs
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.task import Unit
from crossfill.methods.registry import build_model
from crossfill.training.labelled import Labelled
from crossfill.training.loop import Trainer

FEATURES, SENTENCES, WORDS = 640, 40, 24
LABELS = {"ner": 7, "nli": 3, "pos": 17, "topic": 7}
UNITS = {"nli": Unit.PAIR, "topic": Unit.SENTENCE}
GRIDS = {"words": ("ner", "pos"), "mixed": ("ner", "nli", "pos", "topic")}
FROZEN = Path(__file__).parents[1] / "configs" / "frozen.yaml"


def make_trainer(tasks: tuple[str, ...], config: Config) -> Trainer:
    languages = tuple(f"l{i:02}" for i in range(30))
    inventory = Inventory.of(
        {t: tuple(f"{t}{i}" for i in range(LABELS[t])) for t in tasks},
        languages,
        units={task: unit for task, unit in UNITS.items() if task in tasks},
    )
    cells = [Cell(task, language) for language in languages for task in tasks]
    data = {task: _data(task, inventory.task(task).unit) for task in tasks}
    model = build_model(config, inventory, cells, FeatureEncoder(FEATURES))
    return Trainer(model, {cell: data[cell.task] for cell in cells}, {}, config)


def _data(task: str, unit: Unit) -> Labelled:
    """As many words in every task: a pair has two sentences of half the length."""
    lengths = torch.full((SENTENCES * unit.n_sentences,), WORDS // unit.n_sentences)
    n_labels = SENTENCES * (WORDS if unit is Unit.WORD else 1)
    features = FeatureInputs(torch.randn(SENTENCES * WORDS, FEATURES), lengths)
    return Labelled(features, torch.randint(LABELS[task], (n_labels,)), unit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    frozen = parse_config(yaml.safe_load(FROZEN.read_text(encoding="utf-8"))["config"], str(FROZEN))
    result: dict[str, object] = {"benchmark": "units"}
    for name, settings in (("default", Config()), ("frozen", frozen)):
        config = settings.change({"training.steps": 10**6, "training.validate_every": 10**6, "method": "pf-lr"})
        trainers = {grid: make_trainer(tasks, config) for grid, tasks in GRIDS.items()}
        seconds: dict[str, list[float]] = {grid: [] for grid in trainers}
        for step in range(arguments.steps + 5):
            for grid, trainer in trainers.items():
                started = time.process_time()  # the machine may be shared
                trainer.advance()
                if step >= 5:
                    seconds[grid].append(time.process_time() - started)
        mean = {grid: statistics.mean(values) for grid, values in seconds.items()}
        result[name] = {
            "milliseconds": {grid: round(1000 * value, 2) for grid, value in mean.items()},
            "mixed_to_words": round(mean["mixed"] / mean["words"], 3),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
