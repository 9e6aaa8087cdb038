"""How long does BEA take on 30 sources × 100,000 words, and does it find the truth?

    python benchmarks/bea.py [--sources 30] [--words 100000] [--labels 17]

Sources are right between 8 % and 30 % of the time, and guess otherwise. Prints one JSON line.
"""

import argparse
import json
import time

import torch

from crossfill.methods.baselines.bea import aggregate, majority


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=30)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=17)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    truth = torch.randint(arguments.labels, (arguments.words,), generator=rng)
    shape = (arguments.sources, arguments.words)
    right = torch.rand(shape, generator=rng) < torch.linspace(0.08, 0.3, arguments.sources).unsqueeze(1)
    votes = torch.where(right, truth, torch.randint(arguments.labels, shape, generator=rng))
    started = time.perf_counter()
    q, _, iterations = aggregate(votes, arguments.labels)
    seconds = time.perf_counter() - started
    found, tallied = ((p.argmax(1) == truth).double().mean().item() for p in (q, majority(votes, arguments.labels)))
    report = {"benchmark": "bea", **vars(arguments), "seconds": round(seconds, 1), "iterations": iterations}
    print(json.dumps(report | {"accuracy": round(found, 3), "majority": round(tallied, 3)}))


if __name__ == "__main__":
    main()
