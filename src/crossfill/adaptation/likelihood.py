"""The likelihood of labels given the logits of their words: its value, its gradient and its curvature."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


class Likelihood(ABC):
    """−ln p(y | s) of all words as a function of their logits s, convex in s."""

    @abstractmethod
    def take(self, words: Int[Tensor, "chosen"]) -> "Likelihood":
        """The likelihood of some of the words."""

    @abstractmethod
    def loss(self, logits: Float[Tensor, "words labels"]) -> Float[Tensor, ""]:
        """−Σₙ ln p(yₙ | sₙ)."""

    @abstractmethod
    def gradient(self, logits: Float[Tensor, "words labels"]) -> Float[Tensor, "words labels"]:
        """The gradient of the loss with respect to the logits."""

    @abstractmethod
    def hessian_product(
        self, logits: Float[Tensor, "words labels"], direction: Float[Tensor, "words labels"]
    ) -> Float[Tensor, "words labels"]:
        """Λₙ dₙ of each word: the product of the loss's Hessian Λₙ with respect to sₙ and a direction."""

    @abstractmethod
    def hessians(
        self, logits: Float[Tensor, "words labels"]
    ) -> tuple[Float[Tensor, "labels labels"], Float[Tensor, "words"]]:
        """Σₙ Λₙ, and tr Λₙ of each word."""


@dataclass(frozen=True)
class Categorical(Likelihood):
    """p(y | s) = softmax(s)_y, with Λ = diag(p) − p pᵀ."""

    labels: Int[Tensor, "words"]

    def take(self, words: Int[Tensor, "chosen"]) -> "Categorical":
        return Categorical(self.labels[words])

    def loss(self, logits: Float[Tensor, "words labels"]) -> Float[Tensor, ""]:
        return functional.cross_entropy(logits, self.labels, reduction="sum")

    def gradient(self, logits: Float[Tensor, "words labels"]) -> Float[Tensor, "words labels"]:
        """p − e_y."""
        gradient = logits.softmax(-1)
        gradient[torch.arange(len(gradient)), self.labels] -= 1
        return gradient

    def hessian_product(
        self, logits: Float[Tensor, "words labels"], direction: Float[Tensor, "words labels"]
    ) -> Float[Tensor, "words labels"]:
        p = logits.softmax(-1)
        return p * (direction - (p * direction).sum(-1, keepdim=True))

    def hessians(
        self, logits: Float[Tensor, "words labels"]
    ) -> tuple[Float[Tensor, "labels labels"], Float[Tensor, "words"]]:
        p = logits.softmax(-1)
        return p.sum(0).diag() - p.T @ p, 1 - (p**2).sum(-1)
