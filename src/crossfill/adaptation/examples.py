"""Labelled sentences of a cell as adaptations keep them: features, cues and labels of words, not their text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.encoders.base import ranges
from crossfill.encoders.cues import KINDS, NONE, cues_of
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Unit
from crossfill.grid.text_keys import sentence_hashes
from crossfill.model import Model
from crossfill.prediction.predict import encode_words
from crossfill.training.labelled import prepare


@dataclass(frozen=True)
class Examples:
    """Labelled sentences; none occurs twice."""

    features: Float[Tensor, "words features"]
    """What heads read: the encoder's features, after the hidden layers of the task if there are any."""
    cues: Int[Tensor, "words cues"]
    """The cues of each word (`crossfill.encoders.cues`); sentences and pairs have none."""
    labels: Int[Tensor, "words"]
    """Places among the task's labels; −1 for a word without a label."""
    lengths: Int[Tensor, "sentences"]
    hashes: tuple[str, ...]
    """A hash of the words of each sentence."""

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def n_labelled(self) -> int:
        """Words that have a label."""
        return int((self.labels >= 0).sum())

    @classmethod
    def of(cls, model: Model, cell: Cell, corpus: Corpus, inventory: Inventory | None = None) -> "Examples":
        """Encode the labelled sentences of a corpus; of a sentence that occurs twice, the last counts.

        `inventory` is needed for a task that the model does not know: the model's inventory with that task.
        """
        if not corpus.n_words:
            raise DataError(f"{cell}: expected labelled sentences to adapt to, got none; is the file empty?")
        data = prepare(model.encoder, inventory or model.inventory, cell, corpus)
        words, lengths = encode_words(model, data.inputs), data.inputs.lengths
        known = cell.task in model.inventory.tasks
        with torch.inference_mode():
            features = model.pool(words, lengths, cell.task) if known else model.encoder.pool(words, lengths, data.unit)
        cues = cues_of(corpus.text()) if data.unit is Unit.WORD else torch.full((len(features), len(KINDS)), NONE)
        all_of_them = cls(features.float().cpu(), cues, data.labels, data.lengths, sentence_hashes(corpus))
        with_words = all_of_them.take([i for i, length in enumerate(data.lengths.tolist()) if length])
        return with_words.take(_last(with_words.hashes))

    @classmethod
    def none(cls, n_features: int) -> "Examples":
        """No sentence at all."""
        nothing = torch.zeros(0, dtype=torch.long)
        return cls(torch.zeros(0, n_features), torch.zeros(0, len(KINDS), dtype=torch.long), nothing, nothing, ())

    def __add__(self, other: "Examples") -> "Examples":
        """Both; where both have a sentence, with the labels of the other."""
        new = set(other.hashes)
        return joined([self.take([i for i, text in enumerate(self.hashes) if text not in new]), other])

    def take(self, sentences: Sequence[int]) -> "Examples":
        """Some of the sentences, in this order."""
        chosen = torch.tensor(list(sentences), dtype=torch.long)
        words = self.words_of(sentences)
        hashes = tuple(self.hashes[i] for i in sentences)
        return Examples(self.features[words], self.cues[words], self.labels[words], self.lengths[chosen], hashes)

    def words_of(self, sentences: Sequence[int]) -> Int[Tensor, "chosen"]:
        """The positions of the words of these sentences."""
        chosen = torch.tensor(list(sentences), dtype=torch.long)
        return ranges((self.lengths.cumsum(0) - self.lengths)[chosen], self.lengths[chosen])


def joined(parts: Iterable[Examples]) -> Examples:
    """Join examples one after the other; of a sentence that occurs twice, the last counts."""
    given = list(parts)
    together = Examples(
        torch.cat([part.features for part in given]),
        torch.cat([part.cues for part in given]),
        torch.cat([part.labels for part in given]),
        torch.cat([part.lengths for part in given]),
        tuple(text for part in given for text in part.hashes),
    )
    last = _last(together.hashes)
    return together if len(last) == len(together) else together.take(last)


def _last(hashes: Sequence[str]) -> list[int]:
    return sorted({text: i for i, text in enumerate(hashes)}.values())
