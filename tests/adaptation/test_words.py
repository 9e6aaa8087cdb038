"""Words that a cell knows by heart, and tasks that a model does not know, against naive computations."""

from pathlib import Path

import pytest
import torch

import crossfill
from crossfill.adaptation.cell import adapt_cell
from crossfill.adaptation.curves import Curve, random_order
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import Design
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.heads import with_adapted
from crossfill.adaptation.laplace import Problem
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.widths import Width
from crossfill.adaptation.words import MOST_WORDS, WordedEncoder, lexicon, word_numbers
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Column, Corpus, Sentence
from crossfill.prediction.predict import predict_features
from tests.adaptation.test_cell import CELL, LABELS
from tests.scenarios import N_FEATURES, SMALL, small_grid, small_model


def some_words(n: int, seed: int = 0, forms: int = 6) -> Examples:
    """Words whose features are noise and whose label follows from their form alone."""
    rng = torch.Generator().manual_seed(seed)
    features = torch.randn(n, N_FEATURES + 1, generator=rng)
    features[:, -1] = torch.randint(forms, (n,), generator=rng)
    hashes = tuple(f"{seed}-{i}" for i in range(n // 4))
    return Examples(features, features[:, -1].long() % 4, torch.full((n // 4,), 4), hashes)


def test_numbers_are_of_forms_and_whole_in_single_precision() -> None:
    numbers = word_numbers(Column.of(["Dakar", "dakar", "DAKAR", "mooy", ""]))
    assert numbers[0] == numbers[1] == numbers[2] != numbers[3]
    assert (numbers == numbers.round()).all()
    assert numbers.max() < 2**24
    many = torch.cat([torch.arange(2 * MOST_WORDS).float(), torch.tensor([7.0, 7.0])])
    assert len(lexicon(many)) == MOST_WORDS
    assert 7 in lexicon(many)
    assert lexicon(many[:0]).tolist() == []


def test_a_worded_encoder_adds_a_column_and_nothing_else() -> None:
    from crossfill.encoders.build import build_encoder

    inner = build_encoder(SMALL, ("aaa", "bbb")).eval()
    encoder, corpus = WordedEncoder(inner).eval(), Corpus.from_text([Sentence(("a", "B")), Sentence(("b",))])
    inputs = encoder.prepare(corpus, "aaa")
    found = encoder(inputs)
    torch.testing.assert_close(found[:, :-1], inner(inner.prepare(corpus, "aaa")))
    assert found[1, -1] == found[2, -1]
    torch.testing.assert_close(encoder(inputs.take(torch.tensor([1]))), found[2:])
    torch.testing.assert_close(encoder(encoder.recentred(inputs, "bbb").followed_by([inputs]))[3:], found)


def test_words_are_learnt_by_heart_and_looked_up_as_a_naive_loop_would() -> None:
    model, learnt, test = small_model("jm"), some_words(80), some_words(60, seed=1, forms=8)
    width = Width(0.01, 0.01, 9.0)
    made = adapt_cell(model.heads, learnt, CELL, LABELS, width)
    assert made.lexicon.tolist() == list(range(6))
    adapted = with_adapted(model, {CELL: made})
    found = predict_features(adapted, test.features.double(), CELL, n_samples=0)
    known = test.features[:, -1] < 6
    assert float((found.labels == test.labels)[known].double().mean()) > 0.95
    without = adapt_cell(model.heads, learnt, CELL, LABELS, Width(0.01, 0.01, 0.0))
    assert not len(without.lexicon)
    for place, row in enumerate(test.features.double()):
        logits = made.posterior.mean[:, : N_FEATURES + 1] @ torch.cat([row[:-1], torch.ones(1)])
        if int(row[-1]) in made.lexicon.tolist():
            logits = logits + made.posterior.mean[:, N_FEATURES + 1 + made.lexicon.tolist().index(int(row[-1]))]
        torch.testing.assert_close(found.probabilities[place], logits.softmax(-1))
    draws = predict_features(adapted, test.features.double(), CELL, n_samples=50)
    assert float(draws.mutual_information[~known].mean()) > 0


def test_a_rough_mean_is_near_the_mode() -> None:
    learnt = some_words(120)
    design = Design.of(learnt.features, learn_words=True)
    mean = torch.randn(4, N_FEATURES + 1, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    prior = Width(0.3, 1.0, 4.0).prior(HeadPrior.at(mean), len(design.lexicon))
    problem = Problem(prior, Categorical(learnt.labels), design(learnt.features))
    torch.testing.assert_close(problem.rough_mode().mean, problem.mode().mean, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("method", ["jm", "jm-deep"])
def test_a_curve_begins_at_zero_shot_and_ends_where_adapting_does(method: str) -> None:
    model, learnt, test = small_model(method), some_words(160), some_words(80, seed=1)
    curve = Curve.of(model, CELL, learnt, test)
    points = list(curve.points(random_order(len(learnt), 0), 0, (0, 1, 40, 999)))
    assert [point.sentences for point in points] == [0, 1, 40]
    expected = predict_features(model, test.features[:, :-1].double(), CELL, n_samples=0).labels
    assert points[0].adapted == pytest.approx(float((expected == test.labels).double().mean()))
    assert points[2].adapted > 0.9 > points[0].adapted
    assert points[2].nll < points[0].nll
    made = adapt_cell(model.heads, learnt, CELL, LABELS)
    found = predict_features(with_adapted(model, {CELL: made}), test.features.double(), CELL, n_samples=0)
    assert points[2].adapted == pytest.approx(float((found.labels == test.labels).double().mean()), abs=0.03)
    assert points[1].averaged_nll is not None
    assert points[0].scratch is None


def test_a_task_that_the_model_does_not_know_is_a_row_of_its_own(tmp_path: Path) -> None:
    synthetic, partition = small_grid()
    tagger = crossfill.train(synthetic.grid, config=SMALL, hold_out=partition.unseen)
    language, other = tagger.model.inventory.languages[:2]
    sentences = [Sentence(("ba", "bo"), ("YES", "NO")), Sentence(("bo", "ba", "ba"), ("NO", "YES", "YES"))]
    made = tagger.adapt(sentences, f"polarity/{language}")
    assert made.labels == ("NO", "YES")
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
    assert "polarity" not in loaded.model.inventory.labels
