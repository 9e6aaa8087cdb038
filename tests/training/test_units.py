"""What holds for words holds for sentences and pairs: KL, an unbiased objective, resuming, and adapting."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

import crossfill
from crossfill import checkpoint
from crossfill.encoders.base import pool
from crossfill.encoders.features import FeatureEncoder, FeatureInputs
from crossfill.errors import DataError
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind, Unit
from crossfill.methods.registry import all_methods, build_model
from crossfill.tagger.train import train_model
from crossfill.training.elbo import log_likelihood
from crossfill.training.labelled import Labelled, prepare_grid
from crossfill.training.loop import Trainer
from tests.scenarios import SMALL, mixed_grid

INVENTORY = Inventory.of(
    {"nli": ("no", "yes"), "pos": ("ADJ", "NOUN", "VERB"), "topic": ("O", "B-sport", "_")},
    ("aaa", "bbb"),
    units={"nli": Unit.PAIR, "topic": Unit.SENTENCE},
)
SEEN = [Cell(task, language) for task, language in (("nli", "aaa"), ("pos", "aaa"), ("topic", "bbb"))]
SIZES = {"nli": [2, 3, 1, 4], "pos": [3, 1], "topic": [4, 2, 5]}
GRID = mixed_grid(families=2)
UNSEEN = Cell("theme", GRID.languages[0])
MIXED = frozenset(GRID.cells) - {UNSEEN}


def labelled(cell: Cell) -> Labelled:
    rng, lengths = torch.Generator().manual_seed(0), torch.tensor(SIZES[cell.task])
    unit = INVENTORY.task(cell.task).unit
    n_labels = int(lengths.sum()) if unit is Unit.WORD else len(lengths) // unit.n_sentences
    features = torch.randn(int(lengths.sum()), 4, dtype=torch.float64, generator=rng)
    labels = torch.randint(len(INVENTORY.task(cell.task).labels), (n_labels,), generator=rng)
    return Labelled(FeatureInputs(features, lengths), labels, unit)


def test_a_mixed_step_estimates_the_whole_objective_without_bias():
    """Over all cells and items, by their probabilities, the likelihood of a step is that of all labels, per label."""
    config = SMALL.change({"objective.cell_sampling": "proportional", "training.batch_sentences": 1})
    model = build_model(config, INVENTORY, SEEN, FeatureEncoder(4)).double()
    data = {cell: labelled(cell) for cell in SEEN}
    trainer = Trainer(model, data, {}, config)
    expected_nll = expected_kl = whole_nll = 0.0
    for cell, probability in zip(trainer.sampler.cells, trainer.sampler.probabilities, strict=True):
        own = data[cell]
        for item in range(len(own)):
            torch.manual_seed(7)
            draw = trainer.sampler.draw(0)[0]._replace(
                cell=cell, sentences=np.array([item]), expected_words=len(own.labels) / len(own)
            )
            (objective,) = trainer.objectives([draw])
            expected_nll += probability / len(own) * objective.nll.item()
            expected_kl += probability / len(own) * objective.kl.item()
        torch.manual_seed(7)
        ((head, _),) = model.heads.training_draw([cell], config.objective.samples)
        items = pool(own.inputs.features, own.inputs.lengths, own.unit)
        whole_nll -= log_likelihood(head.log_probabilities(items), own.labels).mean().item()
    n_labels = sum(len(own.labels) for own in data.values())
    assert expected_nll == pytest.approx(whole_nll / n_labels, rel=1e-9)
    posteriors = (model.heads.tasks, model.heads.languages)
    assert expected_kl == pytest.approx(sum(p.kl(torch.arange(len(p.mean))).sum().item() for p in posteriors), rel=1e-9)


def test_the_kl_of_task_vectors_does_not_depend_on_units():
    model = build_model(SMALL, INVENTORY, SEEN, FeatureEncoder(4)).double()
    for row, task in enumerate(INVENTORY.tasks):
        cell = next(cell for cell in SEEN if cell.task == task)
        divergences = model.heads.training_draw([cell], 2)[0].divergences
        mean, variance, factor = (part[0] for part in model.heads.tasks.moments(torch.tensor([row])))
        own = MultivariateNormal(mean, torch.diag(variance) + factor @ factor.T)
        prior = MultivariateNormal(torch.zeros_like(mean), torch.eye(len(mean), dtype=mean.dtype))
        assert divergences[0].value.item() == pytest.approx(kl_divergence(own, prior).item(), rel=1e-6)


@pytest.mark.parametrize("method", sorted(set(all_methods()) - {"jm-kernel"}))
def test_every_method_gives_heads_of_the_width_of_a_unit(method: str):
    model = build_model(SMALL.change({"method": method}), INVENTORY, SEEN, FeatureEncoder(4)).double()
    for cell in SEEN:
        own = labelled(cell)
        logits = model.heads.plug_in([cell])[0].logits(model.features(own.inputs, cell.task))
        assert logits.shape[1:] == (len(own.labels), len(INVENTORY.task(cell.task).labels))


def test_a_mixed_run_stopped_and_resumed_ends_with_the_same_bits(tmp_path: Path):
    def run(folder: Path) -> Trainer:
        model = build_model(SMALL, GRID.inventory, MIXED)
        return Trainer(model, *prepare_grid(model, GRID), SMALL, folder)

    run(tmp_path / "whole").run()
    broken = run(tmp_path / "broken")
    draw = broken.sampler.draw

    def stopping(step: int):
        if step >= 12:
            raise KeyboardInterrupt
        return draw(step)

    broken.sampler.draw = stopping
    with pytest.raises(KeyboardInterrupt):
        broken.run()
    run(tmp_path / "broken").run(resume=True)
    for name in (checkpoint.WEIGHTS, checkpoint.STATE):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_labels_that_look_like_spans_are_classes_of_sentences():
    """The unit comes from the inventory: a topic may be called O."""
    from crossfill.measures.metrics import Labelling

    assert INVENTORY.task("topic").kind is TaskKind.CLASSES
    gold = predicted = np.array([0, 1, 2, 0])
    found = Labelling(
        gold, predicted, Task("topic", ("B-x", "I-x", "O"), Unit.SENTENCE), np.ones(4, dtype=np.int64)
    ).scores()
    assert found == {"score": 1.0, "accuracy": 1.0, "macro_f1": 1.0}


@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_a_mixed_model_is_saved_adapted_and_asked(pooling: str, tmp_path: Path):
    config = SMALL.change({"encoder.sentences": pooling})
    trained = train_model(GRID, MIXED, config, tmp_path)
    tagger = crossfill.load(tmp_path)
    query = tagger.model.encoder.query
    assert (query is None) == (pooling == "mean")
    assert query is None or bool(query.any())
    assert tagger.model.inventory.units == {"theme": Unit.SENTENCE, "change": Unit.PAIR}
    results = {result.cell: result for result in evaluate(trained.model, GRID, config)}
    for cell, result in results.items():
        (splits,) = GRID[cell]
        assert result.n_words == splits.test.n_labels
        assert 0 <= result.plug_in["score"] <= 1
    test = GRID[UNSEEN][0].test
    taggings = list(tagger.tag_many(test, UNSEEN, samples=5))
    assert [len(t) for t in taggings] == [1] * len(test)
    alone = tagger.tag(test[3], UNSEEN, samples=5)
    np.testing.assert_allclose(alone.probabilities, taggings[3].probabilities, atol=1e-6)
    assert sum(alone.distribution(0).values()) == pytest.approx(1, abs=1e-5)
    for cell in (UNSEEN, Cell("change", GRID.languages[1])):
        before = tagger.tag(GRID[cell][0].test[0], cell, samples=0).probabilities
        made = tagger.adapt(GRID.training(cell), cell)
        assert int(made.examples.lengths.sum()) == len(made.examples)
        assert not np.allclose(before, tagger.tag(GRID[cell][0].test[0], cell, samples=0).probabilities)


def test_pairs_are_asked_for_as_pairs():
    tagger = crossfill.Tagger(build_model(SMALL, GRID.inventory, MIXED).eval(), SMALL)
    cell = Cell("change", GRID.languages[0])
    one, two = tagger.tag("ka na\tmi le", cell, samples=0), tagger.tag(("ka na", "mi le"), cell, samples=0)
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    assert one.sentence.second == 2
    for wrong in ("one sentence", ["a", "b", "c"], Sentence(("a", "b")), "a\t "):
        with pytest.raises(DataError, match="expected a pair of sentences"):
            tagger.tag(wrong, cell)
    with pytest.raises(DataError, match="expected a sentence"):
        tagger.tag(one.sentence, UNSEEN)
    with pytest.raises(DataError, match="expected cells that all label pairs"):
        next(tagger.tag_cells(["a\tb"], [cell, UNSEEN]))


@pytest.mark.parametrize("task", ["theme", "change"])
def test_a_new_task_of_sentences_or_pairs_starts_from_its_own_labels(task: str, tmp_path: Path):
    tagger = crossfill.Tagger(build_model(SMALL, GRID.inventory, MIXED).eval(), SMALL)
    known = dict(tagger.model.inventory.units)
    first, other = (Cell("added", language) for language in GRID.languages[:2])
    labelled = GRID.training(Cell(task, GRID.languages[0]))
    made = tagger.adapt(labelled, first)
    assert made.task.unit is labelled.unit
    assert tagger.model.inventory.units == known | {"added": labelled.unit}
    gold = [sentence.labels[0] for sentence in labelled]
    found = [tagging.labels[0] for tagging in tagger.tag_many(labelled, first, samples=0)]
    assert np.mean([one == right for one, right in zip(found, gold, strict=True)]) > 0.6
    loaded = crossfill.load(tagger.save(tmp_path / "model"))
    for cell in (first, other):
        one, same = (each.tag(labelled[0], cell, samples=0).probabilities for each in (tagger, loaded))
        np.testing.assert_allclose(one, same, atol=1e-5)
    loaded.forget(first)
    assert loaded.model.inventory.units == known
    with pytest.raises(DataError, match=r"unknown task .added.|unknown cell"):
        loaded.tag(labelled[0], first)
