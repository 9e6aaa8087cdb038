"""Schemas of requests, answers and problems, as the OpenAPI document shows them."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema

from crossfill import __version__
from crossfill.grid.task import Unit
from crossfill.prediction.tagging import Span


@dataclass(frozen=True)
class FirstProblem:
    """Marks a list whose validation ends at its first problem, of which a request could have many thousands."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if schema["type"] == "list":
            schema["fail_fast"] = True
        return schema


class RequestBody(BaseModel):
    """What is sent to the API: nothing but the fields that are known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _no_other_field(cls, values: Any) -> Any:
        """Refuse the first unknown field: pydantic would list them all."""
        known = cls.model_fields
        if other := next((key for key in values if key not in known), None) if isinstance(values, dict) else None:
            raise ValueError(f"{other[:100]}: expected {', '.join(known)}, and nothing else")
        return values


class TagRequest(RequestBody):
    """Text to tag, and the cells to tag it in: either `text` or `sentences`, not both."""

    cells: Annotated[list[str], FirstProblem()] = Field(
        min_length=1, description="Cells, as ner/wol; all share one pass through the encoder."
    )
    text: str | None = Field(
        default=None,
        description="Raw text, split into sentences and words by the rules of the first cell's language; for cells "
        "that label pairs, one pair a line with a tab between its sentences.",
    )
    sentences: Annotated[list[Annotated[list[str], FirstProblem()]], FirstProblem()] | None = Field(
        default=None, description="Sentences that are already split into words."
    )
    samples: int | None = Field(
        default=None,
        ge=0,
        description="Posterior samples to average over; 0 plugs in the posterior means; default: the model's.",
    )
    distributions: bool = Field(default=False, description="Give the probability of every label, with error bars.")

    @model_validator(mode="after")
    def _one_text(self) -> "TagRequest":
        if (self.text is None) == (self.sentences is None):
            raise ValueError("expected text or sentences, one of them")
        return self


class Answer(BaseModel):
    """What every answer contains."""

    version: str = Field(default=__version__, description="The version of crossfill that answers.")


class Problem(Answer):
    """Why a request was not answered."""

    error: str = Field(description="The kind of problem, for programs.")
    message: str = Field(description="What was expected, what was found and what to do, for people.")


class Health(Answer):
    """Whether the server works."""

    status: Literal["ok"]
    waiting: int = Field(description="Requests that wait.")
    capacity: int = Field(description="Requests that can wait; more are turned away with 429.")


class SentenceAnswer(BaseModel):
    """A sentence, split into words."""

    words: list[str]
    spaces: list[bool] = Field(description="Whether a space follows each word.")
    offsets: list[tuple[int, int]] = Field(
        description="Start and end (exclusive) of each word in `text`, in Unicode code points (not UTF-16 units, as in "
        "JavaScript); for `sentences`, in the sentence's words joined by single spaces."
    )


class SentenceTagging(BaseModel):
    """The labels of a sentence in a cell, and how sure the model is; one entry per word."""

    labels: list[str]
    confidence: list[float]
    entropy: list[float] = Field(description="Nats.")
    mutual_information: list[float] = Field(description="The epistemic part of the entropy; the rest is aleatoric.")
    spans: list[Span]
    probabilities: list[list[float]] | None = Field(default=None, description="Words × labels.")
    low: list[list[float]] | None = Field(default=None, description="5 % quantile over the posterior samples.")
    high: list[list[float]] | None = Field(default=None, description="95 % quantile.")


class CellTagging(BaseModel):
    """All sentences in one cell."""

    cell: str
    unit: Unit = Field(description="What is labelled. Sentences and pairs have one entry each, not one per word.")
    seen: bool
    label_names: list[str] = Field(description="The labels of the columns of probabilities.")
    sentences: list[SentenceTagging]


class TagAnswer(Answer):
    """A tagged text."""

    samples: int = Field(description="Posterior samples averaged over; 0 is plug-in prediction.")
    sentences: list[SentenceAnswer]
    taggings: list[CellTagging] = Field(description="One for each cell asked for, in that order.")


class ModelAnswer(BaseModel):
    """The model that is served."""

    name: str
    method: str
    encoder: str
    samples: int = Field(description="Posterior samples by default.")
    bayesian: bool = Field(description="Whether the method has a posterior to sample from.")


class TaskAnswer(BaseModel):
    """A task with its labels."""

    name: str
    labels: list[str]
    metric: str
    unit: Unit = Field(description="What it labels: each word, a sentence, or a pair of sentences.")


class LanguageAnswer(BaseModel):
    """A language, and where its posterior lies on the map."""

    code: str = Field(description="ISO 639-3.")
    tag: str = Field(description="BCP 47; `und` for codes of private use.")
    name: str
    place: tuple[float, float] | None = Field(description="Posterior mean along the two first principal components.")
    spread: tuple[float, float] | None = Field(description="Standard deviation of the posterior along them.")
    examples: list[str]


class ExpectedAnswer(BaseModel):
    """What a cell without test data is expected to score, as seen cells did that were held out in turn."""

    score: float
    low: float
    high: float
    level: float = Field(description="Probability that the score lies from `low` to `high`.")


class CellAnswer(BaseModel):
    """A cell of the grid."""

    cell: str
    status: Literal["seen", "unseen"] = Field(description="Trained on; not trained on, as `seen` in /api/tag.")
    score: float | None = Field(description="The task's metric, posterior means plugged in; null: no test data known.")
    averaged_score: float | None
    n_words: int = Field(description="Words it was evaluated on.")
    expected: ExpectedAnswer | None = Field(description="Its expected score, where it has none and the model says so.")


class LimitsAnswer(BaseModel):
    """How much a request may ask for."""

    characters: int
    words: int
    samples: int
    cells: int
    seconds: float


class GridAnswer(Answer):
    """The grid of the model."""

    model: ModelAnswer
    tasks: list[TaskAnswer]
    languages: list[LanguageAnswer]
    cells: list[CellAnswer]
    map_shares: list[float] = Field(description="Share of the variance that each axis of the map shows; empty: no map.")
    limits: LimitsAnswer
    teach: bool = Field(description="Whether cells can be taught: then there are operations for it.")
