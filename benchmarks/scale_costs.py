"""What would runs over all of UD and WikiANN, and over 8,500 languages × 32 tasks, cost? What limits them first?

    python benchmarks/scale_costs.py [--words 40e6] [--bandwidth 2e12] [--operations 312e12] [--link 300e9]

Computed with the formulas of benchmarks/scale.py for a device that is described by a few numbers; nothing is measured
here. One JSON line.
"""

import argparse
import json
import statistics
from dataclasses import dataclass
from pathlib import Path

from scale import FLOAT, Constants, Sizes, fit, read_points

BYTES_PER_PARAMETER = 44
"""Bytes moved in a step: twice for the products, once for the gradient and for its norm, seven times by Adam."""
PIECES_PER_WORD, STEP_WORDS = 1.5, 240
SHARE_OF_PEAK = 0.4
"""The share of a device's peak speed that is reached; a conservative guess."""
HALF = 2
CELL_SECONDS = 0.0025
"""Overhead of a cell in a validation besides arithmetic, as measured with 16 features on one core."""


@dataclass(frozen=True)
class Encoder:
    """A pretrained encoder: all of its parameters, those in its layers, and the size of a word's vector."""

    parameters: float
    in_layers: float
    features: int


MBERT = Encoder(178e6, 86e6, 768)


@dataclass(frozen=True)
class Device:
    """An accelerator, its link to others, and its disk, in bytes, bytes per second and operations per second."""

    memory: float = 80e9
    bandwidth: float = 2e12
    operations: float = 312e12
    link: float = 300e9
    disk: float = 2e9


def costs(sizes: Sizes, words: float, finetuned: bool, device: Device, constants: Constants, workers: int) -> dict:
    """Seconds and bytes of one pass over the words of the seen cells."""
    touched = statistics.mean(map(sizes.touched, sizes.labels))
    trained = MBERT.parameters if finetuned else 0.0
    kept = FLOAT * (3 * (sizes.parameters() + trained) + sizes.languages * sizes.latent)
    speed, bandwidth = SHARE_OF_PEAK * device.operations, SHARE_OF_PEAK * device.bandwidth
    pieces = PIECES_PER_WORD * STEP_WORDS / workers
    parts = {
        "python": constants.step_seconds,
        "parameters": BYTES_PER_PARAMETER * (touched + trained) / bandwidth,
        "encoder": 6 * MBERT.in_layers * pieces / speed if finetuned else 0.0,
        "exchange": FLOAT * 2 * (workers - 1) / workers * (touched + trained) / device.link,
    }
    step = max(parts["python"], parts["parameters"] + parts["encoder"]) + parts["exchange"]
    steps = words / STEP_WORDS
    seen = sizes.cells / 2
    passes = {
        "steps": steps * step,
        "validation": steps / 2500 * seen * CELL_SECONDS / workers,
        "checkpoints": steps / 500 * kept / device.disk,
        "encoding": 0.0 if finetuned else 2 * MBERT.in_layers * PIECES_PER_WORD * words / speed,
    }
    return {
        "languages": sizes.languages,
        "tasks": sizes.tasks,
        "mode": "finetune" if finetuned else "frozen",
        "workers": workers,
        "parameters": sizes.parameters() + int(trained),
        "device_gigabytes": round((kept + FLOAT * (touched + trained)) / 1e9, 1),
        "features_gigabytes": 0 if finetuned else round(words * MBERT.features * HALF / 1e9),
        "checkpoint_gigabytes": round(kept / 1e9, 1),
        "step_milliseconds": {name: round(1000 * value, 2) for name, value in parts.items()}
        | {"all": round(1000 * step, 2)},
        "steps_a_pass": round(steps),
        "hours_a_pass": {name: round(value / 3600, 2) for name, value in passes.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=float, default=40e6, help="training words of UD and WikiANN")
    parser.add_argument("--words-per-cell", type=float, default=2000, help="of the 8,500 × 32 grid, in seen cells")
    for name, value in vars(Device()).items():
        parser.add_argument(f"--{name}", type=float, default=value)
    arguments = parser.parse_args()
    device = Device(*(getattr(arguments, name) for name in vars(Device())))
    constants = fit(read_points(Path(__file__).with_name("scale.json")))
    large = Sizes(8500, 32)
    grids = [(Sizes(200, 2), arguments.words), (large, arguments.words_per_cell * large.cells / 2)]
    rows = [
        costs(sizes, words, finetuned, device, constants, workers)
        for sizes, words in grids
        for finetuned in (False, True)
        for workers in (1, 8)
    ]
    print(json.dumps({"benchmark": "scale_costs", "device": vars(device), "costs": rows}))


if __name__ == "__main__":
    main()
