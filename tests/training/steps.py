"""Training runs and the losses of their steps, in this process or as one of several."""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from crossfill.methods.registry import build_model
from crossfill.settings import parse_assignments
from crossfill.training.labelled import prepare_grid
from crossfill.training.loop import Trainer
from crossfill.training.processes import Processes, leave
from tests.scenarios import SMALL, small_grid


class Kept(list):
    """The objectives since the last validation, which also remembers all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[tuple[float, float, float]] = []

    def append(self, item: tuple[float, float, float]) -> None:
        self.all.append(item)
        super().append(item)


def run(settings: list[str], out: Path | None = None) -> dict[str, Any]:
    """The losses of all steps and the scores of all validations."""
    made, partition = small_grid()
    config = SMALL.change(parse_assignments(settings))
    processes = Processes(config.training)
    model = build_model(config, made.grid.inventory, partition.seen)
    trainer = Trainer(model, *prepare_grid(model, made.grid), config, out, processes)
    trainer.recent = kept = Kept()
    history = trainer.run().history
    return {"losses": kept.all, "scores": [entry["scores"] for entry in history]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    found = [run(settings, Path(out)) for out, settings in json.loads(sys.argv[1]).items()]
    print(json.dumps(found))
    leave()
