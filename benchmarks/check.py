"""How many labels that were made wrong `crossfill check` finds: precision among the first hundred, recall at 10 %.

    python benchmarks/check.py DATA --task pos --languages wol,fin,tam --encoder NAME_OR_PATH

In each cell, by itself, a share of the labels is changed to any other of the cell, each as likely. Labels that were
wrong before count as right.
"""

import argparse
import json
from dataclasses import replace

import numpy as np
import torch

from crossfill.data.folder import load_grid
from crossfill.data.splits import capped_grid
from crossfill.grid.cells import Grid, Splits
from crossfill.grid.sentence import Column, Corpus
from crossfill.tagger.check import check


def with_errors(corpus: Corpus, labels: list[str], share: float, draws: np.random.Generator) -> Corpus:
    """Change some labels to any other one; changed words are on line −1."""
    given = corpus.labels.positions_in({label: i for i, label in enumerate(labels)})
    wrong = draws.random(len(given)) < share
    new = np.where(wrong, (given + draws.integers(1, len(labels), len(given))) % len(labels), given)
    lines = np.where(wrong, -1, 1).astype(np.int32)
    return replace(corpus, labels=Column(tuple(labels), new.astype(np.int32)), lines=lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--task", default="pos")
    parser.add_argument("--languages", default="", help="all by default")
    parser.add_argument("--encoder", help="cues of words only by default")
    parser.add_argument("--share", type=float, default=0.05)
    given = parser.parse_args()
    torch.set_num_threads(1)
    grid = capped_grid(load_grid(given.data, tasks=[given.task], seed=0, max_train=300), 60, 150, 0)
    measured = {}
    for cell in grid.cells:
        if given.languages and cell.language not in given.languages.split(","):
            continue
        draws = np.random.default_rng(0)
        labels = sorted({label for splits in grid[cell] for c in splits.parts.values() for label in c.label_counts()})
        noisy = [
            Splits(s.name, **{n: with_errors(c, labels, given.share, draws) for n, c in s.parts.items() if len(c)})
            for s in grid[cell]
        ]
        lines = np.concatenate([c.lines for s in noisy for c in s.parts.values() if len(c)])
        found = check(Grid({cell: tuple(noisy)}), given.encoder, most=len(lines))
        hits = np.array([error.where.endswith("-1") for error in found.errors])
        n_wrong = int((lines < 0).sum())
        measured[cell.language] = {
            "labels": len(lines),
            "wrong": n_wrong / len(lines),
            "estimated": found.corpora[0].share,
            "precision_100": hits[:100].mean(),
            "recall_10": hits[: len(lines) // 10].sum() / max(1, n_wrong),
        }
    names = ("wrong", "estimated", "precision_100", "recall_10")
    means = {name: np.mean([one[name] for one in measured.values()]) for name in names}
    rows = {"mean": means, **measured}
    rounded = {cell: {name: round(float(value), 3) for name, value in row.items()} for cell, row in rows.items()}
    print(json.dumps({"task": given.task, "encoder": given.encoder is not None, **rounded}))


if __name__ == "__main__":
    main()
