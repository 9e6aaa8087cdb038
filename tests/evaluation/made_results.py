"""Results made by hand: three methods on five corpora."""

from crossfill.evaluation.results import CellResult
from crossfill.grid.cells import Cell

MEASURES = ("nll", "brier", "ece", "ece_adaptive", "aurc", "entropy", "mutual_information")


def result(cell: str, score: float, corpus: str = "c", seen: bool = False, entropies: list[float] | None = None):
    """A result with a score, and ten sentences of which that share is right."""
    name = "span_f1" if cell.startswith("ner") else "accuracy"
    measures = {"score": score, name: score} | dict.fromkeys(MEASURES, 0.5)
    counts = [[1, 1, 1]] * round(10 * score) + [[0, 1, 1]] * (10 - round(10 * score))
    bins = {"count": [10], "confidence": [0.9], "accuracy": [score]}
    return CellResult(
        Cell.parse(cell), corpus, seen, 10, 10, measures, measures, {}, entropies or [1 - score], bins, [], counts
    )


def run(*scores: float) -> list[CellResult]:
    """pos in aaa (two treebanks), bbb, ccc; ner in ddd."""
    names = (("pos/aaa", "one"), ("pos/aaa", "two"), ("pos/bbb", "c"), ("pos/ccc", "c"), ("ner/ddd", "c"))
    return [result(cell, value, corpus) for (cell, corpus), value in zip(names, scores, strict=True)]


def trainings(*runs: list[CellResult]) -> dict[tuple[str, int], list[CellResult]]:
    """These results by training: one partition, a seed each."""
    return {("random", seed): found for seed, found in enumerate(runs)}


RUNS = {
    "pf-lr": trainings(run(0.8, 0.5, 0.6, 0.4, 0.5), run(0.6, 0.5, 0.6, 0.4, 0.3)),
    "pf-d": trainings(run(0.6, 0.6, 0.6, 0.2, 0.6), run(0.6, 0.6, 0.6, 0.2, 0.6)),
    "jm": trainings([*run(0.5, 0.5, 0.5, 0.5, 0.5), result("pos/eee", 1.0, seen=True)], run(0.5, 0.5, 0.5, 0.5, 0.5)),
}
