"""Schemas of the operations of teaching."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from crossfill.data.streams import Format
from crossfill.tagger.annotation import Cost, Strategy
from crossfill.teaching.checks import MOST_NAME
from crossfill.web.schemas import Answer, FirstProblem

Name = Annotated[str, Field(max_length=MOST_NAME, description="Who corrects, as it will stand in the journal.")]
Id = Annotated[str, Field(pattern="^[0-9a-f]{12}$", description="Of a sentence that was accepted.")]
Key = Annotated[str, Field(pattern="^[0-9a-f]{16}$", description="Of a text, however it is cut into words.")]


class CellRequest(BaseModel):
    """A cell."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    cell: str = Field(max_length=200, description="A cell, as ner/wol.")


class TextRequest(CellRequest):
    """Text whose sentences are to be corrected."""

    text: str
    format: Format = Field(default="text", description="Plain text is split by the rules of the cell's language.")


class NextRequest(CellRequest):
    """Which sentence comes next."""

    strategy: Strategy = Field(default="coverage", description="As in `crossfill annotate`.")
    cost: Cost = Field(default="sentences", description="What effort is counted in.")
    tab: str = Field(
        default="",
        max_length=32,
        description="Any name; sentences that were given to others are held back for a while.",
    )
    skip: Key | None = Field(default=None, description="A sentence to offer again only when no other is left.")


class AcceptRequest(CellRequest):
    """A sentence with its right labels."""

    words: Annotated[list[str], FirstProblem()] = Field(min_length=1)
    labels: Annotated[list[str], FirstProblem()] = Field(min_length=1, description="One for each word; IOB2 for spans.")
    spaces: Annotated[list[bool], FirstProblem()] | None = Field(
        default=None, description="Whether a space follows each word; by default one follows every word."
    )
    who: Name = ""
    replaces: Id | None = None


class WithdrawRequest(CellRequest):
    """A sentence to take back."""

    id: Id
    who: Name = ""


class BackRequest(CellRequest):
    """A state to return to."""

    number: int = Field(ge=0, le=1_000_000)
    who: Name = ""


class TextAnswer(Answer):
    """What waits to be corrected."""

    added: int = Field(description="Sentences that are new.")
    waiting: int


class WaitingSentence(BaseModel):
    """A sentence that waits, tagged; one entry per word."""

    key: str
    words: list[str]
    spaces: list[bool]
    labels: list[str]
    confidence: list[float]
    entropy: list[float]
    mutual_information: list[float]
    probabilities: list[list[float]] = Field(description="Words × labels, in the order of the task's labels.")


class NextAnswer(Answer):
    """The sentence to correct next."""

    state: str = Field(description="The number of the state that the cell was tagged in.")
    waiting: int
    sentence: WaitingSentence | None = Field(description="null: nothing waits.")


class AcceptedSentence(BaseModel):
    """A sentence in force."""

    id: str
    who: str
    when: str
    words: list[str]
    labels: list[str]
    spaces: list[bool]


class AcceptAnswer(Answer):
    """The sentence is on disk."""

    id: str
    replaced: AcceptedSentence | None = Field(description="The entry of the same text that it took the place of.")
    sentences: int = Field(description="Sentences in force.")


class DoneAnswer(Answer):
    """Whether anything came of it."""

    begun: bool


class SaveAnswer(Answer):
    """The cell is in the model folder."""

    file: str


class ScoreAnswer(BaseModel):
    """A score or a difference of scores, with a 95 % interval."""

    value: float
    low: float | None
    high: float | None


class CurveAnswer(BaseModel):
    """The score with some of the sentences."""

    sentences: int
    score: ScoreAnswer


class EstimateAnswer(BaseModel):
    """What the corrected sentences say of the cell, each of them left out in turn."""

    score: ScoreAnswer
    curve: list[CurveAnswer]
    worth: ScoreAnswer | None = Field(description="The gain that the next 20 sentences promise.")


class StateAnswer(BaseModel):
    """A state that one can return to."""

    number: int
    when: str
    sentences: int
    score: ScoreAnswer | None


class ProgressAnswer(Answer):
    """How far the teaching of a cell has come."""

    cell: str
    status: Literal["seen", "unseen"]
    metric: str
    sentences: int
    words: int
    unlearned: int = Field(description="Sentences that the next adaptation will learn.")
    changed: bool = Field(description="Whether there is anything to learn: new sentences, or some taken back.")
    waiting: int
    state: str = Field(description="The number of the state that tags now.")
    current: int = Field(description="The number of the state whose sentences, and later ones, are in force.")
    busy: bool
    every: int = Field(description="The cell learns by itself after so many new sentences; 0: it does not.")
    problem: str | None
    estimate: EstimateAnswer | None
    states: list[StateAnswer]
    recent: list[AcceptedSentence] = Field(description="The sentences in force that were accepted last, latest first.")
