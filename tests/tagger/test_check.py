"""Labels are checked by heads that were fitted without their sentence."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import SCALES_FROM_SCRATCH, Fit, predict_with
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.data.folder import load_grid
from crossfill.data.synthetic import SyntheticConfig, synthetic_grid
from crossfill.encoders.cues import cues_of
from crossfill.errors import EncoderError
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.text_keys import sentence_hashes
from crossfill.tagger import check as checking
from crossfill.tagger.check import check, left_out_logits
from tests.data.folders import write
from tests.encoders.tiny import bert


def flipped(corpus: Corpus, share: float, seed: int = 0) -> tuple[Corpus, set[tuple[int, int]]]:
    """Change some labels to any other one; returns which."""
    draws, labels = np.random.default_rng(seed), sorted(corpus.labels.distinct())
    sentences, changed = [], set()
    for i, sentence in enumerate(corpus):
        new = list(sentence.labels)
        for j, label in enumerate(new):
            if draws.random() < share:
                new[j] = draws.choice([other for other in labels if other != label])
                changed.add((i, j))
        sentences.append(replace(sentence, labels=tuple(new), lines=tuple(range(1000 * i, 1000 * i + len(new)))))
    return Corpus.from_sentences(sentences), changed


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    grid = synthetic_grid(SyntheticConfig(train_sentences=120), seed=0).grid
    return grid.training(grid.cells[-1])


def test_flipped_labels_come_first(corpus):
    noisy, changed = flipped(corpus, 0.05)
    cell = Cell("pos", "wol")
    found = check(Grid({cell: (Splits("x", noisy.read_from("file")),)}), most=len(changed))
    hits = [divmod(int(error.where.removeprefix("file:") or 0), 1000) in changed for error in found.errors]
    assert sum(hits) >= 0.7 * len(changed)
    assert sum(hits[: len(hits) // 3]) >= 0.9 * (len(hits) // 3)
    assert found.corpora[0].share == pytest.approx(len(changed) / noisy.n_words, abs=0.02)


def test_labels_as_they_are_have_few_errors(corpus):
    (checked,) = check(Grid({Cell("pos", "wol"): (Splits("x", corpus),)})).corpora
    assert checked.share is not None
    assert checked.share < 0.01


def examples_of(corpus: Corpus, n_features: int = 3) -> Examples:
    labels = {label: i for i, label in enumerate(sorted(corpus.labels.distinct()))}
    given = torch.from_numpy(corpus.labels.positions_in(labels))
    lengths = torch.from_numpy(corpus.lengths)
    features = torch.randn(len(given), n_features, generator=torch.Generator().manual_seed(0))
    return Examples(features, cues_of(corpus), given, lengths, sentence_hashes(corpus))


def test_no_head_has_seen_a_sentence_of_the_same_text(corpus, monkeypatch):
    """Changing all labels of a text, wherever it occurs, changes no logit of its words."""
    first = corpus[0]
    twice = Corpus.from_sentences([*corpus[:40], first, first])
    wrong = replace(first, labels=tuple(reversed(first.labels)))
    changed = Corpus.from_sentences([wrong, *corpus[1:40], wrong, wrong])
    n_labels = len(twice.labels.distinct())
    logits = [left_out_logits(examples_of(one, 0), n_labels).softmax(-1) for one in (twice, changed)]
    words = slice(0, len(first))
    assert float((logits[0][words] - logits[1][words]).abs().mean()) < 0.02  # to the first order
    monkeypatch.setattr(checking, "MOST_WORDS", 100)
    in_parts = left_out_logits(examples_of(twice, 0), n_labels).softmax(-1)
    assert torch.allclose(in_parts[words], in_parts[-len(first) :], atol=1e-4)


def test_logits_are_close_to_those_of_heads_fitted_to_all_other_sentences(corpus):
    examples, n_labels = examples_of(corpus[:30]), len(corpus[:30].labels.distinct())
    logits = left_out_logits(examples, n_labels)
    prior = HeadPrior.at(torch.zeros(n_labels, 4, dtype=torch.float64))
    whole = Fit.of(prior, examples, SCALES_FROM_SCRATCH.variances(examples))
    apart = []
    for out in range(30):
        others = examples.take([i for i in range(30) if i != out])
        fit = Fit(prior, others, whole.variances, whole.known)
        probabilities = predict_with(fit.problem.mode.mean.unsqueeze(0), fit.known, examples.take([out]))
        apart.append(np.abs(logits[examples.words_of([out])].softmax(-1).numpy() - probabilities).ravel())
    assert np.mean(np.concatenate(apart)) < 0.01


def test_what_cannot_be_checked_says_why(corpus):
    few, same = corpus[:5], Corpus.from_sentences(replace(s, labels=("X",) * len(s)) for s in corpus)
    items = Corpus.from_sentences(
        Sentence(s.words, ("a" if i % 2 else "b",), unit="sentence") for i, s in enumerate(corpus)
    )
    cells = {"a": few, "b": same, "c": items}
    found = check(Grid({Cell(task, "wol"): (Splits("x", one),) for task, one in cells.items()}))
    assert [one.share for one in found.corpora] == [None] * 3
    assert [one.problem for one in found.corpora] == [
        "expected 20 sentences or more, got 5",
        "all of its labels are the same",
        "labels of sentences need an --encoder",
    ]
    assert not found.errors


def test_an_encoder_that_stays_frozen_has_features_for_words_and_sentences(corpus, tmp_path):
    lines = [f"{s.text}\t{'sport' if i % 2 else 'news'}\n" for i, s in enumerate(corpus[:40])]
    tagged = "".join("".join(f"{w}\t{t}\n" for w, t in zip(s.words, s.labels, strict=True)) + "\n" for s in corpus[:40])
    write(tmp_path / "data", {"topic/wol/train.tsv": "text\tlabel\n" + "".join(lines), "pos/wol/train.bio": tagged})
    bert(tmp_path / "bert")
    grid = load_grid(tmp_path / "data", cache=False)
    found = check(grid, str(tmp_path / "bert"), cache=False)
    assert all(one.share is not None for one in found.corpora)
    with pytest.raises(EncoderError, match="stays frozen"):
        check(grid, "compact")
