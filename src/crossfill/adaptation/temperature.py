"""The temperature of an adapted cell: from predictions for its own sentences, each by a head fitted without it."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Problem
from crossfill.adaptation.likelihood import Categorical

MOST_FOLDS = 10
"""Sentences are left out one at a time; with more of them, in this many groups."""
SPREAD = 0.2
"""Standard deviation of the logarithm of a cell's temperature around that of its task."""
_LOGS = np.linspace(math.log(0.25), math.log(4), 200)


def left_out(
    prior: HeadPrior, examples: Examples, features: Float[Tensor, "words features"]
) -> Float[Tensor, "words labels"]:
    """ln p(y | x) of every word, near the mode of the posterior without the word's sentence."""
    found = torch.zeros(len(features), len(prior.mean), dtype=features.dtype)
    n_folds = min(len(examples), MOST_FOLDS)
    for fold in range(n_folds):
        out = examples.words_of(range(fold, len(examples), n_folds))
        kept = torch.ones(len(features), dtype=torch.bool)
        kept[out] = False
        mean = Problem(prior, Categorical(examples.labels[kept]), features[kept]).rough_mean()
        found[out] = (features[out] @ mean.T).log_softmax(-1)
    return found


def shrunk_temperature(logs: Float[np.ndarray, "words labels"], gold: np.ndarray, of_task: float) -> float:
    """The T that maximises Σ ln (p^(1/T)(yᵢ) / Z) + ln N(ln T; ln T_task, SPREAD²)."""
    values = []
    for log in _LOGS:
        scaled = logs / math.exp(log)
        top = scaled.max(-1)
        total = top + np.log(np.exp(scaled - top[:, None]).sum(-1))
        likelihood = float((scaled[np.arange(len(gold)), gold] - total).sum())
        values.append(likelihood - 0.5 * ((log - math.log(of_task)) / SPREAD) ** 2)
    return float(round(math.exp(_LOGS[int(np.argmax(values))]), 4))
