"""Learning from sentences that were labelled in other programs."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.teaching.lesson import text_key
from crossfill.teaching.teacher import Teacher
from crossfill.web.desk import Desk
from crossfill.web.problems import ApiError, too_large
from crossfill.web.schemas import Problem
from crossfill.web.teach import Aside

CHANGING_PROBLEMS: dict[int | str, dict[str, Any]] = {
    403: {"model": Problem, "description": "A page of another site"},
    409: {"model": Problem, "description": "The server does not teach"},
}


class Lesson(NamedTuple):
    """Labelled sentences of one person."""

    who: str
    sentences: Sequence[Sentence]


class Lessons:
    """Takes labelled sentences, and has cells learn from them, where there is a teacher."""

    def __init__(self, teacher: Teacher | None, desk: Desk) -> None:
        self._teacher, self._most_words = teacher, desk.settings.max_words
        self._aside = Aside(desk.settings.queue, desk.settings.timeout)

    def busy(self, cell: Cell) -> bool:
        """Whether a cell is learning."""
        return self._present().busy(cell)

    async def take(self, cell: Cell, read: Callable[[], Sequence[Lesson]]) -> int:
        """Keep sentences that are new or were labelled anew; they are on disk when it returns, with their number."""
        teacher = self._present()

        def work() -> int:
            lessons, known, n = read(), teacher.by_text(cell), 0
            for lesson in lessons:
                new = {text_key(s): s for s in lesson.sentences if _differs(s, known.get(text_key(s)))}
                if longest := max(map(len, new.values()), default=0):
                    if longest > self._most_words:
                        raise too_large("words in a sentence", self._most_words, longest)
                    n += len(teacher.accept(cell, list(new.values()), lesson.who))
            return n

        return await self._aside.do(work)

    async def learn(self, cell: Cell) -> bool:
        """Have a cell learn in the background; false if nothing is new, or if it learns already and will go on."""
        teacher = self._present()
        return await self._aside.do(lambda: teacher.learn(cell))

    def _present(self) -> Teacher:
        if self._teacher is None:
            raise ApiError(409, "not_teaching", "this server only tags; start it with --teach FOLDER to have it learn")
        return self._teacher


def _differs(sentence: Sentence, entry: Any) -> bool:
    return entry is None or (entry.sentence.words, entry.sentence.labels) != (sentence.words, sentence.labels)
