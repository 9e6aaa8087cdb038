"""From requests to answers: split text into words, tag all jobs of a batch at once, name the values of answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Unit
from crossfill.model import Classifier
from crossfill.prediction.queries import Query
from crossfill.prediction.tagging import DIGITS, Tagging, TaggingOptions
from crossfill.tagger.tagger import Tagger, as_sentence
from crossfill.web.problems import check_size
from crossfill.web.serve_settings import MAX_CELLS, MAX_WORK, ServeSettings

INTERVAL = 0.9
"""Error bars cover this share of the posterior samples."""
HEAD_BYTES = 2**28
"""Maximum size of the cache of sampled heads."""


Words = Annotated[list[str], Field(fail_fast=True)]
"""Validation ends at the first problem, of which a request could have many thousands."""


class RequestBody(BaseModel):
    """What is sent to the API: nothing but the fields that are known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_the_first_unknown_field(cls, values: Any) -> Any:
        unknown = (
            next((key for key in values if key not in cls.model_fields), None) if isinstance(values, dict) else None
        )
        if unknown is not None:
            raise PydanticCustomError("unknown_field", "{field}: unknown field", {"field": str(unknown)[:100]})
        return values


class TagRequest(RequestBody):
    """Text to tag, and the cells to tag it in: either `text` or `sentences`, not both."""

    cells: Words = Field(min_length=1, description="Cells, as ner/wol; all share one pass through the encoder.")
    text: str | None = Field(
        default=None,
        description="Raw text, split into sentences and words by the rules of the first cell's language; for cells "
        "that label pairs, one pair a line with a tab between its sentences.",
    )
    sentences: Annotated[list[Words], Field(fail_fast=True)] | None = Field(
        default=None, description="Sentences that are already split into words."
    )
    samples: int | None = Field(
        default=None,
        ge=0,
        description="Posterior samples to average over; 0 plugs in the posterior means; default: the model's.",
    )
    distributions: bool = Field(default=False, description="Give the probability of every label, with error bars.")

    @property
    def n_characters(self) -> int:
        """Number of characters in the text."""
        words = (word for sentence in self.sentences or () for word in sentence)
        return sum(map(len, words)) if self.text is None else len(self.text)

    @model_validator(mode="after")
    def _one_text(self) -> "TagRequest":
        if (self.text is None) == (self.sentences is None):
            raise ValueError("expected text or sentences, one of them")
        return self


@dataclass(frozen=True)
class Job:
    """What is tagged together for a request."""

    queries: Sequence[Query]
    work: int = 1
    """Characters × cells × posterior samples."""


ReadRequest = tuple[Iterable[Job], Callable[[Sequence[Tagging]], Any]]
"""The jobs of a request, and the function that makes the answer of their taggings."""


