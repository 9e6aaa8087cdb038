"""Frozen, fine-tuned and partly frozen encoders: what moves, and what is cached."""

from pathlib import Path

import numpy as np
import pytest
import torch

from crossfill.config import Config
from crossfill.encoders import frozen as frozen_module
from crossfill.encoders.base import build_encoder
from crossfill.encoders.frozen import FrozenEncoder, StoredVectors
from crossfill.errors import ConfigError, DataError, EncoderError
from crossfill.evaluation.results import task_means
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.methods.registry import build_model
from crossfill.model import Model
from crossfill.settings import parse_assignments
from crossfill.tagger.model_folder import load_model
from crossfill.tagger.train import train_model
from tests.encoders.tiny import bert
from tests.own_cache import own_cache as own_cache
from tests.scenarios import SMALL, small_grid

MADE, PARTITION = small_grid()
GRID = MADE.grid
LANGUAGES = GRID.languages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("bert"))


def config(folder: Path, mode: str, *changes: str) -> Config:
    settings = [f"encoder.name={folder}", f"encoder.pretrained.mode={mode}", "encoder.pretrained.max_pieces=60"]
    return SMALL.change(
        {**parse_assignments(settings), "method": "jm", "encoder.pretrained.overlap": 20, **parse_assignments(changes)}
    )


def trained(folder: Path, mode: str, *changes: str) -> Model:
    return train_model(GRID, PARTITION.seen, config(folder, mode, *changes)).model


def start(folder: Path, mode: str, *changes: str) -> dict[str, torch.Tensor]:
    model = build_model(config(folder, mode, *changes), GRID.inventory, PARTITION.seen)
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def test_frozen_features_are_cached_centred_and_saved(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    chosen = config(folder, "frozen", "encoder.pretrained.centring=standard", "encoder.dropout=0", "method=pf-lr")
    model = train_model(GRID, PARTITION.seen, chosen, tmp_path / "model").model
    encoder = model.encoder
    assert isinstance(encoder, FrozenEncoder)
    for language in LANGUAGES[:2]:
        text = [GRID.training(cell) for cell in GRID.cells if cell.language == language]
        vectors = torch.cat([encoder(encoder.prepare(corpus, language)) for corpus in text])
        assert vectors.mean(0).abs().max() < 1e-4
        torch.testing.assert_close(vectors.std(0, correction=0), torch.ones(16), atol=1e-4, rtol=0)
    with pytest.raises(DataError, match="unknown language 'xxx'"):
        encoder.prepare(GRID.training(GRID.cells[0]), "xxx")
    first = evaluate(model, GRID, chosen)

    monkeypatch.setattr(frozen_module, "WordEncoder", None)  # from here on only the cache can answer
    loaded, _ = load_model(tmp_path / "model")
    assert [result.score for result in evaluate(loaded, GRID, chosen)] == [result.score for result in first]
    again = train_model(GRID, PARTITION.seen, chosen).model
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor, atol=0, rtol=0)


