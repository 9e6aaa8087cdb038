"""Prediction with the posterior means plugged in, or averaged over samples of the posterior."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.encoders.base import Inputs
from crossfill.generator import Classifier
from crossfill.grid import Cell
from crossfill.information import entropy, mutual_information
from crossfill.model import Model, Vote

CHUNK_NUMBERS = 2**22  # samples × words × labels held at once: 16 MB
CHUNK_SENTENCES = 256


@dataclass(frozen=True)
class Prediction:
    """What the model believes of each word."""

    probabilities: Float[Tensor, "words labels"]
    entropy: Float[Tensor, "words"]
    mutual_information: Float[Tensor, "words"]
    """The epistemic part of the entropy; zero in plug-in prediction."""

    @property
    def labels(self) -> Int[Tensor, "words"]:
        """The most probable label of each word."""
        return self.probabilities.argmax(-1)

    @property
    def confidence(self) -> Float[Tensor, "words"]:
        """The probability of that label."""
        return self.probabilities.amax(-1)


def predict(model: Model, inputs: Inputs, cell: Cell, n_samples: int, seed: int = 0) -> Prediction:
    """Tag sentences in a cell, seen or not; with `n_samples` 0 the posterior means are plugged in."""
    return predict_features(model, encode(model, inputs), cell, n_samples, seed)


def predict_features(
    model: Model, features: Float[Tensor, "words features"], cell: Cell, n_samples: int, seed: int = 0
) -> Prediction:
    """The same for words whose features are at hand: draws of the head are averaged, or vote if the method says so."""
    head = draw_head(model, cell, n_samples, seed)
    if model.heads.vote is None or head.n_samples == 1:
        return classify(features, head)
    return elect(features, head, model.heads.vote)


@torch.inference_mode()
def encode(model: Model, inputs: Inputs) -> Float[Tensor, "words features"]:
    """The features of all words, a few sentences at a time."""
    training = model.training
    model.eval()
    parts = torch.arange(len(inputs.lengths)).split(CHUNK_SENTENCES)
    features = [model.encoder(inputs.take(part)) for part in parts if len(part)]
    model.train(training)
    return torch.cat(features) if features else torch.zeros(0, model.encoder.n_features)


@torch.inference_mode()
def draw_head(model: Model, cell: Cell, n_samples: int, seed: int = 0) -> Classifier:
    """The cell's head: at the posterior means for `n_samples` 0, else that many draws, the same for the same seed."""
    if n_samples == 0:
        return model.heads.plug_in([cell])[0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return model.heads.sample([cell], n_samples)[0]


@torch.inference_mode()
def classify(features: Float[Tensor, "words features"], head: Classifier) -> Prediction:
    """p(y | x) = (1/V) Σᵥ softmax(W⁽ᵛ⁾ x + b⁽ᵛ⁾): a mean of probabilities, all samples at once, words in chunks."""
    parts = []
    for chunk in _chunks(features, head):
        samples = head.logits(chunk).softmax(-1)
        mean = samples.mean(0)
        parts.append((mean, entropy(mean), mutual_information(mean, samples)))
    return Prediction(*(torch.cat(column) for column in zip(*parts, strict=True)))


@torch.inference_mode()
def elect(features: Float[Tensor, "words features"], head: Classifier, vote: Vote) -> Prediction:
    """Every draw votes for a label of each word, and the vote over all the words given decides; no epistemic part."""
    votes = torch.cat([head.logits(chunk).argmax(-1) for chunk in _chunks(features, head)], dim=1)
    probabilities = vote(votes, head.n_labels).to(features.dtype)
    return Prediction(probabilities, entropy(probabilities), features.new_zeros(len(features)))


def _chunks(features: Float[Tensor, "words features"], head: Classifier) -> Sequence[Float[Tensor, "chunk features"]]:
    return features.split(max(1, CHUNK_NUMBERS // (head.n_samples * head.n_labels)))
