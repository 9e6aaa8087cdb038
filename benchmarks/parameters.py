"""How do the parameters of each method grow with the number of languages?

    python benchmarks/parameters.py [--languages 2 33 100 1000] [--config configs/frozen.yaml] [--features 768]

Counts trainable parameters outside the encoder, all cells seen, for NER (9 labels) and POS (17). One JSON line.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from crossfill.config import Config, load_run_config
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.registry import find_method
from crossfill.model import n_parameters


def parameter_counts(
    config: Config,
    n_languages: Sequence[int],
    methods: Sequence[str] = ("pf-lr", "pf-d", "jm", "ns", "ls", "bea"),
    n_labels: Mapping[str, int] | None = None,
    n_features: int = 768,
) -> dict[str, list[int]]:
    """Parameters of each method's heads for each number of languages, all cells seen; the paper's two tasks by default.

    Nothing is allocated: heads are built without storage.
    """
    sizes = n_labels or {"ner": 9, "pos": 17}
    counts: dict[str, list[int]] = {}
    for name in methods:
        method, settings = find_method(name), config.change({"method": name})
        counts[name] = []
        for n in n_languages:
            languages = tuple(f"language-{i}" for i in range(n))
            labels = {task: tuple(f"label-{i}" for i in range(size)) for task, size in sizes.items()}
            cells = [Cell(task, language) for task in sizes for language in languages]
            with torch.device("meta"):
                counts[name].append(
                    n_parameters(method.build(Inventory.of(labels, languages), cells, n_features, settings))
                )
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--languages", type=int, nargs="+", default=[2, 33, 100, 1000])
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--config", type=Path)
    arguments = parser.parse_args()
    config = load_run_config(arguments.config) if arguments.config else Config()
    counts = parameter_counts(config, arguments.languages, n_features=arguments.features)
    print(json.dumps({"benchmark": "parameters", "languages": arguments.languages, "parameters": counts}))


if __name__ == "__main__":
    main()
