"""The component `crossfill`: tags documents in cells of a model, by their own tokens.

spaCy imports this module, by its entry point, whenever a pipeline is made: models and torch are imported on first use.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch, raise_error

from crossfill.integrations.spacy import annotations

if TYPE_CHECKING:
    from crossfill.grid.cells import Inventory
    from crossfill.tagger.tagger import Tagger

ErrorHandler = Callable[[str, "Crossfill", list[Doc], Exception], Any]
"""Called with the component's name, the component, documents, and the error."""


class Crossfill:
    """Tags documents in one or several cells, with one pass through the encoder."""

    def __init__(
        self,
        nlp: Language,  # noqa: ARG002  spaCy gives it by name
        name: str,
        model: str,
        cells: list[str],
        samples: int | None,
        options: dict[str, Any],
        encoder: str | None,
        spans_key: str,
        overwrite: bool,
        with_encoder: bool,
    ) -> None:
        """Check the settings, which docs/spacy.md explains; the model is loaded later."""
        self.name, self.model, self.encoder = name, model, encoder
        self.cells, self.samples, self.options = list(cells), samples, _checked(options)
        self.spans_key, self.overwrite, self.with_encoder = spans_key, overwrite, with_encoder
        self._tagger: Tagger | None = None
        self._on_error: ErrorHandler = raise_error
        annotations.register_extensions()
        if Path(model).is_dir():  # else it may come with from_disk, or from the hub
            from crossfill.checkpoint import read_description

            self._check(read_description(Path(model))[1])

    @property
    def tagger(self) -> "Tagger":
        """The model, loaded on first use."""
        if self._tagger is None:
            self._tagger = self._loaded(self.model)
        return self._tagger

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its tasks, if the model is loaded."""
        if self._tagger is None:
            return ()
        tasks = dict.fromkeys(self._tagger.cell(cell).task for cell in self.cells)
        return tuple(label for task in tasks for label in self._tagger.model.inventory.task(task).labels)

    def __call__(self, doc: Doc) -> Doc:
        """Tag a document."""
        try:
            self._tag([doc])
        except Exception as error:
            self._on_error(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Tag a stream of documents, a batch at a time."""
        for docs in minibatch(stream, batch_size):
            try:
                self._tag(docs)
            except Exception as error:
                self._on_error(self.name, self, docs, error)
                continue
            yield from docs

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002  nothing to leave out
        """Save the model, with a frozen encoder if `with_encoder`."""
        self.tagger.save(path, self.with_encoder)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "Crossfill":  # noqa: ARG002
        """Take the model in a folder, instead of the one that was named."""
        self._tagger = self._loaded(path)
        return self

    def set_error_handler(self, error_handler: ErrorHandler) -> None:
        """Set what handles errors of documents; by default they are raised."""
        self._on_error = error_handler

    def get_error_handler(self) -> ErrorHandler:
        """Return what handles errors of documents."""
        return self._on_error

    def _tag(self, docs: Sequence[Doc]) -> None:
        from crossfill.prediction.tagging import TaggingOptions

        parts = [annotations.sentences(doc) for doc in docs]
        sentences = (part.sentence for of_doc in parts for part in of_doc)
        taggings = self.tagger.tag_cells(sentences, self.cells, self.samples, TaggingOptions(**self.options))
        for doc, of_doc in zip(docs, parts, strict=True):
            tagged = [next(taggings) for _ in of_doc]
            columns = [
                annotations.TokenColumn.of(doc, of_doc, [row[i] for row in tagged]) for i in range(len(self.cells))
            ]
            annotations.write(doc, [column for column in columns if column], self.spans_key, self.overwrite)

    def _loaded(self, model: str | Path) -> "Tagger":
        from crossfill.tagger.tagger import load

        tagger = load(model, encoder=self.encoder)
        self._check(tagger.model.inventory)
        return tagger

    def _check(self, inventory: "Inventory") -> None:
        """Refuse cells that a model does not have, or whose labels have no place at tokens."""
        from crossfill.data.codes import find_cell
        from crossfill.errors import ConfigError
        from crossfill.grid.cells import Cell
        from crossfill.grid.task import Unit

        known = frozenset(Cell(task, language) for task in inventory.tasks for language in inventory.languages)
        tasks = [find_cell(cell, known).task for cell in self.cells]
        if not tasks or len(set(tasks)) < len(tasks):
            raise ConfigError(f"expected one cell of each task, as ner/wol and pos/wol; got {self.cells or 'none'}")
        for task in tasks:
            if (unit := inventory.task(task).unit) is not Unit.WORD:
                raise ConfigError(f"expected tasks that label words, got {task}, which labels {unit}s; use predict")


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    from crossfill.errors import ConfigError, unknown
    from crossfill.prediction.tagging import TaggingOptions

    names = [field.name for field in fields(TaggingOptions)]
    for name in options:
        if name not in names:
            raise ConfigError(unknown("option", name, names))
    return options


make_crossfill = Language.factory(
    "crossfill",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", "token.pos", "token.tag", "token.morph"],
    default_config={
        "samples": None,
        "options": {},
        "encoder": None,
        "spans_key": "crossfill",
        "overwrite": True,
        "with_encoder": True,
    },
)(Crossfill)
