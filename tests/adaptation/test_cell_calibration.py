"""What is a cell's own, from sentences left out: against what was drawn, and against scores counted by hand."""

import numpy as np
import pytest
import torch

from crossfill.adaptation.cell import (
    CAUTION,
    CellCalibration,
    adapt_cell,
    calibrate_cell,
    gain_of,
    offset_shift,
    shrunk_shift,
    shrunk_temperature,
)
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import CellVariances, Fit
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.heads import generated_prior
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task, Unit
from crossfill.measures.metrics import score
from crossfill.prediction.calibration import TaskCalibration
from crossfill.prediction.rules import Rule, Sample
from tests.adaptation.test_cell import word_cues
from tests.scenarios import small_model

TASK = Task("ner", ("B-LOC", "I-LOC", "O"))
PLACE = Task("ner", ("B-LOC", "O"))
VARIANCES = CellVariances(1.0, 0.01)


def believed(n_sentences: int, doubt: float) -> Sample:
    """Sentences of two words, a name in the first of every other one, and `doubt` added to the logit of O."""
    rng = np.random.default_rng(0)
    gold = np.array([[sentence % 2, 1] for sentence in range(n_sentences)]).ravel()
    logits = np.zeros((len(gold), 2))
    logits[np.arange(len(gold)), gold] = 2.0 + rng.normal(size=len(gold))
    logits[:, 1] += doubt
    odds = np.exp(logits)
    return Sample(odds / odds.sum(1, keepdims=True), gold, np.full(n_sentences, 2))


@pytest.mark.parametrize("right", [True, False])
def test_what_sentences_have_gained_is_what_one_counts_without_each_of_them(right: bool):
    """Heads that know the others do better where labels follow the features, and worse where they do not."""
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.normal(size=(24, 3)))
    head = torch.tensor([[2.0, 0, 0, 0], [-2.0, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    of_head = torch.from_numpy((features.numpy() @ head[:, :3].numpy().T).argmax(1))
    labels = torch.from_numpy(rng.permutation(of_head.numpy())) if not right else (features[:, 1] > 0).long()
    task = Task("pos", ("A", "B", "C"))
    lengths = torch.full((12,), 2)
    examples = Examples(features, word_cues(torch.arange(24)), labels, lengths, tuple(map(str, range(12))))
    fit = Fit.of(HeadPrior.at(head), examples, CellVariances(4.0, 1.0))
    gain = gain_of(fit, task, Rule(), 0.0)
    hits = [
        (logits.argmax(1) == labels).numpy().reshape(12, 2).sum(1)
        for logits in (fit.generated_logits, fit.leave_out_logits)
    ]
    assert gain.before == pytest.approx(hits[0].sum() / 24)
    assert gain.after == pytest.approx(hits[1].sum() / 24)
    without = [(hits[1].sum() - hits[1][i] - hits[0].sum() + hits[0][i]) / 22 for i in range(12)]
    assert gain.error == pytest.approx(np.sqrt(11 / 12 * np.var(without) * 12))
    assert gain.is_loss == (gain.before - gain.after > gain.error)
    if right:
        assert gain.after > gain.before + gain.error


def test_temperatures_are_shrunk_to_that_of_the_task():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2000, 5))
    gold = np.array([rng.choice(5, p=np.exp(row) / np.exp(row).sum()) for row in logits])
    sure = 2 * logits
    sure -= np.log(np.exp(sure).sum(-1, keepdims=True))
    assert shrunk_temperature(sure, gold, of_task=1.0) == pytest.approx(2.0, rel=0.1)
    assert shrunk_temperature(sure[:3], gold[:3], of_task=1.3) == pytest.approx(1.3, rel=0.15)


@pytest.mark.parametrize("of_task", [0.0, -0.5])
@pytest.mark.parametrize("doubt", [-1.6, 0.0, 1.6])
def test_many_sentences_move_decisions_to_where_their_own_f1_is_best(doubt: float, of_task: float):
    sample = believed(400, doubt)

    def f1(offset: float) -> float:
        weights = np.log(sample.probabilities) + np.array([0.0, offset])
        found, gold = weights.argmax(1) == 0, sample.gold == 0
        return 2 * (found & gold).sum() / (found.sum() + gold.sum())

    tried = np.linspace(-2, 2, 21)
    best = tried[np.argmax([400 * f1(of_task + shift) - CAUTION * shift**2 for shift in tried])]
    assert shrunk_shift(sample, PLACE, Rule(of_task)) == pytest.approx(best)
    assert best == pytest.approx(-doubt - of_task, abs=0.7)


def test_few_sentences_move_decisions_little_and_none_not_at_all():
    few, many = (abs(shrunk_shift(believed(n, 1.6), PLACE, Rule())) for n in (4, 400))
    assert few < many
    empty = Sample(np.full((4, 2), 0.5), np.ones(4, dtype=np.int64), np.array([2, 2]))
    assert shrunk_shift(empty, PLACE, Rule()) == 0.0


def cell_with_names(n_sentences: int) -> Examples:
    """Sentences of three words whose second is a name where its first feature is large; no words are shared."""
    features = torch.randn(3 * n_sentences, 8, generator=torch.Generator().manual_seed(1))
    labels = torch.full((len(features),), 2)
    labels[1::3][features[1::3, 0] > 0.5] = 0
    cues = word_cues(torch.arange(len(features)))
    return Examples(features, cues, labels, torch.full((n_sentences,), 3), tuple(f"{i:03}" for i in range(n_sentences)))


def test_a_cell_decides_where_its_left_out_sentences_say():
    examples = cell_with_names(60)
    fit = Fit.of(HeadPrior.at(torch.zeros(3, 9, dtype=torch.float64)), examples, VARIANCES)
    probabilities, gold, lengths = (
        fit.leave_out_logits.softmax(-1).numpy(),
        examples.labels.numpy(),
        examples.lengths.numpy(),
    )
    values = {
        s: 60 * score(gold, Rule(0.3 + s).choose(probabilities, lengths, TASK), TASK, lengths) - CAUTION * s**2
        for s in np.linspace(-2, 2, 21).tolist()
    }
    shift = offset_shift(fit, TASK, Rule(0.3))
    assert values[min(values, key=lambda tried: abs(tried - shift))] == max(values.values())
    assert shift != 0
    task = TaskCalibration(1, 1, 1.5, (), (), offsets={"f1": 0.3})
    assert calibrate_cell(fit, TASK, task).shift == shift
    assert calibrate_cell(fit, Task("topic", TASK.labels, Unit.SENTENCE), task).shift == 0.0  # a topic may be called O
    assert calibrate_cell(fit, Task("pos", ("ADJ", "NOUN", "VERB")), task) == CellCalibration(
        calibrate_cell(fit, TASK, task).temperature, 0.0
    )


def test_what_is_given_is_not_looked_for():
    cell, given = Cell("ner", "aaa"), CellCalibration(1.3, -0.4)
    model = small_model("jm")
    task = model.inventory.task("ner")
    features = torch.randn(8, model.encoder.n_features, generator=torch.Generator().manual_seed(2))
    examples = Examples(features, word_cues(torch.arange(8)), torch.zeros(8).long(), torch.full((2,), 4), ("a", "b"))
    made = adapt_cell(generated_prior(model, cell), examples, cell, task, variances=VARIANCES, calibration=given)
    assert made.calibration == given
