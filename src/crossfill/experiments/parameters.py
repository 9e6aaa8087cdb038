"""How many parameters each method has, besides the encoder, as languages are added."""

from collections.abc import Mapping, Sequence

import torch

from crossfill.baselines.joint_deep import n_parameters
from crossfill.baselines.methods import find_method
from crossfill.config import Config, override
from crossfill.grid import Cell, Inventory


def parameter_counts(
    config: Config,
    n_languages: Sequence[int],
    methods: Sequence[str] = ("pf-lr", "pf-d", "jm", "ns", "ls", "bea", "jm-deep"),
    n_labels: Mapping[str, int] | None = None,
    n_features: int = 768,
) -> dict[str, list[int]]:
    """Parameters of each method's heads for each number of languages, all cells seen; the paper's two tasks by default.

    Nothing is allocated: heads are built without storage.
    """
    sizes = n_labels or {"ner": 9, "pos": 17}
    counts: dict[str, list[int]] = {}
    for name in methods:
        method, settings = find_method(name), override(config, [f"method={name}"])
        counts[name] = []
        for n in n_languages:
            languages = tuple(f"language-{i}" for i in range(n))
            labels = {task: tuple(f"label-{i}" for i in range(size)) for task, size in sizes.items()}
            cells = [Cell(task, language) for task in sizes for language in languages]
            with torch.device("meta"):
                counts[name].append(
                    n_parameters(method.build(Inventory(labels, languages), cells, n_features, settings))
                )
    return counts
