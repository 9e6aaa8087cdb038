"""The operations of teaching: text comes in, sentences go out tagged and come back corrected, and the cell learns."""

import asyncio
from collections.abc import Callable
from io import BytesIO
from typing import Any, Literal, TypeVar

from fastapi import FastAPI, Request, Response

from crossfill.data.streams import read_items
from crossfill.data.writers import WRITERS
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.prediction.tagging import Tagging, TaggingOptions
from crossfill.teaching.estimate import Score
from crossfill.teaching.journal import Accepted
from crossfill.teaching.lesson import text_key
from crossfill.teaching.teacher import Teacher
from crossfill.web import teach_schemas as schemas
from crossfill.web.desk import Desk
from crossfill.web.engine import sentence_values
from crossfill.web.problems import busy, invalid, too_large, unavailable
from crossfill.web.reading import BODY_PROBLEMS, PROBLEMS, body_of, read_json
from crossfill.web.schemas import Problem

RECENT = 20
"""Corrected sentences that an answer shows."""
_OTHER_SITE = {403: {"model": Problem, "description": "A page of another site"}}
_FORMATS = {"bio": ".bio", "conllu": ".conllu", "jsonl": ".jsonl"}
_CHANGES: dict[int | str, dict[str, Any]] = BODY_PROBLEMS | _OTHER_SITE
_LOOKS: dict[int | str, dict[str, Any]] = PROBLEMS | {code: BODY_PROBLEMS[code] for code in (422, 429, 503)}
Made = TypeVar("Made")


class Aside:
    """Work beside the tagging thread: as many requests as may wait for that one may wait here, and as long."""

    def __init__(self, queue: int, timeout: float) -> None:
        self._queue, self._timeout, self._waiting = queue, timeout, 0

    async def do(self, work: Callable[[], Made]) -> Made:
        """The result of work in another thread."""
        if self._waiting >= self._queue:
            raise busy()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.to_thread(work)
        except TimeoutError:
            raise unavailable(f"no answer within {self._timeout:g} seconds; try again") from None
        finally:
            self._waiting -= 1


