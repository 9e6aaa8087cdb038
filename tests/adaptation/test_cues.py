"""Cues of words that a cell learns, and tasks that a model does not know, against naive computations."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import crossfill
from crossfill.adaptation.curves import Curve, random_order
from crossfill.adaptation.design import MOST, DesignMatrix, learnt_cues
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import CellVariances
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.heads import with_adapted
from crossfill.adaptation.laplace import Categorical, PosteriorProblem
from crossfill.encoders.cues import KINDS, LETTERS, NONE, Cue, cue_numbers, kinds, shape
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Column, Sentence
from crossfill.prediction.predict import predict_features
from tests.adaptation.test_cell import CELL, adapted_to, word_cues
from tests.adaptation.test_fit import noise
from tests.scenarios import N_FEATURES, SMALL, small_grid, small_model


def some_words(n: int, seed: int = 0, forms: int = 6) -> Examples:
    """Words whose features are noise and whose label follows from their form alone."""
    rng = torch.Generator().manual_seed(seed)
    features, numbers = torch.randn(n, N_FEATURES, generator=rng), torch.randint(forms, (n,), generator=rng)
    hashes = tuple(f"{seed}-{i}" for i in range(n // 4))
    return Examples(features, word_cues(numbers), numbers % 4, torch.full((n // 4,), 4), hashes)


def test_cues_are_of_forms_and_the_most_frequent_are_learnt() -> None:
    numbers = cue_numbers(Column.of(["Dakar", "dakar", "DAKAR", "mooy", ""]), np.array([5]))
    word = numbers[:, 0]
    assert word[0] == word[1] == word[2] != word[3]
    many = torch.cat([torch.arange(2 * MOST), torch.tensor([7, 7])]).unsqueeze(1)
    assert len(learnt_cues(many)) == MOST
    assert 7 in learnt_cues(many)
    assert learnt_cues(many[:0]).tolist() == []


def test_cues_are_those_that_a_naive_loop_finds() -> None:
    sentences = [["La", "casas", "casas"], ["mesas"], [], ["las", "mesas", "la"]]
    flat = [word for sentence in sentences for word in sentence]
    numbers = cue_numbers(Column.of(flat), np.array([len(sentence) for sentence in sentences]))
    expected: list[list[tuple[Cue, str] | None]] = []
    for sentence in sentences:
        padded = ["", *(word.lower() for word in sentence), ""]
        for place, word in enumerate(sentence, start=1):
            form = padded[place]
            row: list[tuple[Cue, str] | None] = [(Cue.WORD, form)]
            row += [(Cue.ENDING, form[-n:]) if len(form) > n else None for n in LETTERS]
            row += [(Cue.BEGINNING, form[:n]) if len(form) > n else None for n in LETTERS]
            row += [(Cue.SHAPE, "Xx" if word == "La" else "x")]
            row += [(Cue.NEIGHBOUR, f"{padded[place - 1]} _"), (Cue.NEIGHBOUR, f"_ {padded[place + 1]}")]
            expected.append(row)
    assert numbers.shape == (7, len(KINDS))
    found: dict[tuple[Cue, str], int] = {}
    for row, of_word in zip(expected, numbers.tolist(), strict=True):
        for cue, number in zip(row, of_word, strict=True):
            assert (number == NONE) == (cue is None)
            assert cue is None or found.setdefault(cue, number) == number
    assert len(set(found.values())) == len(found)
    assert all(kind == cue[0] for cue, kind in zip(found, kinds(torch.tensor(list(found.values()))), strict=True))
    names = {number: cue for cue, number in found.items()}
    counts = Counter(cue for row in expected for cue in row if cue is not None)
    learnt = {cue for cue, n in counts.items() if n > 1 or cue[0] in (Cue.WORD, Cue.SHAPE)}
    assert {names[number] for number in learnt_cues(numbers).tolist()} == learnt
    endings = {cue for cue in learnt if cue[0] is Cue.ENDING}
    assert {names[number] for number in learnt_cues(numbers, [Cue.ENDING]).tolist()} == endings


@pytest.mark.parametrize(
    ("word", "expected"),
    [("Dakar", "Xx"), ("USA", "X"), ("Mc-Coy2", "Xx-Xxd"), ("1,5", "d-d"), ("你好", "x"), ("", "")],
)
def test_the_shape_of_a_word_has_each_run_of_characters_once(word: str, expected: str) -> None:
    assert shape(word) == expected


def dense(matrix: DesignMatrix) -> Tensor:
    """X as one matrix."""
    known = torch.zeros(len(matrix), len(matrix.values), dtype=matrix.given.dtype)
    for word, place in zip(matrix.words.tolist(), matrix.places.tolist(), strict=True):
        known[word, place] += matrix.values[place]
    return torch.cat([matrix.given, known], 1)


def test_inputs_multiply_as_their_dense_matrix_does() -> None:
    numbers = cue_numbers(Column.of(["ba", "bo", "ba", "ba", "bo", "bi"]), np.array([2, 4]))
    examples = Examples(noise(6, 3), numbers, torch.zeros(6).long(), torch.tensor([2, 4]), ("a", "b"))
    inputs = DesignMatrix.of(examples, learnt_cues(numbers))
    scaled = inputs.scaled(noise(4 + len(inputs.values), seed=1))
    theta, slopes = noise(2, 4 + len(inputs.values), seed=2), noise(6, 2, seed=3)
    chosen = torch.tensor([4, 0, 1])
    for some in (inputs, scaled, scaled.take(chosen)):
        torch.testing.assert_close(some.times(theta), dense(some) @ theta.T)
        torch.testing.assert_close(some.transpose_product(slopes[: len(some)]), slopes[: len(some)].T @ dense(some))
    torch.testing.assert_close(dense(scaled.take(chosen)), dense(scaled)[chosen])
    torch.testing.assert_close(dense(scaled), dense(inputs) * noise(4 + len(inputs.values), seed=1))
    assert (dense(inputs)[:, 4:].sum(0) >= 1).all()


def test_cues_are_learnt_and_looked_up_as_a_naive_loop_would() -> None:
    model, learnt, test = small_model("jm"), some_words(80), some_words(60, seed=1, forms=8)
    made = adapted_to(model, learnt, CellVariances(0.01, 0.01, (9.0, 0, 0, 0, 0)))
    assert made.known.tolist() == list(range(6))
    adapted = with_adapted(model, {CELL: made})
    features, cues = test.features.double(), test.cues
    found = predict_features(adapted, features, CELL, 0, cues=cues)
    known = cues[:, 0] < 6
    assert float((found.labels == test.labels)[known].double().mean()) > 0.95
    assert not len(adapted_to(model, learnt, CellVariances(0.01, 0.01)).known)
    for place, (row, of_word) in enumerate(zip(features, cues.tolist(), strict=True)):
        logits = made.posterior.mean[:, : N_FEATURES + 1] @ torch.cat([row, torch.ones(1)])
        for number in of_word:
            if number in made.known.tolist():
                logits = logits + made.posterior.mean[:, N_FEATURES + 1 + made.known.tolist().index(number)]
        torch.testing.assert_close(found.probabilities[place], logits.softmax(-1))
    draws = predict_features(adapted, features, CELL, 50, cues=cues)
    assert float(draws.mutual_information[~known].mean()) > 0


def test_the_approximate_mode_is_near_the_mode() -> None:
    learnt = some_words(120)
    known = learnt_cues(learnt.cues, [Cue.WORD])
    mean = torch.randn(4, N_FEATURES + 1, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    prior = CellVariances(0.3, 1.0, (4.0, 0, 0, 0, 0)).prior(HeadPrior.at(mean), known)
    problem = PosteriorProblem(prior, Categorical.of(learnt.labels, 4), DesignMatrix.of(learnt, known))
    torch.testing.assert_close(problem.approximate_mode().mean, problem.mode.mean, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("method", ["jm", "pf-lr"])
def test_a_curve_begins_at_zero_shot_and_ends_where_adapting_does(method: str) -> None:
    model, learnt, test = small_model(method), some_words(160), some_words(80, seed=1)
    curve = Curve.of(model, CELL, learnt, test)
    points = list(curve.points(random_order(len(learnt), 0), 0, (0, 1, 40, 999)))
    assert [point.sentences for point in points] == [0, 1, 40]
    expected = predict_features(model, test.features.double(), CELL, n_samples=0).labels
    assert points[0].adapted == pytest.approx(float((expected == test.labels).double().mean()))
    assert points[2].adapted > 0.9 > points[0].adapted
    assert points[2].nll < points[0].nll
    made = adapted_to(model, learnt, None)
    found = predict_features(with_adapted(model, {CELL: made}), test.features.double(), CELL, 0, cues=test.cues)
    assert points[2].adapted == pytest.approx(float((found.labels == test.labels).double().mean()), abs=0.03)
    assert points[1].averaged_nll is not None
    assert points[0].scratch is None


def test_a_task_that_the_model_does_not_know_is_a_row_of_its_own(tmp_path: Path) -> None:
    synthetic, partition = small_grid()
    tagger = crossfill.train(synthetic.grid, config=SMALL, hold_out=partition.unseen)
    language, other = tagger.model.inventory.languages[:2]
    sentences = [Sentence(("ba", "bo"), ("YES", "NO")), Sentence(("bo", "ba", "ba"), ("NO", "YES", "YES"))]
    made = tagger.adapt(sentences, f"polarity/{language}")
    assert made.task.labels == ("NO", "YES")
    assert tagger.tag(["ba", "bo"], f"polarity/{language}").labels == ("YES", "NO")
    assert len(tagger.tag(["ba"], f"polarity/{other}").labels) == 1
    assert Cell("polarity", other) in tagger.cells
    loaded = crossfill.load(tagger.save(tmp_path / "model"))
    assert loaded.tag(["ba", "bo"], f"polarity/{language}").labels == ("YES", "NO")
    with pytest.raises(DataError, match="unknown label 'MAYBE'"):
        loaded.adapt([Sentence(("be",), ("MAYBE",))], f"polarity/{other}")
    loaded.adapt([Sentence(("ba", "bu"), ("NO", "YES"))], f"polarity/{other}")
    assert loaded.tag(["bu"], f"polarity/{other}").labels == ("YES",)
    with pytest.raises(DataError, match="unknown cell"):
        loaded.adapt(sentences, "polarity/zzz")
    for name in (language, other):
        loaded.forget(f"polarity/{name}")
    assert "polarity" not in loaded.model.inventory.tasks
