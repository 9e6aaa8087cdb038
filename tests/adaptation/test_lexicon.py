"""A lexicon as evidence: the mode against a naive objective; what sentences say wins; both together, saved and read."""

import pytest
import torch
from torch import Tensor

from crossfill.adaptation.cell import adapt_cell
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import CellVariances, Fit, predict_with
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.lexicon import BONUS, WEIGHT, Lexicon
from crossfill.encoders.cues import KINDS, NONE, cue_numbers
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Column
from crossfill.grid.task import Task

N_FEATURES, TASK = 3, Task("pos", ("ADJ", "NOUN", "VERB"))
VARIANCES = CellVariances(0.5, 0.5, (4.0, 1.0, 1.0, 1.0, 1.0))
FORMS = ["dem", "xale", "baax", "lekk"]
ALLOWED = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=torch.bool)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def listed() -> Lexicon:
    cues = cue_numbers(Column.of(FORMS), torch.ones(len(FORMS), dtype=torch.long).numpy())
    cues[:, -2:] = NONE
    return Lexicon(noise(len(FORMS), N_FEATURES, seed=1).float(), cues, ALLOWED)


def sentences(words: list[str], labels: list[int]) -> Examples:
    n = len(words)
    cues = cue_numbers(Column.of(words), torch.tensor([n]).numpy())
    return Examples(noise(n, N_FEATURES, seed=2).float(), cues, torch.tensor(labels), torch.tensor([n]), ("one",))


def generated() -> HeadPrior:
    return HeadPrior.at(noise(3, N_FEATURES + 1, seed=3))


def test_the_mode_has_no_slope_in_a_naive_objective() -> None:
    """Every part written out: a column for each cue, a prior for each weight, the targets of each listed word."""
    few, lexicon, prior = sentences(["dem", "na", "baax"], [1, 0, -1]), listed(), generated()
    fit = Fit.of(prior, few, VARIANCES, lexicon)
    known = fit.known.tolist()
    words = {int(cue): row for cue, row in zip(lexicon.cues[:, 0], ALLOWED, strict=True)}
    assert set(words) <= set(known)
    centre = torch.zeros(3, N_FEATURES + 1 + len(known), dtype=torch.float64)
    centre[:, : N_FEATURES + 1] = prior.mean
    for place, cue in enumerate(known):
        if cue in words:
            centre[:, N_FEATURES + 1 + place] = BONUS * words[cue].double()
    variance = torch.tensor([0.5] * (N_FEATURES + 1) + [VARIANCES.cues[cue // 2**24] for cue in known]).double()

    def logits(theta: Tensor, features: Tensor, cues: list[int]) -> Tensor:
        x = torch.zeros(theta.shape[1], dtype=torch.float64)
        x[:N_FEATURES], x[N_FEATURES] = features, 1.0
        for cue in cues:
            if cue in known:
                x[N_FEATURES + 1 + known.index(cue)] = 1.0
        return theta @ x

    theta = fit.posterior().mean.clone().requires_grad_()
    loss = 0.5 * ((theta - centre) ** 2 / variance).sum()
    for features, cues, label in zip(few.features, few.cues.tolist(), few.labels.tolist(), strict=True):
        if label >= 0:
            loss = loss - logits(theta, features, cues).log_softmax(-1)[label]
    for features, cues, allowed in zip(lexicon.features, lexicon.cues.tolist(), ALLOWED, strict=True):
        before = (prior.mean[:, :N_FEATURES] @ features.double() + prior.mean[:, N_FEATURES]).softmax(-1) * allowed
        loss = loss - WEIGHT * (before / before.sum() * logits(theta, features, cues[1:]).log_softmax(-1)).sum()
    (slope,) = torch.autograd.grad(loss, theta)
    assert float(slope.abs().max()) < 1e-4


def test_labels_in_text_win_over_the_lexicon() -> None:
    lexicon, prior = listed(), HeadPrior.at(torch.zeros(3, N_FEATURES + 1, dtype=torch.float64))
    test = sentences(["dem", "xale"], [-1, -1])

    def chosen(n: int) -> list[str]:
        few = sentences(["dem"] * n, [1] * n) if n else Examples.none(N_FEATURES)
        made = adapt_cell(prior, few, Cell("pos", "wol"), TASK, variances=VARIANCES, lexicon=lexicon)
        p = predict_with(made.posterior.mean.unsqueeze(0), made.known, test)
        return [TASK.labels[i] for i in p.argmax(-1)]

    assert chosen(0) == ["VERB", "NOUN"]
    assert chosen(4) == ["NOUN", "NOUN"]


def test_a_word_that_is_listed_again_has_its_later_labels_and_one_in_two_names_those_of_both() -> None:
    lexicon = listed()
    later = Lexicon(lexicon.features[:1], lexicon.cues[:1], ~ALLOWED[:1])
    both = lexicon + later
    assert len(both) == len(lexicon)
    known = both.words.unique()
    place = int(torch.searchsorted(known, lexicon.words[0]))
    assert both.centre(known)[:, place].tolist() == (BONUS * (~ALLOWED[0]).double()).tolist()
    twice = Lexicon(
        lexicon.features[:2],
        torch.stack([lexicon.cues[0], lexicon.cues[0].index_fill(0, torch.tensor([1]), 7)]),
        ALLOWED[:2],
    )
    assert twice.centre(twice.words.unique())[:, 0].tolist() == (BONUS * (ALLOWED[0] | ALLOWED[1]).double()).tolist()


@pytest.mark.parametrize("n", [0, 1])
def test_left_out_words_are_those_of_sentences_only(n: int) -> None:
    few = sentences(["dem", "na"], [1, 0]) if n else Examples.none(N_FEATURES)
    fit = Fit.of(generated(), few, VARIANCES, listed())
    assert fit.leave_out_logits.shape == (2 * n, 3)
    assert listed().after(few).cues.shape == (2 * n + len(FORMS), len(KINDS))