def add_teaching(app: FastAPI, teacher: Teacher, desk: Desk) -> None:
    """Add the operations of teaching to an app."""
    tagger, limits = teacher.tagger, desk.settings
    aside, cell = Aside(limits.queue, limits.timeout), str(tagger.cells[0])

    def operation(path: str, summary: str, body: type[schemas.CellRequest], **example: Any) -> Any:
        extra = {"requestBody": body_of(body, {"cell": cell, **example})}
        return app.post(f"/api/teach/{path}", summary=summary, responses=_CHANGES, openapi_extra=extra)

    @operation("text", "Add text to correct", schemas.TextRequest, text="Dakar mooy péeyu Senegaal.")
    async def text(request: Request) -> schemas.TextAnswer:
        """The sentences of a text wait to be corrected, but for those that do already or were accepted."""
        asked = await read_json(request, schemas.TextRequest)
        if len(asked.text) > limits.max_characters:
            raise too_large("characters", limits.max_characters, len(asked.text))

        def work() -> schemas.TextAnswer:
            found = tagger.cell(asked.cell)
            content = asked.text.encode("utf-8", "surrogatepass")
            items = list(read_items(BytesIO(content), "the text", asked.format, found.language))
            sentences = [item.sentence for item in items]
            for sentence in sentences:
                if len(sentence) > limits.max_words:
                    raise too_large("words in a sentence", limits.max_words, len(sentence))
            done = teacher.by_text(found)
            added = teacher.pool(found).add(sentences, done)
            return schemas.TextAnswer(added=added, waiting=teacher.pool(found).waiting(done))

        return await aside.do(work)

    @operation("next", "The sentence to correct next", schemas.NextRequest)
    async def following(request: Request) -> schemas.NextAnswer:
        """The waiting sentence that is most worth annotating, tagged."""
        asked = await read_json(request, schemas.NextRequest)
        found = tagger.cell(asked.cell)

        def work() -> tuple[tuple[str, Sentence] | None, int, str]:
            pool, done, version = teacher.pool(found), teacher.by_text(found), teacher.version(found)
            if asked.skip is not None:
                pool.skip(asked.skip)
            return pool.take(asked.strategy, asked.cost, version, asked.tab, done), pool.waiting(done), version

        taken, waiting, version = await aside.do(work)
        if taken is None:
            return schemas.NextAnswer(state=version, waiting=waiting, sentence=None)
        key, sentence = taken
        (tagging,) = await desk.do(request, desk.engine.tagging([sentence], found, TaggingOptions()))
        words = {"words": list(sentence.words), "spaces": list(sentence.spaces or [True] * len(sentence))}
        shown = schemas.WaitingSentence(key=key, **words, **_tagged(tagging))
        return schemas.NextAnswer(state=version, waiting=waiting, sentence=shown)

    @operation("clear", "Let nothing wait", schemas.CellRequest)
    async def clear(request: Request) -> schemas.TextAnswer:
        """Sentences that wait are removed; those that were accepted stay."""
        asked = await read_json(request, schemas.CellRequest)
        await aside.do(lambda: teacher.pool(asked.cell).clear())
        return schemas.TextAnswer(added=0, waiting=0)

    @operation("accept", "Accept a sentence", schemas.AcceptRequest, **_example(teacher))
    async def accept(request: Request) -> schemas.AcceptAnswer:
        """Keep a corrected sentence: it is on disk when the answer comes."""
        asked = await read_json(request, schemas.AcceptRequest)
        if len(asked.words) > limits.max_words:
            raise too_large("words", limits.max_words, len(asked.words))
        if (characters := sum(map(len, asked.words))) > limits.max_characters:
            raise too_large("characters", limits.max_characters, characters)
        for values in (asked.labels, asked.spaces):
            if values is not None and len(values) != len(asked.words):
                raise invalid(f"expected as many labels and spaces as words, {len(asked.words)}; got {len(values)}")
        spaces = () if asked.spaces is None or all(asked.spaces) else tuple(asked.spaces)

        def work() -> schemas.AcceptAnswer:
            sentence = Sentence(tuple(asked.words), tuple(asked.labels), spaces)
            before = teacher.by_text(asked.cell).get(text_key(sentence))
            (made,) = teacher.accept(asked.cell, [sentence], asked.who, asked.replaces)
            replaced = _shown(before) if before is not None and before.id != asked.replaces else None
            return schemas.AcceptAnswer(id=made.id, replaced=replaced, sentences=len(teacher.in_force(asked.cell)))

        return await aside.do(work)

    @operation("withdraw", "Take a sentence back", schemas.WithdrawRequest, id="0123456789ab")
    async def withdraw(request: Request) -> schemas.DoneAnswer:
        """A sentence that was accepted no longer counts; the journal keeps it."""
        asked = await read_json(request, schemas.WithdrawRequest)
        await aside.do(lambda: teacher.withdraw(asked.cell, [asked.id], asked.who))
        return schemas.DoneAnswer(begun=True)

    @operation("learn", "Learn", schemas.CellRequest)
    async def learn(request: Request) -> schemas.DoneAnswer:
        """Adapt the cell to the sentences in force, in the background; not if it is busy or nothing is new."""
        asked = await read_json(request, schemas.CellRequest)
        return schemas.DoneAnswer(begun=await aside.do(lambda: teacher.learn(asked.cell)))

    @operation("back", "Return to a state", schemas.BackRequest, number=0)
    async def back(request: Request) -> schemas.DoneAnswer:
        """Return to an earlier state, or to a later one again, and to the sentences of that time."""
        asked = await read_json(request, schemas.BackRequest)
        await aside.do(lambda: teacher.go_back(asked.cell, asked.number, asked.who))
        return schemas.DoneAnswer(begun=True)

    @operation("save", "Save the model", schemas.CellRequest)
    async def save(request: Request) -> schemas.SaveAnswer:
        """Write the adapted cell into the model folder, which nothing else changes."""
        asked = await read_json(request, schemas.CellRequest)
        path = await aside.do(lambda: teacher.save_model(asked.cell))
        return schemas.SaveAnswer(file=f"{path.parent.name}/{path.name}")

    @app.get("/api/teach/progress", summary="How far a cell has come", responses=_LOOKS)
    async def progress(cell: str) -> schemas.ProgressAnswer:
        """Sentences, estimated score, learning curve, and the states one can return to."""
        found = tagger.cell(cell)
        return await aside.do(lambda: _progress(teacher, found))

    @app.get("/api/teach/sentences", summary="Corrected sentences", responses=_LOOKS, response_class=Response)
    async def sentences(cell: str, format: Literal["bio", "conllu", "jsonl"] = "bio") -> Response:  # noqa: A002
        """The sentences in force as a file."""
        found = tagger.cell(cell)

        def work() -> bytes:
            corpus = Corpus.from_sentences(entry.sentence for entry in teacher.in_force(found))
            return WRITERS[_FORMATS[format]](corpus, found.task, tagger.model.inventory.labels[found.task])

        name = f"{found.task.replace(':', '=')}-{found.language}{_FORMATS[format]}"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(await aside.do(work), media_type="text/plain; charset=utf-8", headers=headers)


