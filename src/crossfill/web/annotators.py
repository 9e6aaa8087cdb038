"""What the adapters for annotation tools share: the cell in an address, its version, and annotations to learn from."""

from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from typing import Annotated, NamedTuple

from fastapi import Path

from crossfill.adaptation.heads import without_adapted
from crossfill.errors import CrossfillError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.text_keys import text_key
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.journal import Accepted
from crossfill.teaching.service import Teacher
from crossfill.web.problems import ApiError, too_large
from crossfill.web.request_queue import BackgroundCalls
from crossfill.web.settings import ServeSettings


def cell_in_address(tagger: Tagger) -> Callable[[str, str], Cell]:
    """Make the dependency that finds the cell in an address."""

    def find(
        task: Annotated[str, Path(description="A task of the model, as ner.")],
        language: Annotated[str, Path(description="A language of the model, as wol.")],
    ) -> Cell:
        try:
            return tagger.cell(f"{task}/{language}")
        except CrossfillError as error:
            raise ApiError(404, "not_found", str(error)) from None

    return find


class CellVersions:
    """Names of the versions of cells: of the model as it was loaded, and of what each cell has learned since."""

    def __init__(self, name: str, tagger: Tagger, learned: Callable[[Cell], str]) -> None:
        digest, base = sha256(), without_adapted(tagger.model)
        weights = base.heads.state_dict() | base.hidden.state_dict(prefix="hidden.")
        for key, tensor in sorted(weights.items()):
            digest.update(key.encode() + tensor.detach().cpu().contiguous().float().numpy().tobytes())
        self._base, self._learned = f"{name}-{digest.hexdigest()[:8]}", learned
        self._adapted = {
            cell: sha256(repr((adapted.examples.hashes, adapted.examples.labels.tolist())).encode()).hexdigest()[:8]
            for cell, adapted in tagger.adapted.items()
        }

    def of(self, cell: Cell) -> str:
        """Name the version that tags a cell now: new with every training and with every adaptation."""
        return "-".join([self._base, *filter(None, [self._adapted.get(cell)]), self._learned(cell)])


class AnnotatedSentences(NamedTuple):
    """Labelled sentences of one person."""

    who: str
    sentences: Sequence[Sentence]
    source: str | None = None
    """The annotation that they are from, as the journal names it."""


class IncomingAnnotations:
    """Takes sentences that were labelled in other programs, and has cells learn from them, where there is a teacher."""

    def __init__(self, teacher: Teacher | None, settings: ServeSettings) -> None:
        self._teacher, self._most_words = teacher, settings.max_words
        self._background = BackgroundCalls(settings)

    def busy(self, cell: Cell) -> bool:
        """Whether a cell is learning."""
        return self._present().busy(cell)

    async def accept(self, cell: Cell, read: Callable[[], Sequence[AnnotatedSentences]]) -> int:
        """Keep sentences that are new or have new labels; they are on disk when it returns, with their number."""
        teacher = self._present()

        def work() -> int:
            annotations, known, n_accepted = read(), teacher.by_text(cell), 0
            for who, sentences, source in annotations:
                new = {text_key(s): s for s in sentences if _differs(s, known.get(text_key(s)))}
                if (longest := max(map(len, new.values()), default=0)) > self._most_words:
                    raise too_large("words in a sentence", self._most_words, longest)
                if new:
                    n_accepted += len(teacher.accept(cell, list(new.values()), who, source=source))
            return n_accepted

        return await self._background.do(work)

    async def forget(self, cell: Cell, sources: Collection[str], who: str) -> None:
        """Take back the sentences of these annotations."""
        teacher = self._present()

        def work() -> None:
            teacher.withdraw(cell, [entry.id for entry in teacher.active(cell) if entry.source in sources], who)

        await self._background.do(work)

    async def learn(self, cell: Cell) -> bool:
        """Have a cell learn in the background; false if nothing is new, or if it learns already and will go on."""
        teacher = self._present()
        return await self._background.do(lambda: teacher.learn(cell))

    def _present(self) -> Teacher:
        if self._teacher is None:
            raise ApiError(409, "not_teaching", "this server only tags; start it with --teach FOLDER to have it learn")
        return self._teacher


def _differs(sentence: Sentence, entry: Accepted | None) -> bool:
    return entry is None or (entry.sentence.words, entry.sentence.labels) != (sentence.words, sentence.labels)