def test_centring_uses_training_text_of_unseen_cells_but_no_test_text(folder: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    monkeypatch.setattr(StoredVectors, "of", lambda self, corpus: (asked.append(corpus.text_hash), np.ones((1, 16)))[1])
    encoder = build_encoder(config(folder, "frozen", "encoder.pretrained.centring=mean"), GRID.inventory.languages)
    from crossfill.tagger.train import centre

    centre(encoder, GRID, PARTITION.seen)
    assert sorted(asked) == sorted(GRID.training(cell).text_hash for cell in GRID.cells)


def test_a_model_is_refused_over_another_encoder(folder: Path, tmp_path: Path):
    own = bert(tmp_path / "own")
    chosen = config(own, "frozen")
    model = train_model(GRID, PARTITION.seen, chosen, tmp_path / "model").model
    bert(own, initializer_range=0.5)
    loaded, _ = load_model(tmp_path / "model")
    with pytest.raises(EncoderError, match="expected the weights this model was trained over"):
        evaluate(loaded, GRID, chosen)
    assert model.encoder.n_features == 16


def test_features_too_large_for_float16_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(frozen_module, "_LARGEST", 0.1)
    encoder = build_encoder(config(folder, "frozen"), GRID.inventory.languages)
    with pytest.raises(EncoderError, match="take another layer, or float32"):
        encoder.prepare(GRID.training(GRID.cells[0]))


@pytest.mark.slow
def test_finetuning_moves_the_encoder_and_beats_frozen(folder: Path):
    steps = ["training.steps=100", "training.validate_every=50", "training.cells_per_step=4", "encoder.dropout=0"]
    frozen = trained(folder, "frozen", *steps)
    finetuned = trained(folder, "finetune", *steps, "training.learning_rate=0.003")
    before = start(folder, "finetune")
    moved = [n for n, t in finetuned.state_dict().items() if n.startswith("encoder.") and not torch.equal(t, before[n])]
    assert any("embeddings" in name for name in moved)
    assert all(any(f"layer.{i}." in name for name in moved) for i in range(3))
    scores = [
        np.mean(list(task_means(evaluate(model, GRID, SMALL), seen=True).values())) for model in (frozen, finetuned)
    ]
    assert scores[1] > scores[0] + 0.05, scores


def test_partial_trains_the_layers_from_freeze_below_up(folder: Path):
    model, before = trained(folder, "partial", "training.steps=10"), start(folder, "partial")
    for name, tensor in model.state_dict().items():
        if name.startswith("encoder."):
            stays = "embeddings" in name or "layer.0." in name or "layer.1." in name or "pooler" in name
            assert torch.equal(tensor, before[name]) == stays, name


def test_gradient_checkpointing_changes_nothing_but_memory(folder: Path):
    for mode in ("finetune", "partial"):
        kept, recomputed = (
            trained(folder, mode, "training.steps=3", f"encoder.pretrained.checkpoint_gradients={switch}")
            for switch in (False, True)
        )
        for name, tensor in kept.state_dict().items():
            torch.testing.assert_close(recomputed.state_dict()[name], tensor, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("lower", ["bfloat16", "int8"])
def test_lower_precisions_stay_near_float32(folder: Path, lower: str):
    corpus = Corpus.from_sentences([Sentence(("fox", "Dakar", "mooy"))])
    one, other = (
        torch.from_numpy(
            build_encoder(
                config(folder, "frozen", f"encoder.pretrained.precision={precision}"), GRID.inventory.languages
            )
            .stored.of(corpus)
            .astype(np.float32)
        )
        for precision in ("float32", lower)
    )
    assert 0 < (one - other).abs().max() < 0.2


def test_languages_start_where_their_centroids_place_them(folder: Path, tmp_path: Path):
    """Inner products of anchors rise with the cosine of centroids; they are saved, and refused without centroids."""
    changes = "method=pf-d", "latents.prior=similar", "latents.similarity=[centroid]", "training.steps=2"
    wanted = config(folder, "frozen", *changes, "encoder.pretrained.centring=mean", f"latents.size={len(LANGUAGES)}")
    model = train_model(GRID, PARTITION.seen, wanted, tmp_path / "model").model
    anchors = model.heads.anchors
    centroids = torch.from_numpy(np.stack(list(model.encoder.centroids().values())))
    centred = torch.nn.functional.normalize(centroids - centroids.mean(0))
    pairs = torch.tril_indices(len(LANGUAGES), len(LANGUAGES), -1).unbind()
    found, expected = (anchors @ anchors.T)[pairs], (centred @ centred.T)[pairs]
    assert torch.corrcoef(torch.stack([found, expected]))[0, 1] > 0.8
    loaded, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(loaded.heads.anchors, anchors)
    with pytest.raises(ConfigError, match="centroid needs a frozen encoder"):
        train_model(GRID, PARTITION.seen, config(folder, "frozen", *changes))