def _tagged(tagging: Tagging) -> dict[str, Any]:
    values = sentence_values(tagging)
    return {name: values[name] for name in ("labels", "confidence", "entropy", "mutual_information")} | {
        "probabilities": tagging.probabilities.astype(float).round(4).tolist()
    }


def _progress(teacher: Teacher, cell: Cell) -> schemas.ProgressAnswer:
    found, in_force = teacher.progress(cell), teacher.in_force(cell)
    estimate = found.estimate
    return schemas.ProgressAnswer(
        cell=str(cell),
        status="seen" if cell in teacher.tagger.seen else "unseen",
        metric=found.metric,
        sentences=found.sentences,
        words=found.words,
        unlearned=found.unlearned,
        changed=found.changed,
        waiting=teacher.pool(cell).waiting(teacher.by_text(cell)),
        state=found.version,
        current=found.current,
        busy=found.busy,
        every=teacher.every,
        problem=found.problem,
        estimate=estimate
        and schemas.EstimateAnswer(
            score=_score(estimate.score),
            curve=[schemas.CurveAnswer(sentences=p.sentences, score=_score(p.score)) for p in estimate.curve],
            worth=_score(estimate.worth) if estimate.worth else None,
        ),
        states=[
            schemas.StateAnswer(
                number=state.number,
                when=state.when,
                sentences=len(state.ids),
                score=state.estimate
                and schemas.ScoreAnswer(value=state.estimate.score, low=state.estimate.low, high=state.estimate.high),
            )
            for state in found.states
        ],
        recent=[_shown(entry) for entry in in_force[: -RECENT - 1 : -1]],
    )


def _score(score: Score) -> schemas.ScoreAnswer:
    return schemas.ScoreAnswer(value=score.value, low=score.low, high=score.high)


def _shown(entry: Accepted) -> schemas.AcceptedSentence:
    sentence = entry.sentence
    spaces = list(sentence.spaces or [True] * len(sentence))
    return schemas.AcceptedSentence(
        id=entry.id,
        who=entry.who,
        when=entry.when,
        words=list(sentence.words),
        labels=list(sentence.labels),
        spaces=spaces,
    )


def _example(teacher: Teacher) -> dict[str, Any]:
    """A sentence of one word, with a label that the first task has."""
    labels = next(iter(teacher.tagger.model.inventory.labels.values()))
    return {"words": ["Dakar"], "labels": [next(label for label in labels if not label.startswith("I-"))]}
