"""Do formulas predict a training step's time and memory, from 33 × 2 cells to 8,500 × 32? (docs/studies.md has them.)

    python benchmarks/scale.py                 measure every point, each in a process of its own, and check the formulas
    python benchmarks/scale.py --check FILE    check the formulas against measurements that were taken before

PF-lr at the paper's sizes over given features, all cells seen, one thread. Time is CPU time, so that other load on the
machine matters less; memory is the peak of the process during steps. Prints one JSON line.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

LABELS = (9, 17, 5, 13)
"""Labels of the first four tasks, of the next four, and so on."""
WORDS, SENTENCES, SAMPLES = 240, 8, 3
FLOAT = 4
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "4000000000"}
"""Makes glibc keep the memory of large gradients instead of requesting it from the system at every step."""


@dataclass(frozen=True)
class Sizes:
    """What a run's cost depends on. Defaults are the paper's."""

    languages: int
    tasks: int
    features: int = 768
    latent: int = 100
    rank: int = 10
    hidden: tuple[int, ...] = (400, 768, 768, 768, 768)

    @property
    def labels(self) -> list[int]:
        return [LABELS[i % len(LABELS)] for i in range(self.tasks)]

    @property
    def cells(self) -> int:
        return self.languages * self.tasks

    def latents(self) -> int:
        """Parameters of the posteriors: m, ρ and B of every task and language."""
        return (self.languages + self.tasks) * self.latent * (2 + self.rank)

    def trunk(self) -> int:
        """Parameters of the generator that all tasks share."""
        return sum((narrow + 1) * wide for narrow, wide in pairwise((4 * self.latent, *self.hidden)))

    def last_layers(self, labels: int) -> int:
        """Parameters of the generator's last layers of one task: for the mean and for the variance."""
        return 2 * (self.hidden[-1] + 1) * labels * (self.features + 1)

    def parameters(self) -> int:
        return self.latents() + self.trunk() + sum(map(self.last_layers, self.labels))

    def touched(self, labels: int) -> int:
        """Parameters that a step reads and updates, over a cell of a task with this number of labels."""
        return self.trunk() + self.last_layers(labels) + 2 * self.latent * (2 + self.rank)

    def memory(self, constants: "Constants") -> float:
        """Bytes at the peak of a step: parameters and Adam's two moments, gradients of one cell, per-cell data."""
        numbers = 3 * self.parameters() + self.languages * self.latent + self.touched(max(self.labels))
        return constants.runtime_bytes + constants.cell_bytes * self.cells + FLOAT * numbers

    def step(self, constants: "Constants") -> float:
        """Mean seconds of a step, cells drawn uniformly."""
        return statistics.mean(self.step_of(labels, constants) for labels in self.labels)

    def step_of(self, labels: int, constants: "Constants") -> float:
        """Seconds of a step over a cell of a task with this number of labels."""
        arithmetic = 6 * SAMPLES * WORDS * labels * self.features
        return (
            constants.step_seconds
            + constants.parameter_seconds * self.touched(labels)
            + arithmetic / constants.operations_per_second
        )

    def exchanged(self, labels: int, encoder: int, workers: int) -> float:
        """Bytes that each of several processes sends in a step: a ring all-reduce of the gradients."""
        return 2 * (workers - 1) / workers * FLOAT * (encoder + self.touched(labels))


@dataclass(frozen=True)
class Constants:
    """Fitted constants: the machine's speed, and overheads of time and memory."""

    step_seconds: float
    parameter_seconds: float
    operations_per_second: float
    runtime_bytes: float
    cell_bytes: float


@dataclass(frozen=True)
class Point:
    """The measurements at some sizes."""

    sizes: Sizes
    seconds: float
    bytes: float
    operations_per_second: float


GRID = [Sizes(languages, tasks) for tasks in (2, 8, 32) for languages in (33, 330, 3300, 8500)]
ENCODERS = [Sizes(33, 2, features=256), Sizes(33, 2, features=1536), Sizes(330, 8, features=384)]
FITTED = (Sizes(33, 2), Sizes(33, 32), Sizes(8500, 8), Sizes(33, 2, features=256), Sizes(33, 2, features=1536))
"""The constants are fitted to these points alone; all others are predicted."""


def fit(points: list[Point]) -> Constants:
    """The constants that fit best in relative error."""
    import numpy as np

    chosen = [point for point in points if point.sizes in FITTED]
    speed = statistics.median(point.operations_per_second for point in chosen)
    shares, seconds = [], []
    for point in chosen:
        labels = point.sizes.labels
        arithmetic = 6 * SAMPLES * WORDS * statistics.mean(labels) * point.sizes.features / speed
        shares.append([1.0, statistics.mean(map(point.sizes.touched, labels))])
        seconds.append(point.seconds - arithmetic)
    weight = 1 / np.array([point.seconds for point in chosen])
    step, parameter = np.linalg.lstsq(np.array(shares) * weight[:, None], np.array(seconds) * weight)[0]
    bare = Constants(0, 0, 1, 0, 0)
    rest = [point.bytes - point.sizes.memory(bare) for point in chosen]
    weight = 1 / np.array([point.bytes for point in chosen])
    cells = np.array([[1.0, point.sizes.cells] for point in chosen])
    runtime, cell = np.linalg.lstsq(cells * weight[:, None], np.array(rest) * weight)[0]
    return Constants(float(step), float(parameter), speed, float(runtime), float(cell))


