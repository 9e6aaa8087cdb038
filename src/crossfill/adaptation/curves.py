"""Learning curves: the score of a cell by the number of labelled sentences, adapted and from scratch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.adaptation.cell import generated_prior
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import affine
from crossfill.adaptation.fit import Fit
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.heads import SHARE, WordedHead
from crossfill.adaptation.laplace import Problem, laplace
from crossfill.adaptation.own import shift_of
from crossfill.adaptation.widths import Width, default_width, fresh_width, mean_square
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task
from crossfill.measures import uncertainty
from crossfill.measures.metrics import score
from crossfill.model import Head, Model
from crossfill.prediction.predict import Run, classify
from crossfill.prediction.rules import Rule

BUDGETS = (0, 1, 2, 5, 10, 20, 40, 80, 160)
MOST_AVERAGED = 20
"""Sentences up to which curves have averaged prediction."""
SAMPLES = 32
"""Draws of a head that averaged prediction takes in a curve."""
VALID = Rule()
_NO_WORDS = torch.zeros(0, dtype=torch.long)


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
    """As the affine head sees them, as are the next."""
    test: Examples
    task: Task
    width: Width | None = None
    rule: Rule = VALID
    """How labels are chosen before any sentence is learnt from."""

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        model: Model,
        cell: Cell,
        labelled: Examples,
        test: Examples,
        width: Width | None = None,
        rule: Rule | None = None,
    ) -> "Curve":
        """`model` is the model before any adaptation. Sentences that are in `test` are not learnt from."""
        known = set(test.hashes)
        labelled = labelled.take([i for i, text in enumerate(labelled.hashes) if text not in known])
        if not len(labelled):
            raise DataError(f"{cell}: expected labelled sentences that are not test sentences, got none")
        body, _ = affine(model.heads.plug_in([cell])[0])
        task = model.inventory.task(cell.task)
        labelled, test = labelled.through(body), test.through(body)
        return cls(generated_prior(model, cell), labelled, test, task, width, rule or VALID)

    @torch.no_grad()
    def points(
        self, order: Sequence[int], draw: int = 0, budgets: Sequence[int] = BUDGETS, whole: bool = True
    ) -> Iterator[CurvePoint]:
        """What the first k sentences of an order are worth, for each k that there are enough sentences for.

        Unless `whole`, no head is learnt from scratch. With it, prediction is averaged, too, up to `MOST_AVERAGED`
        sentences, as that takes most of the time.
        """
        for k in budgets:
            if not k:
                yield self._point(draw, 0, 0, _NO_WORDS, self.generated.mean, self.rule)
            elif k <= len(order):
                few = self.labelled.take(order[:k])
                size = mean_square(few)
                fit = Fit.of(self.generated, few, self.width or default_width(size, self.task.labels))
                known, draws, scratch = fit.design.lexicon, None, None
                rule = self.rule
                if rule.valid:
                    rule = replace(rule, offset=rule.offset + shift_of(fit, self.task, rule.offset))
                if whole and k <= MOST_AVERAGED:
                    posterior = laplace(fit.problem).posterior
                    mean = posterior.mean
                    draws = mean + SHARE**0.5 * (posterior.sample(SAMPLES, torch.Generator().manual_seed(draw)) - mean)
                else:
                    mean = fit.problem.rough_mode().mean
                if whole:
                    nothing = HeadPrior.at(torch.zeros_like(self.generated.mean))
                    prior = fresh_width(size).prior(nothing, known)
                    alone = Problem(prior, fit.problem.likelihood, fit.problem.matrix).rough_mode().mean
                    scratch = self._score(self._predicted(known, alone.unsqueeze(0)), VALID)
                yield self._point(draw, k, len(few.labels), known, mean, rule, draws, scratch)

    def _point(
        self,
        draw: int,
        sentences: int,
        words: int,
        lexicon: Int[Tensor, "known"],
        mean: Float[Tensor, "labels parameters"],
        rule: Rule,
        draws: Float[Tensor, "samples labels parameters"] | None = None,
        scratch: float | None = None,
    ) -> CurvePoint:
        plug_in = self._predicted(lexicon, mean.unsqueeze(0))
        adapted = self._score(plug_in, rule)
        averaged = self._calibration(self._predicted(lexicon, draws)) if draws is not None else (None, None)
        return CurvePoint(sentences, draw, words, adapted, scratch, *self._calibration(plug_in), *averaged)

    def _predicted(
        self, lexicon: Int[Tensor, "known"], parameters: Float[Tensor, "samples labels parameters"]
    ) -> Float[np.ndarray, "words labels"]:
        """Mean probabilities of the test words over draws of a head that knows some cues by heart."""
        n_affine, given = self.generated.mean.shape[1], parameters.to(self.test.features.dtype)
        head = WordedHead(None, Head(given[..., :n_affine]), lexicon, given[..., n_affine:])
        return classify([Run(self.test.features, head)]).probabilities.numpy()

    def _calibration(self, probabilities: Float[np.ndarray, "words labels"]) -> tuple[float, float]:
        gold = self.test.labels.numpy()
        bins = uncertainty.reliability(probabilities.max(-1), probabilities.argmax(-1) == gold)
        return uncertainty.nll(probabilities, gold), bins.error()

    def _score(self, probabilities: Float[np.ndarray, "words labels"], rule: Rule) -> float:
        lengths = self.test.lengths.numpy()
        chosen = rule.choose(probabilities, lengths, self.task)
        return score(self.test.labels.numpy(), chosen, self.task, lengths)


def random_order(n_sentences: int, draw: int) -> list[int]:
    """A random order of sentences, the same for the same draw."""
    return np.random.default_rng(draw).permutation(n_sentences).tolist()


def learning_curve(
    curve: Curve,
    draws: int = 3,
    budgets: Sequence[int] = BUDGETS,
    report: Callable[[int, str], None] = lambda _done, _note: None,
) -> list[CurvePoint]:
    """The points of some random orders, one after the other."""
    points: list[CurvePoint] = []
    for draw in range(draws):
        for point in curve.points(random_order(len(curve.labelled), draw), draw, budgets):
            report(len(points), f"{point.sentences} sentences")
            points.append(point)
    return points


@dataclass(frozen=True)
class MeanPoint:
    """Means over orders of sentences."""

    sentences: int
    words: float
    adapted: float
    scratch: float | None


def means(points: Sequence[CurvePoint]) -> list[MeanPoint]:
    """The mean over orders of each number of sentences."""
    found = []
    for k in sorted({point.sentences for point in points}):
        own = [point for point in points if point.sentences == k]
        scratch = [point.scratch for point in own if point.scratch is not None]
        found.append(
            MeanPoint(
                k,
                float(np.mean([point.words for point in own])),
                float(np.mean([point.adapted for point in own])),
                float(np.mean(scratch)) if scratch else None,
            )
        )
    return found
