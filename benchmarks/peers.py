"""A plain CRF trained on the sentences that cells were adapted to: `python benchmarks/peers.py RUN --out FILE`.

RUN is a run folder of configs/few_shot.yaml. For every unseen cell, number of sentences and order in it, a CRF
(sklearn-crfsuite: the word, its first and last one to three letters, its shape, the words beside it, and transitions)
learns from the same sentences and is scored on the same test sentences by the same scorer. Prints means by task and
number of sentences, beside those of each method, and in how many cells the method is at or above the CRF.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import sklearn_crfsuite

from crossfill.adaptation.curves import random_order
from crossfill.encoders.cues import LETTERS, shape
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Task
from crossfill.grid.text_keys import sentence_hashes
from crossfill.measures.metrics import score
from crossfill.studies.run_folder import open_results
from crossfill.studies.study import load_study_grid, parse_study


def features(words: Sequence[str]) -> list[dict[str, str]]:
    """What a CRF usually reads of each word of a sentence."""
    forms = ["<", *(word.lower() for word in words), ">"]
    rows = []
    for place, word in enumerate(words, start=1):
        form = forms[place]
        row = {"word": form, "shape": shape(word), "before": forms[place - 1], "after": forms[place + 1]}
        row |= {f"ending{n}": form[-n:] for n in LETTERS} | {f"beginning{n}": form[:n] for n in LETTERS}
        rows.append(row)
    return rows


def usable(grid: Grid, cell: Cell) -> tuple[list[Sentence], Corpus]:
    """The sentences of a cell that can be learnt from, in the order of learning curves, and its test data."""
    corpora = [splits for splits in grid[cell] if splits.has_training_data]
    training, test = (Corpus.joined(getattr(splits, name) for splits in corpora) for name in ("training", "test"))
    last = {text: i for i, text in enumerate(sentence_hashes(training)) if len(training[i])}
    tested = set(sentence_hashes(test))
    return [training[i] for text, i in sorted(last.items(), key=lambda item: item[1]) if text not in tested], test


def crf_score(learnt: Sequence[Sentence], test: Corpus, task: Task) -> float:
    """The score of a CRF on test data, from 0 to 1."""
    crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0.05, c2=0.05, max_iterations=100)
    crf.fit([features(sentence.words) for sentence in learnt], [list(sentence.labels) for sentence in learnt])
    column = {label: i for i, label in enumerate(task.labels)}
    found = [column[label] for tags in crf.predict([features(s.words) for s in test]) for label in tags]
    gold = np.array([column[label] for label in test.labels])
    return score(gold, np.array(found), task, test.lengths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    results = open_results(given.run)
    grid = load_study_grid(parse_study(dict(results.study)).data).grid
    points: dict[tuple[str, int, int], dict[str, list[float]]] = {}
    for entry in results.entries:
        for row in results.jobs[entry.job]["few_shot"][entry.method]:
            if row["choice"] == "random" and row["sentences"]:
                methods = points.setdefault((row["cell"], row["sentences"], row["draw"]), {})
                methods.setdefault(entry.method, []).append(row["adapted"])
    done = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    for (name, k, draw), _ in sorted(points.items()):
        key = f"{name} {k} {draw}"
        if key not in done:
            cell = Cell.parse(name)
            sentences, test = usable(grid, cell)
            started, order = time.monotonic(), random_order(len(sentences), draw)
            value = crf_score([sentences[i] for i in order[:k]], test, grid.inventory.task(cell.task))
            done[key] = [value, round(time.monotonic() - started, 2)]
            given.out.write_text(json.dumps(done), encoding="utf-8")
    for task in sorted({Cell.parse(name).task for name, _, _ in points}):
        for k in sorted({k for _, k, _ in points}):
            chosen = [key for key in points if Cell.parse(key[0]).task == task and key[1] == k]
            crf = np.array([done[f"{name} {k} {draw}"][0] for name, _, draw in chosen])
            line = {"task": task, "k": k, "cells": len(chosen), "crf": round(100 * float(crf.mean()), 1)}
            for method in sorted({method for key in chosen for method in points[key]}):
                adapted = np.array([np.mean(points[key][method]) for key in chosen])
                line[method] = [round(100 * float(adapted.mean()), 1), round(float((adapted >= crf).mean()), 3)]
            print(json.dumps(line))


if __name__ == "__main__":
    main()