def errors(points: list[Point], constants: Constants) -> list[dict[str, float]]:
    """Predicted and measured values of every point, and their relative difference."""
    rows = []
    for point in points:
        seconds, memory = point.sizes.step(constants), point.sizes.memory(constants)
        rows.append(
            {
                "languages": point.sizes.languages,
                "tasks": point.sizes.tasks,
                "features": point.sizes.features,
                "parameters": point.sizes.parameters(),
                "milliseconds": round(1000 * point.seconds, 1),
                "predicted_milliseconds": round(1000 * seconds, 1),
                "time_error": round(seconds / point.seconds - 1, 3),
                "megabytes": round(point.bytes / 1e6),
                "predicted_megabytes": round(memory / 1e6),
                "memory_error": round(memory / point.bytes - 1, 3),
                "fitted": point.sizes in FITTED,
            }
        )
    return rows


def measure(sizes: Sizes, steps: int) -> Point:
    """Train for some steps at these sizes, in this process."""
    import torch
    from speed import machine_speed

    from crossfill.config import Config
    from crossfill.encoders.features import FeatureEncoder, FeatureInputs
    from crossfill.grid.cells import Cell, Inventory
    from crossfill.methods.registry import build_model
    from crossfill.training.labelled import Labelled
    from crossfill.training.loop import Trainer

    torch.set_num_threads(1)
    languages = tuple(f"l{i:04}" for i in range(sizes.languages))
    labels = {f"t{i:02}": tuple(f"c{j:02}" for j in range(n)) for i, n in enumerate(sizes.labels)}
    inputs = FeatureInputs(torch.randn(WORDS, sizes.features), torch.full((SENTENCES,), WORDS // SENTENCES))
    data = {task: Labelled(inputs, torch.randint(len(names), (WORDS,))) for task, names in labels.items()}
    cells = [Cell(task, language) for task in labels for language in languages]
    model = build_model(Config(), Inventory.of(labels, languages), cells, FeatureEncoder(sizes.features))
    trainer = Trainer(model, {cell: data[cell.task] for cell in cells}, {}, Config())
    seen: set[str] = set()
    while len(seen) < sizes.tasks or trainer.progression.step < 10:  # a task's first step allocates its Adam moments
        seen.add(_advance(trainer).task)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak, so that it is that of the steps
    times: dict[int, list[float]] = {n: [] for n in sizes.labels}
    while min(map(len, times.values())) < steps:
        started = time.process_time()
        cell = _advance(trainer)
        times[len(labels[cell.task])].append(time.process_time() - started)
    seconds = statistics.mean(statistics.median(times[n]) for n in sizes.labels)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return Point(sizes, seconds, 1024 * int(status["VmHWM"].split()[0]), machine_speed())


def _advance(trainer):
    """Take one step; returns the cell that it drew."""
    drawn = []
    draw = trainer.sampler.draw
    trainer.sampler.draw = lambda step: drawn.extend(draw(step)) or drawn
    trainer.advance()
    trainer.sampler.draw = draw
    return drawn[0].cell


def read_points(path: Path) -> list[Point]:
    """Measurements from a file."""
    found = json.loads(path.read_text(encoding="utf-8"))["points"]
    return [
        Point(
            Sizes(**{**p["sizes"], "hidden": tuple(p["sizes"]["hidden"])}),
            p["seconds"],
            p["bytes"],
            p["operations_per_second"],
        )
        for p in found
    ]


def measure_all(rounds: int, steps: int) -> list[Point]:
    """Measure every point in a process of its own; the minimum time of several rounds counts."""
    found: dict[Sizes, list[Point]] = {}
    for _ in range(rounds):
        for sizes in (*GRID, *ENCODERS):
            command = [sys.executable, __file__, "--steps", str(steps), "--point"]
            command += [str(sizes.languages), str(sizes.tasks), str(sizes.features)]
            out = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", **ALLOCATOR},
            )
            seconds, n_bytes, speed = json.loads(out.stdout)
            found.setdefault(sizes, []).append(Point(sizes, seconds, n_bytes, speed))
            print(
                f"{sizes.languages} × {sizes.tasks}, {sizes.features}: {seconds:.4f} s, {n_bytes / 1e6:.0f} MB",
                file=sys.stderr,
            )
    return [
        Point(sizes, min(p.seconds for p in ps), max(p.bytes for p in ps), max(p.operations_per_second for p in ps))
        for sizes, ps in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=Path, help="measurements to check the formulas against")
    parser.add_argument("--out", type=Path, help="file for the measurements")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=15, help="steps timed for each number of labels")
    parser.add_argument(
        "--point", type=int, nargs=3, metavar=("LANGUAGES", "TASKS", "FEATURES"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.point:
        point = measure(Sizes(arguments.point[0], arguments.point[1], features=arguments.point[2]), arguments.steps)
        print(json.dumps([point.seconds, point.bytes, point.operations_per_second]))
        return
    points = read_points(arguments.check) if arguments.check else measure_all(arguments.rounds, arguments.steps)
    if arguments.out:
        kept = {"benchmark": "scale", "points": [asdict(point) for point in points]}
        arguments.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    constants = fit(points)
    rows = errors(points, constants)
    worst = {kind: max(abs(row[f"{kind}_error"]) for row in rows) for kind in ("time", "memory")}
    found = {"benchmark": "scale", "constants": asdict(constants), "worst": worst, "points": rows}
    print(json.dumps(found))
    sys.exit(max(worst.values()) > 0.2)


if __name__ == "__main__":
    main()
