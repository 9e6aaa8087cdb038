"""How much CPU time does `crossfill predict` take from a cold start, and how much of it is `import torch`?

    python benchmarks/start.py MODEL [--against SRC]

Runs take turns, each in a process of its own, on one thread; medians. `--against` names the `src` folder of another
version, for a ratio.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import crossfill
from crossfill.checkpoint import read_description


def cpu_seconds(source: Path, *command: str) -> float:
    """CPU seconds of a process and of all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    given = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], env=given, input=b"a b c\n", capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    own = Path(crossfill.__file__).parents[1]
    inventory = read_description(given.model)[1]
    cell = f"{next(iter(inventory.tasks))}/{inventory.languages[0]}"
    predict = ("-m", "crossfill", "predict", str(given.model), "--cell", cell, "--from", "words")
    kinds = {"predict": (own, *predict), "import_torch": (own, "-c", "import torch")}
    if given.against is not None:
        kinds["predict_before"] = (given.against, *predict)
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(given.runs):
        for name, (source, *command) in kinds.items():
            found[name].append(cpu_seconds(source, *command))
    told = {name: round(statistics.median(seconds), 3) for name, seconds in found.items()}
    if given.against is not None:
        told["ratio"] = round(told["predict"] / told["predict_before"], 3)
    print(json.dumps(told | {"runs": given.runs}))


if __name__ == "__main__":
    main()
