"""Learning curves: the score of a cell by the number of labelled sentences, adapted and from scratch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from crossfill.adaptation.cell import shifted
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import NOTHING_KNOWN, SCALES_FROM_SCRATCH, Fit, default_scales, predict_with
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.heads import generated_prior
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task
from crossfill.measures import uncertainty
from crossfill.measures.metrics import score
from crossfill.model import Model
from crossfill.prediction.rules import Rule

BUDGETS = (0, 1, 2, 5, 10, 20, 40, 80, 160)
MOST_AVERAGED = 20
"""Sentences up to which curves have averaged prediction, which takes most of the time."""
SAMPLES = 32
"""Draws of a head that averaged prediction takes in a curve."""
VALID = Rule()


@dataclass(frozen=True)
class CurvePoint:
    """What a head does after some labelled sentences, on test data; scores are from 0 to 1."""

    sentences: int
    draw: int
    """Number of the order in which sentences come."""
    words: int
    adapted: float
    """Score with the posterior's mean; at 0 sentences, zero-shot."""
    scratch: float | None
    """Score of a head that starts from zero; none where it was not asked for, and at 0 sentences."""
    nll: float
    """Per word, with the posterior's mean."""
    ece: float
    """Calibration error, with the posterior's mean."""
    averaged_nll: float | None = None
    """Of averaged prediction; none where it was not asked for, as the next."""
    averaged_ece: float | None = None


@dataclass(frozen=True)
class Curve:
    """A cell whose learning curves are drawn: its generated head, and sentences to learn from and to score."""

    generated: HeadPrior
    labelled: Examples
    test: Examples
    task: Task
    rule: Rule = VALID
    """How labels are chosen before any sentence is learnt from."""

    @classmethod
    def of(cls, model: Model, cell: Cell, labelled: Examples, test: Examples, rule: Rule = VALID) -> "Curve":
        """`model` is the model before any adaptation. Sentences that are in `test` are not learnt from."""
        tested = set(test.hashes)
        labelled = labelled.take([i for i, text in enumerate(labelled.hashes) if text not in tested])
        if not len(labelled):
            raise DataError(f"{cell}: expected labelled sentences that are not test sentences, got none")
        return cls(generated_prior(model, cell), labelled, test, model.inventory.task(cell.task), rule)

    def points(
        self,
        order: Sequence[int],
        draw: int = 0,
        budgets: Sequence[int] = BUDGETS,
        from_scratch: bool = True,
        averaged: bool = True,
    ) -> Iterator[CurvePoint]:
        """Score a head after the first k sentences of an order, for each k that there are enough sentences for.

        from_scratch: Also learn a head that starts from zero.
        averaged: Also measure averaged prediction, up to `MOST_AVERAGED` sentences.
        """
        for k in budgets:
            if k <= len(order):
                few = self.labelled.take(order[:k])
                yield self.score_after(few, draw, from_scratch and k > 0, averaged and 0 < k <= MOST_AVERAGED)

    @torch.no_grad()
    def score_after(self, few: Examples, draw: int, from_scratch: bool, averaged: bool) -> CurvePoint:
        """Score a head that was adapted to a few sentences, or to none, on the test sentences."""
        known, mean, rule, scratch, of_draws = NOTHING_KNOWN, self.generated.mean, self.rule, None, (None, None)
        if len(few):
            fit = Fit.of(self.generated, few, default_scales(self.generated, self.task).variances(few))
            known, rule = fit.known, shifted(rule, fit, self.task)
            if averaged:
                posterior = fit.posterior()
                mean = posterior.mean
                generator = torch.Generator().manual_seed(draw)
                of_draws = self._calibration(predict_with(posterior.sample(SAMPLES, generator), known, self.test))
            else:
                mean = fit.approximate_mean()
            if from_scratch:
                zero = HeadPrior.at(torch.zeros_like(self.generated.mean))
                alone = Fit.of(zero, few, SCALES_FROM_SCRATCH.variances(few))
                parameters = alone.approximate_mean().unsqueeze(0)
                scratch_rule = shifted(self.rule, alone, self.task)
                scratch = self._score(predict_with(parameters, alone.known, self.test), scratch_rule)
        plug_in = predict_with(mean.unsqueeze(0), known, self.test)
        adapted = self._score(plug_in, rule)
        return CurvePoint(len(few), draw, few.n_labelled, adapted, scratch, *self._calibration(plug_in), *of_draws)

    def _calibration(self, probabilities: Float[np.ndarray, "words labels"]) -> tuple[float, float]:
        known = self.test.labels.numpy() >= 0
        gold, probabilities = self.test.labels.numpy()[known], probabilities[known]
        bins = uncertainty.reliability(probabilities.max(-1), probabilities.argmax(-1) == gold)
        return uncertainty.nll(probabilities, gold), bins.error()

    def _score(self, probabilities: Float[np.ndarray, "words labels"], rule: Rule) -> float:
        lengths = self.test.lengths.numpy()
        chosen = rule.choose(probabilities, lengths, self.task)
        return score(self.test.labels.numpy(), chosen, self.task, lengths)


def random_order(n_sentences: int, draw: int) -> list[int]:
    """Return a random order of sentences, the same for the same draw."""
    return np.random.default_rng(draw).permutation(n_sentences).tolist()
