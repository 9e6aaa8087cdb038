"""How long does averaging 100 posterior samples take for 10,000 words at the paper's sizes? Prints one JSON line."""

import argparse
import json
import statistics
import time

import torch

from crossfill.config import Config
from crossfill.encoders.features import FeatureEncoder, FeatureInputs
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.registry import build_model
from crossfill.prediction.predict import predict

FEATURES, WORDS_PER_SENTENCE = 768, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    languages = tuple(f"l{i:02}" for i in range(33))
    inventory = Inventory.of({"pos": tuple(f"p{i}" for i in range(17))}, languages)
    cell = Cell("pos", "l00")
    model = build_model(Config(), inventory, [cell], FeatureEncoder(FEATURES)).eval()
    lengths = torch.full((arguments.words // WORDS_PER_SENTENCE,), WORDS_PER_SENTENCE)
    inputs = FeatureInputs(torch.randn(int(lengths.sum()), FEATURES), lengths)
    seconds: dict[str, list[float]] = {"plug_in": [], "averaged": []}
    for _ in range(5):
        for name, n_samples in (("plug_in", 0), ("averaged", arguments.samples)):
            started = time.perf_counter()
            predict(model, inputs, cell, n_samples)
            seconds[name].append(time.perf_counter() - started)
    median = {name: round(statistics.median(values), 3) for name, values in seconds.items()}
    print(
        json.dumps({"benchmark": "average", "words": arguments.words, "samples": arguments.samples, "seconds": median})
    )


if __name__ == "__main__":
    main()
