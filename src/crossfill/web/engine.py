"""From requests to answers: split text into words, tag all jobs of a batch at once, answer in JSON."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from crossfill import __version__
from crossfill.data.segmentation import split_text
from crossfill.errors import CrossfillError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Unit
from crossfill.model import Classifier
from crossfill.prediction.queries import Query
from crossfill.prediction.tagging import DIGITS, Tagging, TaggingOptions
from crossfill.tagger.tagger import Tagger
from crossfill.tagger.texts import as_sentence
from crossfill.web.problems import ApiError, invalid, too_large
from crossfill.web.schemas import TagRequest
from crossfill.web.settings import MAX_CELLS, MAX_WORK, ServeSettings

INTERVAL = 0.9
"""Error bars cover this share of the posterior samples."""
HEAD_BYTES = 2**28
"""Maximum size of the cache of sampled heads."""


@dataclass(frozen=True)
class Job:
    """What is to be done for a request on the tagging thread."""

    queries: Callable[[], Sequence[Query]]
    """Makes the queries to tag; it may find that the request cannot be answered."""
    answer: Callable[[Sequence[Tagging]], Any]
    """Makes the answer of the queries' taggings."""
    work: int = 1
    """Characters × cells × posterior samples."""


class Engine:
    """Does jobs in batches; batching does not change any answer."""

    def __init__(
        self, tagger: Tagger, settings: ServeSettings, encoding: AbstractContextManager[Any] | None = None
    ) -> None:
        """`encoding` is held while the encoder is used, if others use it, too."""
        self.tagger, self.settings = tagger, settings
        self.heads, self._encoding = SampledHeads(tagger), encoding or nullcontext()
        self.samples = min(tagger.config.prediction.samples, settings.max_samples)
        """The samples that requests have by default."""

    def check(self, request: TagRequest) -> int:
        """Reject a request over the limits or for unknown cells before it is queued; returns its work."""
        limits = self.settings
        if len(request.cells) > MAX_CELLS:
            raise invalid(f"cells: expected at most {MAX_CELLS}, got {len(request.cells)}; ask in parts")
        if request.samples is not None and request.samples > limits.max_samples:
            raise invalid(f"samples: expected at most {limits.max_samples}, got {request.samples}")
        for cell in request.cells:
            self.tagger.cell(cell)
        if request.text is None:
            sentences = request.sentences or []
            if not all(word and not word.isspace() for sentence in sentences for word in sentence):
                raise invalid("sentences: expected words, got an empty one; leave it out")
            if (n_words := sum(map(len, sentences))) > limits.max_words:
                raise too_large("words", limits.max_words, n_words)
        characters = n_characters(request)
        if characters > limits.max_characters:
            raise too_large("characters", limits.max_characters, characters)
        work = characters * len(request.cells) * max(1, self._samples(request))
        if work > MAX_WORK:
            raise too_large("characters × cells × samples", MAX_WORK, work)
        return work

    def job(self, request: TagRequest) -> Job:
        """Make the job of a request to the API, or reject it as `check` does."""
        return Job(
            lambda: self._queries(request), lambda taggings: self._answer(request, taggings), self.check(request)
        )

    def tagging(self, sentences: Sequence[Sentence], cell: Cell, options: TaggingOptions) -> Job:
        """Make the job of tagging sentences in a cell, with the samples that requests have by default."""
        characters = sum(len(word) for sentence in sentences for word in sentence.words)

        def queries() -> list[Query]:
            query = self.tagger.query(Sentence(()), cell, self.samples, options)
            return [replace(query, sentence=sentence) for sentence in sentences]

        return Job(queries, list, characters * max(1, self.samples))

    def parts(self, sentences: Sequence[Sentence]) -> Iterator[list[Sentence]]:
        """Split sentences into parts that are each within the limits of a request; reject a sentence that is not."""
        most_words = self.settings.max_words
        most_characters = min(self.settings.max_characters, max(1, MAX_WORK // max(1, self.samples)))
        part, words, characters = [], 0, 0
        for sentence in sentences:
            n_words, n_characters = len(sentence), sum(map(len, sentence.words))
            if n_words > most_words:
                raise too_large("words in a sentence", most_words, n_words)
            if n_characters > most_characters:
                raise too_large("characters in a sentence", most_characters, n_characters)
            if words + n_words > most_words or characters + n_characters > most_characters:
                yield part
                part, words, characters = [], 0, 0
            part.append(sentence)
            words, characters = words + n_words, characters + n_characters
        if part:
            yield part

    def run(self, jobs: Sequence[Job]) -> list[Any]:
        """Find the answer to each job, or the exception that prevented it."""
        queries = [_attempt(job.queries) for job in jobs]
        answers: list[Any] = list(queries)
        groups = [[n for n, of_job in enumerate(queries) if not isinstance(of_job, Exception)]]
        if self.tagger.model.heads.vote is not None:  # each alone: votes (BEA) depend on all words that are tagged
            groups = [[n] for n in groups[0]]
        for group in groups:
            with self._encoding:
                taggings = iter(self.tagger.tag_queries([q for n in group for q in queries[n]], self.heads.of))
            for n in group:
                of_job = [next(taggings) for _ in queries[n]]
                answers[n] = _attempt(lambda n=n, of_job=of_job: jobs[n].answer(of_job))
        return answers

    def _samples(self, request: TagRequest) -> int:
        return self.samples if request.samples is None else request.samples

    def _queries(self, request: TagRequest) -> list[Query]:
        cells = [self.tagger.cell(cell) for cell in request.cells]
        units = {self.tagger.model.inventory.task(cell.task).unit for cell in cells}
        if Unit.PAIR in units and len(units) > 1:
            raise invalid("expected cells that all label pairs, or none; got both")
        if request.text is not None and Unit.PAIR in units:
            lines = [line for line in request.text.splitlines() if line.strip()]
            sentences = [as_sentence(line, cells[0].language, Unit.PAIR) for line in lines]
        elif Unit.PAIR in units:
            raise invalid("expected pairs as text, one a line with a tab between its sentences; got words")
        elif request.text is not None:
            sentences = list(split_text(request.text, cells[0].language))
        else:
            sentences = [Sentence(tuple(words)) for words in request.sentences or () if words]
        n_words = sum(map(len, sentences))
        if not n_words:
            raise invalid("expected at least one word, got none")
        if n_words > self.settings.max_words:
            raise too_large("words", self.settings.max_words, n_words)
        options = TaggingOptions(interval=INTERVAL) if request.distributions else None
        by_cell = [self.tagger.query(Sentence(()), cell, self._samples(request), options) for cell in cells]
        return [replace(query, sentence=sentence) for query in by_cell for sentence in sentences]

    def _answer(self, request: TagRequest, taggings: Sequence[Tagging]) -> bytes:
        n_sentences = len(taggings) // len(request.cells)
        sentences = [tagging.sentence for tagging in taggings[:n_sentences]]
        parts = [taggings[i : i + n_sentences] for i in range(0, len(taggings), n_sentences)]
        answer = {
            "version": __version__,
            "samples": self._samples(request),
            "sentences": [
                {"words": s.words, "spaces": s.spaces or [True] * len(s), "offsets": s.offsets} for s in sentences
            ],
            "taggings": [
                {
                    "cell": str(part[0].cell),
                    "unit": part[0].unit,
                    "seen": part[0].cell in self.tagger.seen,
                    "label_names": part[0].label_names,
                    "sentences": [sentence_values(tagging) for tagging in part],
                }
                for part in parts
            ],
        }
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()


def _attempt(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (CrossfillError, ApiError) as error:
        return error


def n_characters(request: TagRequest) -> int:
    """Count the characters in the text of a request."""
    if request.text is not None:
        return len(request.text)
    return sum(len(word) for sentence in request.sentences or () for word in sentence)


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
