"""The operations of teaching: text comes in, sentences go out tagged and come back corrected, and the cell learns."""

from io import BytesIO
from typing import Annotated, Any, Literal

from fastapi import Body, FastAPI, Request, Response
from pydantic import Field

from crossfill.data.streams import Format, read_items
from crossfill.data.writers import WRITERS
from crossfill.errors import DataError
from crossfill.grid.sentence import UNLABELLED, Corpus, Sentence
from crossfill.grid.text_keys import text_key
from crossfill.prediction.tagging import DIGITS, Tagging, TaggingOptions
from crossfill.tagger.annotation import Cost, Strategy
from crossfill.teaching.journal import MOST_NAME, Accepted
from crossfill.teaching.service import Teacher
from crossfill.web.engine import INTERVAL, RequestBody, Words, sentence_values, words_and_spaces
from crossfill.web.problems import check_size
from crossfill.web.request_queue import RequestQueue

MOST_AGAIN = 50  # sentences of others that are offered again at once
RECENT = 20  # corrected sentences that an answer shows


Name = Annotated[str, Field(max_length=MOST_NAME, description="Who corrects, for the journal.")]
Each = Annotated[bool, Field(description="Also offer what others accepted and this person did not.")]
Id = Annotated[str, Field(pattern="^[0-9a-f]{12}$", description="Of a sentence that was accepted.")]
Key = Annotated[str, Field(pattern="^[0-9a-f]{16}$", description="Of a text, however it is cut into words.")]


class CellRequest(RequestBody):
    """A cell."""

    cell: str = Field(max_length=200, description="A cell, as ner/wol.")


class TextRequest(CellRequest):
    """Text whose sentences are to be corrected."""

    text: str
    who: Name = ""
    each: Each = False
    format: Format = Field(default="text", description="Plain text is split by the rules of the cell's language.")


class NextRequest(CellRequest):
    """Which sentence comes next."""

    strategy: Strategy = Field(default="coverage", description="As in `crossfill annotate`.")
    cost: Cost = Field(default="sentences", description="What effort is counted in.")
    who: Name = ""
    each: Each = False
    tab: str = Field(default="", max_length=32, description="Any name; what others were given comes last for a while.")
    skip: Key | None = Field(default=None, description="A sentence to offer again only when no other is left.")


class AcceptRequest(CellRequest):
    """A sentence with its right labels."""

    words: Words = Field(min_length=1)
    labels: Words = Field(min_length=1, description="One for each word, IOB2 for spans; empty: left open.")
    spaces: Annotated[list[bool], Field(fail_fast=True)] | None = Field(
        default=None, description="Whether a space follows each word; by default one follows every word."
    )
    who: Name = ""
    replaces: Id | None = None


class ListRequest(CellRequest):
    """A word list."""

    text: str = Field(
        description="A form, a tab and its labels on each line; or LIFT, or Standard Format. Empty: none."
    )
    who: Name = ""


class WithdrawRequest(CellRequest):
    """A sentence to take back."""

    id: Id
    who: Name = ""


class BackRequest(CellRequest):
    """A state to return to."""

    number: int = Field(ge=0, le=1_000_000)
    who: Name = ""


