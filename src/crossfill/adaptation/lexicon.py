"""A lexicon of a cell, forms with the labels that they may have: evidence for its head, which text can overrule.

    u ~ N(b a, ω²)                                     u of a listed word's cue; a is 1 for labels that it may have
    −w Σ_y t_y ln p(y | x)    t ∝ p₀(y | x) a_y         for each word of a form that stands alone, p₀ as generated

The first makes a listed word lean to its labels, in whatever context it stands; it is where its effect starts from, so
that labelled sentences move it as any other. By the second, endings, beginnings, shapes and features learn what
listed words have in common, for words that are not listed. In tasks with spans a list of names says nothing of words
that are in no name, so that the second counts as far as the head moves by labelled sentences (`adaptation.fit`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from crossfill.adaptation.examples import Examples
from crossfill.data.lexicons import ListedForm
from crossfill.encoders.cues import KINDS, NONE, Cue, cues_of
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Task
from crossfill.model import Model
from crossfill.prediction.predict import encode_words

BONUS, WEIGHT = 4.0, 0.3
"""b and w, chosen on languages that report nothing (benchmarks/lexicon.py)."""
MOST_WORDS = 1000
"""Words that weigh w each; more of them weigh as much as these together."""
_WORD, _BEFORE, _AFTER = KINDS.index(Cue.WORD), KINDS.index(Cue.NEIGHBOUR), len(KINDS) - 1


@dataclass(frozen=True)
class Lexicon:
    """The words of listed forms, each form alone, and the labels that they may have."""

    features: Float[Tensor, "words features"]
    cues: Int[Tensor, "words cues"]
    """Without neighbours beyond the form, which nobody knows."""
    allowed: Bool[Tensor, "words labels"]

    @classmethod
    def of(cls, model: Model, cell: Cell, task: Task, forms: Sequence[ListedForm]) -> "Lexicon":
        """Encode the forms, each as a sentence."""
        corpus = Corpus.from_sentences(Sentence(form.words) for form in forms)
        inputs = model.encoder.prepare(corpus, cell.language)
        words, lengths, cues = encode_words(model, inputs), inputs.lengths, cues_of(corpus)
        known = cell.task in model.inventory.tasks
        with torch.inference_mode():
            features = model.pool(words, lengths, cell.task) if known else model.encoder.pool(words, lengths, task.unit)
        ends = lengths.cumsum(0)
        cues[ends - lengths, _BEFORE] = cues[ends - 1, _AFTER] = NONE
        allowed = [[label in of_word for label in task.labels] for form in forms for of_word in form.allowed]
        return cls(features.float().cpu(), cues, torch.tensor(allowed))

    def __len__(self) -> int:
        return len(self.cues)

    def __add__(self, other: "Lexicon") -> "Lexicon":
        """Both; where both have a word of the same cues, with the labels of the other."""
        cues = torch.cat([self.cues, other.cues])
        last = sorted({tuple(row): i for i, row in enumerate(cues.tolist())}.values())
        parts = (torch.cat([getattr(self, name), getattr(other, name)])[last] for name in ("features", "allowed"))
        return Lexicon(next(parts), cues[last], next(parts))

    @property
    def words(self) -> Int[Tensor, "words"]:
        """The cue of each word itself."""
        return self.cues[:, _WORD].contiguous()

    def after(self, examples: Examples) -> Examples:
        """Examples, and after them the words of the lexicon, without a label and without the cue of the word itself."""
        cues = self.cues.clone()
        cues[:, _WORD] = NONE
        return Examples(
            torch.cat([examples.features, self.features]),
            torch.cat([examples.cues, cues]),
            torch.cat([examples.labels, self.cues.new_full((len(self),), -1)]),
            torch.cat([examples.lengths, self.cues.new_ones(len(self))]),
            (*examples.hashes, *(f"listed {i}" for i in range(len(self)))),
        )

    def centre(self, known: Int[Tensor, "known"]) -> Float[Tensor, "labels known"]:
        """b a of the effect of each known cue; a word that is listed twice may have the labels of both."""
        places = torch.searchsorted(known, self.words)
        centre = torch.zeros(len(known), self.allowed.shape[1], dtype=torch.float64)
        return BONUS * centre.index_add_(0, places, self.allowed.double()).clamp(max=1.0).T

    def targets(self, generated: Float[Tensor, "labels features"]) -> Float[Tensor, "words labels"]:
        """w t of each word."""
        logits = functional.pad(self.features.double(), (0, 1), value=1.0) @ generated.T
        t = logits.masked_fill(~self.allowed, -torch.inf).softmax(-1)
        return WEIGHT * min(1.0, MOST_WORDS / max(1, len(self))) * t