class Engine:
    """Makes jobs of requests, and tags them in batches, which does not change any answer."""

    def __init__(
        self, tagger: Tagger, settings: ServeSettings, encoding: AbstractContextManager[Any] | None = None
    ) -> None:
        """`encoding` is held while the encoder is used, if others use it, too."""
        self.tagger, self.settings = tagger, settings
        self.heads, self._encoding = SampledHeads(tagger), encoding or nullcontext()
        self.samples = min(tagger.config.prediction.samples, settings.max_samples)
        """The samples that requests have by default."""

    def read(self, request: TagRequest) -> ReadRequest:
        """Read a request to the API; reject it if it is over the limits, or for unknown cells."""
        limits, samples = self.settings, self.samples if request.samples is None else request.samples
        if len(request.cells) > MAX_CELLS:
            raise DataError(f"cells: expected at most {MAX_CELLS}, got {len(request.cells)}; ask in parts")
        if samples > limits.max_samples:
            raise DataError(f"samples: expected at most {limits.max_samples}, got {samples}")
        cells, given = [self.tagger.target(cell) for cell in request.cells], request.sentences or []
        if not all(word and not word.isspace() for sentence in given for word in sentence):
            raise DataError("sentences: expected words, got an empty one; leave it out")
        work = request.n_characters * len(cells) * max(1, samples)
        check_size("words", limits.max_words, sum(map(len, given)))
        check_size("characters", limits.max_characters, request.n_characters)
        check_size("characters × cells × samples", MAX_WORK, work)

        sentences = self._sentences(request, cells)
        options = TaggingOptions(interval=INTERVAL) if request.distributions else None
        queries = [query for cell in cells for query in self._queries(sentences, cell, samples, options)]
        return [Job(queries, work)], lambda taggings: self._answer(taggings, len(cells), samples)

    def jobs(self, sentences: Sequence[Sentence], cell: Cell, options: TaggingOptions | None = None) -> Iterator[Job]:
        """Make the jobs of tagging sentences in a cell, with the samples that requests have by default.

        Each is within the limits of a request; a sentence that is not is rejected.
        """
        for part in self._parts(sentences):
            work = sum(map(_n_characters, part)) * max(1, self.samples)
            yield Job(self._queries(part, cell, self.samples, options), work)

    def run(self, jobs: Sequence[Job]) -> list[list[Tagging]]:
        """Tag the queries of all jobs with one pass through the encoder."""
        with self._encoding:
            taggings = iter(self.tagger.tag_queries([query for job in jobs for query in job.queries], self.heads.of))
            return [[next(taggings) for _ in job.queries] for job in jobs]

    def _queries(
        self, sentences: Sequence[Sentence], cell: Cell, samples: int, options: TaggingOptions | None
    ) -> list[Query]:
        query = self.tagger.query(Sentence(()), cell, samples, options)
        return [replace(query, sentence=sentence) for sentence in sentences]

    def _parts(self, sentences: Sequence[Sentence]) -> Iterator[list[Sentence]]:
        most_words = self.settings.max_words
        most_characters = min(self.settings.max_characters, max(1, MAX_WORK // max(1, self.samples)))
        part, words, characters = [], 0, 0
        for sentence in sentences:
            check_size("words in a sentence", most_words, len(sentence))
            check_size("characters in a sentence", most_characters, _n_characters(sentence))
            words, characters = words + len(sentence), characters + _n_characters(sentence)
            if words > most_words or characters > most_characters:
                yield part
                part, words, characters = [], len(sentence), _n_characters(sentence)
            part.append(sentence)
        if part:
            yield part

    def _sentences(self, request: TagRequest, cells: Sequence[Cell]) -> list[Sentence]:
        pairs = {self.tagger.model.inventory.task(cell.task).unit is Unit.PAIR for cell in cells}
        if len(pairs) > 1:
            raise DataError("expected cells that all label pairs, or none; got both")
        if request.text is None:
            if True in pairs:
                raise DataError("expected pairs as text, one a line with a tab between its sentences; got words")
            sentences = [Sentence(tuple(words)) for words in request.sentences or () if words]
        elif True in pairs:
            lines = filter(str.strip, request.text.splitlines())
            sentences = [as_sentence(line, self.tagger.segmenter(cells[0]), Unit.PAIR) for line in lines]
        else:
            sentences = list(self.tagger.segmenter(cells[0], whole=True).split_text(request.text))
        if not (n_words := sum(map(len, sentences))):
            raise DataError("expected at least one word, got none")
        check_size("words", self.settings.max_words, n_words)
        return sentences

    def _answer(self, taggings: Sequence[Tagging], n_cells: int, samples: int) -> dict[str, Any]:
        n_sentences = len(taggings) // n_cells
        sentences = [tagging.sentence for tagging in taggings[:n_sentences]]
        parts = [taggings[i : i + n_sentences] for i in range(0, len(taggings), n_sentences)]
        return {
            "samples": samples,
            "sentences": [words_and_spaces(sentence) | {"offsets": sentence.offsets} for sentence in sentences],
            "taggings": [
                {
                    "cell": str(part[0].cell),
                    "unit": part[0].task.unit,
                    "seen": part[0].cell in self.tagger.seen,
                    "label_names": part[0].task.labels,
                    "sentences": [sentence_values(tagging) for tagging in part],
                }
                for part in parts
            ],
        }


def _n_characters(sentence: Sentence) -> int:
    return sum(map(len, sentence.words))


class SampledHeads:
    """Cache of recently used sampled heads: sampling them is deterministic, and a large part of the work."""

    def __init__(self, tagger: Tagger, most_bytes: int = HEAD_BYTES) -> None:
        self._tagger, self._most_bytes, self._model = tagger, most_bytes, tagger.model
        self._heads: dict[tuple[Cell, int], Classifier] = {}  # the one used last is last
        self.n_bytes = 0

    def of(self, cell: Cell, n_samples: int) -> Classifier:
        """Return the sampled heads of a cell, as the model has them now."""
        if self._model is not self._tagger.model:  # a cell was adapted
            self._model, self._heads, self.n_bytes = self._tagger.model, {}, 0
        head = self._heads.pop((cell, n_samples), None)
        if head is None:
            head = self._tagger.head(cell, n_samples)
            self.n_bytes += head.n_bytes
        self._heads[cell, n_samples] = head
        while self.n_bytes > self._most_bytes:
            self.n_bytes -= self._heads.pop(next(iter(self._heads))).n_bytes
        return head


def words_and_spaces(sentence: Sentence) -> dict[str, Any]:
    """Write the words of a sentence as JSON values."""
    return {"words": sentence.words, "spaces": sentence.spaces or [True] * len(sentence)}


def sentence_values(tagging: Tagging) -> dict[str, Any]:
    """Write the tags of a sentence as JSON values."""
    values: dict[str, Any] = {
        "labels": tagging.labels,
        "confidence": _rounded(tagging.confidence),
        "entropy": _rounded(tagging.entropy),
        "mutual_information": _rounded(tagging.mutual_information),
        "spans": [span.as_dict() for span in tagging.spans],
    }
    if tagging.bounds is not None:
        values["probabilities"] = _rounded(tagging.probabilities)
        values["low"], values["high"] = map(_rounded, tagging.bounds)
    return values


def _rounded(values: Float[np.ndarray, "..."]) -> list[Any]:
    return values.astype(np.float64).round(DIGITS).tolist()