def add_teaching(app: FastAPI, teacher: Teacher, queue: RequestQueue) -> None:
    """Add the operations of teaching to an app."""
    tagger, limits = teacher.tagger, queue.settings

    def operation(path: str, summary: str) -> Any:
        return app.post(f"/api/teach/{path}", summary=summary)

    def example(**values: Any) -> Any:
        return Body(examples=[{"cell": str(tagger.cells[0]), **values}])

    @operation("text", "Add text to correct")
    async def text(asked: Annotated[TextRequest, example(text="Dakar mooy péeyu Senegaal.")]) -> dict[str, Any]:
        """The sentences of a text wait, but for those that wait already or were accepted; answers how many are new."""
        check_size("characters", limits.max_characters, len(asked.text))

        def work() -> dict[str, Any]:
            cell = tagger.cell(asked.cell)
            items = read_items(
                BytesIO(asked.text.encode()), "the text", asked.format, tagger.segmenter(cell, whole=True), "texts"
            )
            sentences = [item.sentence for item in items]
            check_size("words in a sentence", limits.max_words, max(map(len, sentences), default=0))
            done = teacher.by_text(cell, asked.who if asked.each else None)
            added = teacher.queue(cell).add(sentences, done)
            return {"added": added, "waiting": teacher.queue(cell).waiting(done)}

        return await queue.call(work)

    @operation("next", "The sentence to correct next")
    async def following(request: Request, asked: Annotated[NextRequest, example()]) -> dict[str, Any]:
        """The waiting sentence that is most worth annotating, tagged, or null; and the state that tags."""
        cell = tagger.cell(asked.cell)

        def work() -> tuple[tuple[str, Sentence] | None, dict[str, Any]]:
            sentences, version, every = teacher.queue(cell), teacher.version(cell), teacher.by_text(cell)
            done = teacher.by_text(cell, asked.who) if asked.each else every
            if asked.skip is not None:
                sentences.skip(asked.skip)
            if asked.each and not sentences.waiting(done):
                others = [entry.sentence for key, entry in every.items() if key not in done]
                sentences.add(others[:MOST_AGAIN], done)
            taken = sentences.take(asked.strategy, asked.cost, version, asked.tab, done)
            return taken, {"state": version, "waiting": sentences.waiting(done), "sentence": None}

        taken, answer = await queue.call(work)
        if taken is not None:
            key, sentence = taken
            (job,) = queue.engine.jobs([sentence], cell, TaggingOptions(interval=INTERVAL))
            (tagging,) = await queue.do(request, queue.batcher.submit(job))
            answer["sentence"] = {"key": key, **words_and_spaces(sentence), **sentence_values(tagging)}
            answer["sentence"] |= _given(tagging)
        return answer

    @operation("clear", "Let nothing wait")
    async def clear(asked: Annotated[CellRequest, example()]) -> dict[str, Any]:
        """Sentences that wait are removed; those that were accepted stay."""
        await queue.call(lambda: teacher.queue(asked.cell).clear())
        return {"added": 0, "waiting": 0}

    @operation("accept", "Accept a sentence")
    async def accept(asked: Annotated[AcceptRequest, example(**_example(teacher))]) -> dict[str, Any]:
        """Keep a corrected sentence: it is on disk when the answer comes.

        Answers its `id`, another's entry of the same text that it `replaced`, and how many sentences count.
        """
        check_size("words", limits.max_words, len(asked.words))
        check_size("characters", limits.max_characters, sum(map(len, asked.words)))
        for values in (asked.labels, asked.spaces):
            if values is not None and len(values) != len(asked.words):
                raise DataError(f"expected as many labels and spaces as words, {len(asked.words)}; got {len(values)}")
        spaces = () if asked.spaces is None or all(asked.spaces) else tuple(asked.spaces)

        def work() -> dict[str, Any]:
            sentence = Sentence(tuple(asked.words), tuple(asked.labels), spaces)
            before = teacher.by_text(asked.cell).get(text_key(sentence))
            (entry,) = teacher.accept(asked.cell, [sentence], asked.who, asked.replaces)
            replaced = _shown(before) if before is not None and before.id != asked.replaces else None
            return {"id": entry.id, "replaced": replaced, "sentences": len(teacher.active(asked.cell))}

        return await queue.call(work)

    @operation("withdraw", "Take a sentence back")
    async def withdraw(asked: Annotated[WithdrawRequest, example(id="0123456789ab")]) -> dict[str, Any]:
        """A sentence that was accepted no longer counts; the journal keeps it."""
        await queue.call(lambda: teacher.withdraw(asked.cell, [asked.id], asked.who))
        return {}

    @operation("list", "Give a word list")
    async def list_words(asked: Annotated[ListRequest, example(text="Dakar\tLOC")]) -> dict[str, Any]:
        """Keep the word list of the cell, in place of any other, and learn from it; answers how many forms it has."""
        entry = await queue.call(lambda: teacher.list_words(asked.cell, asked.text.strip() and asked.text, asked.who))
        return {"forms": len(entry.forms)}

    @operation("learn", "Learn")
    async def learn(asked: Annotated[CellRequest, example()]) -> dict[str, Any]:
        """Adapt the cell to the sentences that count, in the background; not if it is busy or nothing is new."""
        return {"begun": await queue.call(lambda: teacher.learn(asked.cell))}

    @operation("back", "Return to a state")
    async def back(asked: Annotated[BackRequest, example(number=0)]) -> dict[str, Any]:
        """Return to an earlier state, or to a later one again, and to the sentences of that time."""
        await queue.call(lambda: teacher.go_back(asked.cell, asked.number, asked.who))
        return {}

    @operation("save", "Save the model")
    async def save(asked: Annotated[CellRequest, example()]) -> dict[str, Any]:
        """Write the adapted cell into the model folder, which nothing else changes; answers the file."""
        path = await queue.call(lambda: teacher.save_model(asked.cell))
        return {"file": f"{path.parent.name}/{path.name}"}

    @app.get("/api/teach/progress", summary="How far a cell has come")
    async def progress(cell: str, who: Name | None = None) -> dict[str, Any]:
        """Sentences, estimated score, learning curve, and the states one can return to.

        `unlearned` sentences wait for the next adaptation; `state` tags now, and later sentences follow `current`. With
        `who`, those are `waiting` that this person has not done; `listed` are the forms of the word list.
        """
        asked = tagger.cell(cell)

        def work() -> dict[str, Any]:
            recent = [_shown(entry) for entry in teacher.active(asked)[: -RECENT - 1 : -1]]
            return {**teacher.progress(asked, who), "recent": recent}

        return await queue.call(work)

    @app.get("/api/teach/sentences", summary="Corrected sentences", response_class=Response)
    async def sentences(cell: str, format: Literal["bio", "conllu", "jsonl"] = "bio") -> Response:  # noqa: A002
        """The sentences that count, as a file."""
        asked = tagger.cell(cell)

        def work() -> bytes:
            corpus = Corpus.from_sentences(entry.sentence for entry in teacher.active(asked))
            return WRITERS[f".{format}"](corpus, asked.task, tagger.model.inventory.task(asked.task).labels)

        headers = {"content-disposition": f'attachment; filename="{asked.file_name}.{format}"'}
        return Response(await queue.call(work), media_type="text/plain; charset=utf-8", headers=headers)


def _given(tagging: Tagging) -> dict[str, Any]:
    """Show the labels that a sentence came with in place of the model's, and how probable the model finds each."""
    known, labels = tagging.task.labels, tagging.sentence.labels
    if not labels or not {*known, UNLABELLED}.issuperset(labels):
        return {}
    given = enumerate(labels)
    confidence = [float(tagging.probabilities[i, known.index(y)]) if y != UNLABELLED else None for i, y in given]
    return {"labels": labels, "confidence": [value and round(value, DIGITS) for value in confidence]}


def _shown(entry: Accepted) -> dict[str, Any]:
    values = {"id": entry.id, "who": entry.who, "when": entry.when, "labels": entry.sentence.labels}
    return values | words_and_spaces(entry.sentence)


def _example(teacher: Teacher) -> dict[str, Any]:
    """Make a sentence of one word, with a label that the first task has."""
    labels = next(iter(teacher.tagger.model.inventory.tasks.values())).labels
    return {"words": ["Dakar"], "labels": [next(label for label in labels if not label.startswith("I-"))]}
