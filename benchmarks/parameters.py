"""How do the parameters of each method grow with the number of languages?

    python benchmarks/parameters.py [--languages 2 33 100 1000] [--config configs/frozen.yaml] [--features 768]

Counts all that trains besides the encoder, with every cell seen, for NER (9 labels) and POS (17). One JSON line.
"""

import argparse
import json
from pathlib import Path

from crossfill.config import Config, load_config
from crossfill.experiments.parameters import parameter_counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--languages", type=int, nargs="+", default=[2, 33, 100, 1000])
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--config", type=Path)
    arguments = parser.parse_args()
    config = load_config(arguments.config) if arguments.config else Config()
    counts = parameter_counts(config, arguments.languages, n_features=arguments.features)
    print(json.dumps({"benchmark": "parameters", "languages": arguments.languages, "parameters": counts}))


if __name__ == "__main__":
    main()
