"""Prediction with the posterior means plugged in, or averaged over samples of the posterior."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.encoders.base import Inputs
from crossfill.grid.cells import Cell
from crossfill.model import Classifier, Model, Vote

CHUNK_NUMBERS = 2**22  # samples × words × labels held at once: 16 MB
CHUNK_SENTENCES = 256


@dataclass(frozen=True)
class Prediction:
    """The predicted distribution of each word's label, and its uncertainty."""

    probabilities: Float[Tensor, "words labels"]
    entropy: Float[Tensor, "words"]
    mutual_information: Float[Tensor, "words"]
    """The epistemic part of the entropy; zero in plug-in prediction."""
    bounds: Float[Tensor, "2 words labels"] | None = None
    """Central interval of each probability over the posterior samples, if one was asked for."""

    @property
    def labels(self) -> Int[Tensor, "words"]:
        return self.probabilities.argmax(-1)

    @property
    def confidence(self) -> Float[Tensor, "words"]:
        return self.probabilities.amax(-1)


def predict(model: Model, inputs: Inputs, cell: Cell, n_samples: int, seed: int = 0) -> Prediction:
    """Predict sentences in a cell, seen or unseen; with `n_samples` 0 the posterior means are plugged in."""
    return predict_features(model, encode(model, inputs, cell.task), cell, n_samples, seed)


def predict_features(
    model: Model,
    features: Float[Tensor, "words features"],
    cell: Cell,
    n_samples: int,
    seed: int = 0,
    cues: Int[Tensor, "words cues"] | None = None,
) -> Prediction:
    """Predict words that are already encoded; `cues` are `Model.cues` of their text."""
    return predict_runs([CellWords(features, draw_head(model, cell, n_samples, seed), cues)], model.heads.vote)


class CellWords(NamedTuple):
    """Words of one cell, and draws of its head."""

    features: Float[Tensor, "words features"]
    head: Classifier
    cues: Int[Tensor, "words cues"] | None = None

    def chunks(self) -> "Iterator[CellWords]":
        """Split the words into parts whose predictions fit in memory."""
        size = max(1, CHUNK_NUMBERS // (self.head.n_samples * self.head.n_labels))
        parts = self.features.split(size)
        cues = [None] * len(parts) if self.cues is None else self.cues.split(size)
        return (CellWords(part, self.head, cues_of_part) for part, cues_of_part in zip(parts, cues, strict=True))


@torch.inference_mode()
def predict_runs(runs: Sequence[CellWords], vote: Vote | None, interval: float | None = None) -> Prediction:
    """Predict the words of cells of one task: the draws of each head are averaged, or vote if there is a `vote`."""
    if vote is None or runs[0].head.n_samples == 1:
        return classify(runs, interval)
    parts = []
    for run in runs:
        votes = torch.cat([run.head.logits(part.features).argmax(-1) for part in run.chunks()], dim=1)
        # votes are counted in float64, which not every device has
        parts.append(vote(votes.cpu(), run.head.n_labels).to(run.features.dtype).to(run.features.device))
    probabilities = torch.cat(parts)
    bounds = None if interval is None else probabilities.expand(2, -1, -1)
    return Prediction(probabilities, entropy(probabilities), probabilities.new_zeros(len(probabilities)), bounds)


def encode(model: Model, inputs: Inputs, task: str) -> Float[Tensor, "items features"]:
    """Compute the features of all words, or of all sentences or pairs if the task labels those."""
    with torch.inference_mode():
        return model.pool(encode_words(model, inputs), inputs.lengths, task)


@torch.inference_mode()
def encode_words(model: Model, inputs: Inputs) -> Float[Tensor, "words features"]:
    """Compute the features of all words, in chunks of sentences."""
    training = model.training
    model.eval()
    try:
        parts = torch.arange(len(inputs.lengths)).split(CHUNK_SENTENCES)
        features = [model.encoder(inputs.take(part)) for part in parts if len(part)]
    finally:
        model.train(training)
    return torch.cat(features) if features else torch.zeros(0, model.encoder.n_features)


@torch.inference_mode()
def draw_head(model: Model, cell: Cell, n_samples: int, seed: int = 0) -> Classifier:
    """Draw the cell's head: at the posterior means for `n_samples` 0, else as often; the same for the same seed."""
    if n_samples == 0:
        return model.heads.plug_in([cell])[0]
    device = next(model.heads.parameters()).device
    return model.heads.sample([cell], n_samples, torch.Generator(device).manual_seed(seed))[0]


@torch.inference_mode()
def classify(runs: Sequence[CellWords], interval: float | None = None) -> Prediction:
    """Compute p(y | x) = (1/V) Σᵥ softmax(W⁽ᵛ⁾ x + b⁽ᵛ⁾): a mean of probabilities. Runs must agree in labels."""
    parts = []
    for pack in _packs(runs):
        logits = [run.head.logits(run.features, run.cues) for run in pack]
        samples = (logits[0] if len(logits) == 1 else torch.cat(logits, dim=1)).softmax(-1)
        mean = samples.mean(0)
        parts.append((mean, entropy(mean), mutual_information(mean, samples), _bounds(samples, interval)))
    mean, total, epistemic, bounds = zip(*parts, strict=True)
    joined = None if interval is None else torch.cat([part for part in bounds if part is not None], dim=1)
    return Prediction(torch.cat(mean), torch.cat(total), torch.cat(epistemic), joined)


def _bounds(
    samples: Float[Tensor, "samples words labels"], interval: float | None
) -> Float[Tensor, "2 words labels"] | None:
    """Find quantiles over the samples, interpolated between the two nearest ones."""
    if interval is None:
        return None
    ordered, last = samples.sort(dim=0).values, len(samples) - 1
    places = torch.tensor([(1 - interval) / 2, (1 + interval) / 2], dtype=torch.float64) * last
    below = places.floor().long().clamp(0, last)
    weight = (places - below).to(samples.dtype).to(samples.device).view(2, 1, 1)
    return torch.lerp(ordered[below], ordered[(below + 1).clamp(max=last)], weight)


def _packs(runs: Sequence[CellWords]) -> Iterator[list[CellWords]]:
    """Batch runs of as many samples each to fit in memory: long runs are split, short ones joined."""
    pack, size = [], 0
    for run in runs:
        for part in run.chunks():
            numbers = len(part.features) * run.head.n_samples * run.head.n_labels
            if pack and (size + numbers > CHUNK_NUMBERS or pack[0].head.n_samples != run.head.n_samples):
                yield pack
                pack, size = [], 0
            pack.append(part)
            size += numbers
    yield pack


def entropy(probabilities: Float[Tensor, "*batch labels"]) -> Float[Tensor, "*batch"]:
    """Compute H(p) = −Σ p ln p, in nats."""
    return -(probabilities * probabilities.clamp_min(1e-30).log()).sum(-1)


def mutual_information(
    mean: Float[Tensor, "words labels"], samples: Float[Tensor, "samples words labels"]
) -> Float[Tensor, "words"]:
    """Compute I(y; θ) = H(E p) − E H(p): the epistemic part of the entropy; `mean` is E p over the samples."""
    return (entropy(mean) - entropy(samples).mean(0)).clamp_min(0)
