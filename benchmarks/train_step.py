"""Does a training step cost the same for one sample and three, for 33 languages and 8,500, and for PF-lr and JM?

PF-lr at the paper's sizes over given features, and both methods with the settings of configs/frozen.yaml, sizes of the
real grid; steps of the configurations alternate. Time is of the processor,
as cores are shared. Prints one JSON line.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

from crossfill.config import Config, load_run_config
from crossfill.encoders.features import FeatureEncoder, FeatureInputs
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.registry import build_model
from crossfill.training.labelled import Labelled
from crossfill.training.loop import Trainer

FEATURES, SENTENCES, WORDS = 768, 8, 30
LABELS = {"ner": 7, "pos": 17}


def make_trainer(n_languages: int, n_samples: int) -> Trainer:
    languages = tuple(f"l{i:04}" for i in range(n_languages))
    inventory = Inventory.of({t: tuple(f"{t}{i}" for i in range(n)) for t, n in LABELS.items()}, languages)
    cells = [Cell("pos", language) for language in languages]  # one task, so that all steps do the same work
    lengths = torch.full((SENTENCES,), WORDS)
    features = torch.randn(SENTENCES * WORDS, FEATURES)
    data = Labelled(FeatureInputs(features, lengths), torch.randint(LABELS["pos"], (SENTENCES * WORDS,)))
    config = Config().change({"objective.samples": n_samples})
    model = build_model(config, inventory, cells, FeatureEncoder(FEATURES))
    return Trainer(model, dict.fromkeys(cells, data), {}, config)


def make_frozen_trainer(method: str) -> Trainer:
    """With the settings and sizes of the study of the real grid."""
    config = load_run_config(Path("configs/frozen.yaml"), method)
    languages = tuple(f"l{i:02}" for i in range(29))
    inventory = Inventory.of({t: tuple(f"{t}{i}" for i in range(n)) for t, n in LABELS.items()}, languages)
    cells = [Cell(task, language) for language in languages for task in LABELS]
    model = build_model(config, inventory, cells, FeatureEncoder(675))
    lengths = torch.full((300,), 16)
    features = torch.randn(300 * 16, 675)
    data = {t: Labelled(FeatureInputs(features, lengths), torch.randint(n, (300 * 16,))) for t, n in LABELS.items()}
    return Trainer(model, {cell: data[cell.task] for cell in cells}, {}, config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    trainers = {name: make_trainer(*sizes) for name, sizes in CONTESTANTS.items()}
    trainers |= {name: make_frozen_trainer(name) for name in ("jm", "pf-lr")}
    seconds: dict[str, list[float]] = {name: [] for name in trainers}
    for step in range(arguments.steps + 5):
        for name, trainer in trainers.items():
            started = time.process_time()
            trainer.advance()
            if step >= 5:
                seconds[name].append(time.process_time() - started)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    result = {
        "benchmark": "train_step",
        "milliseconds": {name: round(1000 * value, 1) for name, value in median.items()},
        "three_samples_to_one": round(median["33 languages, 3 samples"] / median["33 languages, 1 sample"], 3),
        "8500_languages_to_33": round(median["8500 languages, 3 samples"] / median["33 languages, 3 samples"], 3),
        "pf_lr_to_jm": round(median["pf-lr"] / median["jm"], 2),
    }
    print(json.dumps(result))


CONTESTANTS = {
    "33 languages, 1 sample": (33, 1),
    "33 languages, 3 samples": (33, 3),
    "8500 languages, 3 samples": (8500, 3),
}

if __name__ == "__main__":
    main()
