"""What a few labelled sentences are worth in the unseen cells of a study: learning curves of every job."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus
from crossfill.studies.study import FewShotSettings

if TYPE_CHECKING:
    from crossfill.adaptation.curves import Curve
    from crossfill.adaptation.examples import Examples
    from crossfill.config import Config
    from crossfill.model import Model
    from crossfill.prediction.calibration import Calibration


def few_shot_points(
    model: "Model",
    config: "Config",
    grid: Grid,
    unseen: Iterable[Cell],
    settings: FewShotSettings,
    rules: "Calibration | None" = None,
) -> list[dict[str, Any]]:
    """Return the points of the learning curves of every unseen cell with training data of its own, as JSON values.

    Sentences come in random orders, and if asked for in the order of `crossfill annotate`, as far as they have no more
    words than those of the first random order. Scores are of all test data of the cell; `rules` are those of decisions.
    """
    from crossfill.adaptation.curves import Curve, random_order
    from crossfill.adaptation.examples import Examples
    from crossfill.prediction.calibration import rule_for

    if model.heads.vote is not None:
        return []
    rows: list[dict[str, Any]] = []
    for cell in sorted(unseen):
        corpora = [splits for splits in grid[cell] if splits.has_training_data]
        training, test = (Corpus.joined(getattr(s, name) for s in corpora) for name in ("training", "test"))
        if not len(training) or not len(test):
            continue
        rule = rule_for(rules and rules.of(cell.task, 0), config.prediction.decision)
        labelled, scored = (Examples.of(model, cell, corpus) for corpus in (training, test))
        curve = Curve.of(model, cell, labelled, scored, rule)
        n = len(curve.labelled)
        for draw in range(settings.draws):
            points = curve.points(random_order(n, draw), draw, settings.sentences, not draw, not draw)
            rows += [{"cell": str(cell), "choice": "random"} | asdict(point) for point in points]
        if settings.annotate:
            budgets = {row["sentences"]: row["words"] for row in rows if row["cell"] == str(cell) and not row["draw"]}
            order = _annotated(model, config, cell, training, curve)
            for k, words in budgets.items():
                fitting = _within(curve.labelled, order, words)
                for point in curve.points(order, 0, [fitting], False, False) if k else ():
                    rows.append({"cell": str(cell), "choice": "annotate"} | asdict(point) | {"sentences": k})
    return rows


def _annotated(model: "Model", config: "Config", cell: Cell, training: Corpus, curve: "Curve") -> list[int]:
    """Return the sentences that can be learnt from, in the order in which `crossfill annotate` proposes them."""
    from crossfill.grid.text_keys import sentence_hashes
    from crossfill.tagger.annotation import candidates, choose
    from crossfill.tagger.tagger import Tagger

    place = {text: i for i, text in enumerate(curve.labelled.hashes)}
    usable = [
        sentence
        for sentence, text in zip(training, sentence_hashes(training), strict=True)
        if text in place and len(sentence)
    ]
    pool = candidates(Tagger(model, config), usable, cell)
    chosen = [pool.sentences[i] for i in choose(pool, len(pool), cost="words")]
    hashes = sentence_hashes(Corpus.from_text(chosen))
    return [place[text] for text in hashes]


def _within(labelled: "Examples", order: list[int], words: int) -> int:
    """Count how many of the first sentences have at most this many words; one at least."""
    totals = np.cumsum(labelled.lengths.numpy()[order])
    return max(1, int((totals <= words).sum()))
