"""Adapted cells: two goes are one, other cells stay as they are, doubt shrinks, and files come back whole."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import crossfill
from crossfill import checkpoint
from crossfill.adaptation.cell import AdaptedCell, adapt_cell
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import CellVariances
from crossfill.adaptation.heads import adapted_cells, generated_prior, with_adapted, without_adapted
from crossfill.adaptation.storage import adapted_path, load_adapted, remove_adapted, save_adapted
from crossfill.encoders.cues import KINDS, NONE
from crossfill.encoders.features import FeatureEncoder
from crossfill.errors import CheckpointError, DataError
from crossfill.grid.cells import Cell
from crossfill.model import Model
from crossfill.prediction.predict import predict_features
from tests.scenarios import INVENTORY, N_FEATURES, SMALL, small_grid, small_model

CELL = Cell("pos", "ccc")
VARIANCES = CellVariances(0.4, 0.4, (0.1, 0, 0, 0, 0))
TASK = INVENTORY.task("pos")


def adapted_to(model: Model, examples: Examples, variances: CellVariances | None = VARIANCES) -> AdaptedCell:
    """The cell, adapted to these sentences."""
    return adapt_cell(generated_prior(model, CELL), examples, CELL, TASK, variances=variances)


def word_cues(numbers: Tensor) -> Tensor:
    """The cues of words with these numbers, and no other cues."""
    cues = torch.full((len(numbers), len(KINDS)), NONE)
    cues[:, 0] = numbers
    return cues


def examples(n_sentences: int, seed: int = 0, start: int = 0) -> Examples:
    """Sentences of four words whose label is the feature with the largest value; all words differ."""
    rng = torch.Generator().manual_seed(seed)
    features = torch.randn(4 * n_sentences, N_FEATURES, generator=rng)
    hashes = tuple(f"{start + i:04}" for i in range(n_sentences))
    labels, numbers = features[:, :4].argmax(1), 1000 * seed + torch.arange(4 * n_sentences)
    return Examples(features, word_cues(numbers), labels, torch.full((n_sentences,), 4), hashes)


@pytest.mark.parametrize("method", ["pf-lr", "pf-d", "jm"])
def test_adapting_in_two_goes_is_adapting_once(method: str) -> None:
    """As the sentences are kept, the tolerance is that of the solver alone."""
    model = small_model(method)
    first, second = examples(3), examples(4, seed=1, start=3)
    at_once = adapted_to(model, first + second)
    before = adapted_to(model, first)
    after = adapted_to(model, before.examples + second)
    torch.testing.assert_close(after.posterior.mean, at_once.posterior.mean, rtol=1e-9, atol=1e-9)
    backwards = adapted_to(model, second + first)
    torch.testing.assert_close(backwards.posterior.mean, at_once.posterior.mean, rtol=1e-4, atol=1e-4)
    assert str(at_once) == "adapted, 7 sentences"


@pytest.mark.parametrize("method", ["pf-lr", "jm"])
def test_an_adapted_cell_learns_and_all_others_stay_as_they_are(method: str) -> None:
    model, words = small_model(method), examples(50, seed=9)
    features, cues = words.features.double(), words.cues
    few, many = (adapted_to(model, examples(n)) for n in (2, 60))
    right, doubt = [], []
    for made in (few, many):
        adapted = with_adapted(model, {CELL: made})
        found = predict_features(adapted, features, CELL, 200, cues=cues)
        right.append(float((found.labels == words.labels).double().mean()))
        doubt.append(float(found.mutual_information.mean()))
        for other in (Cell("pos", "bbb"), Cell("ner", "ccc")):
            expected = predict_features(model, features, other, n_samples=0).probabilities
            torch.testing.assert_close(predict_features(adapted, features, other, n_samples=0).probabilities, expected)
        assert adapted_cells(adapted) == {CELL: made}
        assert without_adapted(adapted).heads is model.heads
    before = float((predict_features(model, features, CELL, 0).labels == words.labels).double().mean())
    assert before < right[0] < right[1]
    assert right[1] > 0.7
    assert doubt[1] < doubt[0]


def test_the_last_labels_of_a_sentence_count() -> None:
    old, new = examples(2), examples(1)
    corrected = Examples(new.features, new.cues, (new.labels + 1) % 4, new.lengths, new.hashes)
    both = old + corrected
    assert both.hashes == ("0001", "0000")
    assert both.labels[4:].tolist() == corrected.labels.tolist()


def test_methods_that_vote_are_refused() -> None:
    with pytest.raises(DataError, match="votes"):
        generated_prior(small_model("bea"), CELL)


def test_files_come_back_whole_and_can_be_removed(tmp_path: Path) -> None:
    model = small_model()
    made = adapted_to(model, examples(5))
    (tmp_path / checkpoint.WEIGHTS).write_bytes(b"of this model")
    path = save_adapted(tmp_path, made)
    assert path == adapted_path(tmp_path, CELL)
    found = load_adapted(tmp_path, model)[CELL]
    assert (found.examples.hashes, found.variances, found.date) == (made.examples.hashes, made.variances, made.date)
    torch.testing.assert_close(found.posterior.mean, made.posterior.mean)
    draws = [one.posterior.sample(3, torch.Generator().manual_seed(0)) for one in (made, found)]
    torch.testing.assert_close(draws[0], draws[1], rtol=1e-4, atol=1e-4)
    more = [adapted_to(model, one.examples + examples(2, 5, 50)) for one in (made, found)]
    torch.testing.assert_close(more[0].posterior.mean, more[1].posterior.mean)
    remove_adapted(tmp_path, CELL)
    assert load_adapted(tmp_path, model) == {}
    with pytest.raises(CheckpointError, match="found none"):
        remove_adapted(tmp_path, CELL)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    model = small_model()
    made = adapted_to(model, examples(2))
    (tmp_path / checkpoint.WEIGHTS).write_bytes(b"of this model")
    path = save_adapted(tmp_path, made)
    tensors, notes = checkpoint.read_tensors(path)
    for changed in (
        {"mean": tensors["mean"][:, 1:]},
        {"scale": tensors["scale"] * float("nan")},
        {"scale": -tensors["scale"]},
        {"curvature/feature_values": -tensors["curvature/feature_values"]},
        {"labels": tensors["labels"] + 7},
        {"lengths": tensors["lengths"] + 1},
    ):
        checkpoint.write_tensors(path, tensors | changed, notes)
        with pytest.raises(CheckpointError, match=next(iter(changed))):
            load_adapted(tmp_path, model)
    for wrong in (float("nan"), float("inf"), -1.0):
        for values in (
            *({"variances": notes["variances"] | {name: wrong}} for name in ("weights", "bias", "share")),
            {"variances": notes["variances"] | {"cues": [wrong, 0, 0, 0, 0]}},
            {"temperature": wrong},
        ):
            checkpoint.write_tensors(path, tensors, notes | values)
            with pytest.raises(CheckpointError, match=r"expected (finite )?numbers"):
                load_adapted(tmp_path, model)
    for values in ({"shift": float("nan")}, {"variances": {"none_label": 99}}):
        more = {"variances": notes["variances"] | values["variances"]} if "variances" in values else values
        checkpoint.write_tensors(path, tensors, notes | more)
        with pytest.raises(CheckpointError, match=r"expected (finite numbers|0 to 3)"):
            load_adapted(tmp_path, model)
    checkpoint.write_tensors(path, tensors, notes | {"cell": "pos/xxx"})
    with pytest.raises((CheckpointError, DataError), match="xxx"):
        load_adapted(tmp_path, model)


def test_a_cell_of_another_model_is_refused(tmp_path: Path) -> None:
    model = small_model()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / checkpoint.WEIGHTS).write_bytes(name.encode())
        path = save_adapted(tmp_path / name, adapted_to(model, examples(2)))
        assert CELL in load_adapted(tmp_path / name, model)
    path.write_bytes(adapted_path(tmp_path / "one", CELL).read_bytes())
    with pytest.raises(CheckpointError, match=r"got one of another model; delete it"):
        load_adapted(tmp_path / "other", model)


def test_draws_of_an_adapted_head_have_a_share_of_the_covariance() -> None:
    model = small_model("jm")
    made = adapted_to(model, examples(10), replace(VARIANCES, share=0.2))
    assert made.posterior.share == 0.2
    draws = with_adapted(model, {CELL: made}).heads.sample([CELL], 4000, torch.Generator().manual_seed(0))[0]
    whole = replace(made.posterior, share=1.0).sample(4000, torch.Generator().manual_seed(1))[..., : N_FEATURES + 1]
    expected = made.posterior.share * whole.var(0)
    torch.testing.assert_close(draws.head.parameters.var(0), expected, rtol=0.2, atol=1e-6)


def test_adapting_through_hidden_layers_is_adapting_over_what_they_compute() -> None:
    """Against a model without hidden layers over features that were computed by hand."""
    grid = small_grid()[0].grid
    config = SMALL.change({"method": "jm", "heads.hidden": [24, 16]})
    tagger = crossfill.train(grid, config=config)
    model, cell = tagger.model, next(cell for cell in tagger.cells if cell.task == "pos")
    task, text = model.inventory.task("pos"), grid[cell][0].train[:8]
    found = tagger.adapt(text, cell)
    with torch.inference_mode():
        features = model.encoder(model.encoder.prepare(text, cell.language))
        for layer in model.hidden[model.inventory.task_index("pos")][::2]:
            features = (features @ layer.weight.T + layer.bias).clamp(min=0)
    examples = Examples.of(model, cell, text)
    torch.testing.assert_close(examples.features, features.float())
    plain = Model(FeatureEncoder(16), model.heads, model.inventory, model.seen).eval()
    over = Examples(features.float(), examples.cues, examples.labels, examples.lengths, examples.hashes)
    expected = adapt_cell(generated_prior(plain, cell), over, cell, task)
    torch.testing.assert_close(found.posterior.mean, expected.posterior.mean, rtol=1e-4, atol=1e-4)
    with_cells = with_adapted(plain, {cell: expected})
    expected_labels = predict_features(with_cells, features, cell, 0, cues=examples.cues)
    tagged = [tagger.tag(list(sentence.words), cell, samples=0).probabilities for sentence in text]
    torch.testing.assert_close(
        torch.cat([torch.as_tensor(one) for one in tagged]).float(),
        expected_labels.probabilities.float(),
        rtol=1e-3,
        atol=1e-3,
    )
