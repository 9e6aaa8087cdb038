"""All that is measured of a model on one corpus of a cell."""

from dataclasses import fields

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill import uncertainty
from crossfill.config import Config
from crossfill.experiments.cell_results import CellResult
from crossfill.grid import Cell
from crossfill.metrics import Labelling
from crossfill.model import Model
from crossfill.predict import Prediction, encode, predict_features
from crossfill.sentence import Corpus
from crossfill.training import prepare

STUDY_WORDS, STUDY_SAMPLES = 800, 10
"""The paper's entropy study: this many random test words of a cell, this many draws from the posterior."""


def evaluate_corpus(model: Model, cell: Cell, name: str, corpus: Corpus, config: Config) -> CellResult:
    """The result on one corpus of a cell."""
    data = prepare(model.encoder, model.inventory, cell, corpus)
    features = encode(model, data.inputs)
    settings = config.prediction
    plug_in = predict_features(model, features, cell, n_samples=0)
    sampled = settings.samples and model.heads.vote is None  # voters are the same ones every time
    averaged = predict_features(model, features, cell, settings.samples, settings.seed) if sampled else plug_in
    gold, labels = data.labels.numpy(), model.inventory.labels[cell.task]
    labelling = Labelling(gold, plug_in.labels.cpu().numpy(), labels, corpus.lengths)
    confidence = averaged.confidence.cpu().numpy()
    correct = averaged.labels.cpu().numpy() == gold
    bins = uncertainty.reliability(confidence, correct)
    return CellResult(
        cell=cell,
        corpus=name,
        seen=cell in model.seen,
        n_sentences=len(corpus),
        n_words=len(gold),
        plug_in=measure(plug_in, gold, labels, corpus.lengths),
        averaged=measure(averaged, gold, labels, corpus.lengths),
        by_label=labelling.by_label(),
        entropies=study_entropies(model, features, cell, plug_in, settings.seed),
        reliability={field.name: getattr(bins, field.name).tolist() for field in fields(bins)},
        risk_coverage=uncertainty.risk_coverage(confidence, correct).tolist(),
        counts=labelling.counts().tolist(),
    )


def measure(
    prediction: Prediction,
    gold: Int[np.ndarray, "words"],
    labels: tuple[str, ...],
    lengths: Int[np.ndarray, "sentences"],
) -> dict[str, float]:
    """Every measure of a prediction, by name."""
    probabilities = prediction.probabilities.cpu().numpy()
    predicted, confidence = prediction.labels.cpu().numpy(), prediction.confidence.cpu().numpy()
    correct = predicted == gold
    return Labelling(gold, predicted, labels, lengths).scores() | {
        "nll": uncertainty.nll(probabilities, gold),
        "brier": uncertainty.brier(probabilities, gold),
        "ece": uncertainty.reliability(confidence, correct).error(),
        "ece_adaptive": uncertainty.reliability(confidence, correct, adaptive=True).error(),
        "aurc": uncertainty.aurc(confidence, correct),
        "entropy": float(prediction.entropy.mean()),
        "mutual_information": float(prediction.mutual_information.mean()),
    }


def study_entropies(
    model: Model, features: Float[Tensor, "words features"], cell: Cell, plug_in: Prediction, seed: int
) -> list[float]:
    """Entropies of some random words of a corpus, in the order of the corpus.

    Where heads vote, those of the plug-in prediction: voters are judged by all words, and no draw differs.
    """
    chosen = np.sort(np.random.default_rng(seed).permutation(len(features))[:STUDY_WORDS])
    words = torch.from_numpy(chosen).to(features.device)
    if model.heads.vote is not None:
        return plug_in.entropy[words].tolist()
    return predict_features(model, features[words], cell, STUDY_SAMPLES, seed).entropy.tolist()
