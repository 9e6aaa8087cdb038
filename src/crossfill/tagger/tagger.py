"""The tagger: a trained model that tags sentences in any cell of its grid, one at a time or as a stream."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import ModelHubMixin

from crossfill import checkpoint
from crossfill.adaptation.cell import AdaptedCell, adapt_cell
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.heads import adapted_cells, check_test_data, generated_prior, with_adapted, with_tasks
from crossfill.adaptation.languages import add_language
from crossfill.adaptation.lexicon import Lexicon
from crossfill.adaptation.storage import load_adapted
from crossfill.config import Config
from crossfill.data.boundaries import Segmentation
from crossfill.data.codes import find_cell, find_language_in
from crossfill.data.labels import task_name
from crossfill.data.lexicons import read_lexicon
from crossfill.data.segmentation import Segmenter
from crossfill.errors import CheckpointError, ConfigError, DataError, first_line
from crossfill.evaluation.expected import Expectations, load_expected, save_expected
from crossfill.evaluation.results import CellResult, Results
from crossfill.evaluation.scoring import ALPHA, evaluate
from crossfill.grid.cells import Cell, Grid, html_grid
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Task, Unit
from crossfill.model import Classifier, Model
from crossfill.prediction.calibration import Calibration, TaskCalibration, load_calibration, save_calibration
from crossfill.prediction.language_choice import UNKNOWN, LanguageProfiles, mixed
from crossfill.prediction.predict import draw_head
from crossfill.prediction.queries import HeadOf, Query, tag_queries
from crossfill.prediction.tagging import Tagging, TaggingOptions
from crossfill.tagger.card import CardInfo, load_card_info, load_results, save_card_info, write_card
from crossfill.tagger.model_folder import (
    find_model,
    load_model,
    load_segmentation,
    save_model,
    save_results,
    save_segmentation,
)

Text = str | Sequence[str] | Sentence
"""A sentence, as words or as a string that is split into words; a pair, as two strings or as one with a tab between."""
CHUNK_SENTENCES, CHUNK_WORDS = 256, 8192
"""A stream is processed in chunks that end at this many sentences or words."""


class Tagger(ModelHubMixin, library_name="crossfill"):
    """A trained model, ready to tag: `tagger.tag("Dakar mooy péeyu Senegaal", cell="ner/wol")`."""

    def __init__(
        self,
        model: Model,
        config: Config,
        calibration: Calibration | None = None,
        results: Sequence[CellResult] = (),
        expectations: Expectations | None = None,
        card: CardInfo | None = None,
        profiles: LanguageProfiles | None = None,
    ) -> None:
        self.model, self.config, self.calibration = model.eval(), config, calibration
        self.results = Results(results)
        """Results of the last evaluation."""
        self.expectations = expectations
        """Expected scores of unseen cells, where seen cells were held out in turn."""
        self.card = card or CardInfo()
        """What its card says: what it was trained on, and where on the hub it was loaded from."""
        self.profiles = profiles
        """How its languages look, by which it chooses the language of a sentence."""
        self._hub_mixin_config = None  # else huggingface_hub writes a config.json of its own into the folder
        self._known = frozenset(self.cells)
        self.segmentation: Segmentation | None = None  # what treebanks taught of words and sentences in raw text
        self.unfinished = False  # whether its training was interrupted, so that it tags with the best state so far

    @classmethod
    def from_folder(cls, folder: Path, encoder: str | None = None, cache: Path | bool = False) -> "Tagger":
        """Load the tagger in a model folder."""
        model, config = load_model(folder, encoder, cache)
        tagger = cls(
            with_adapted(model, load_adapted(folder, model)),
            config,
            load_calibration(folder),
            load_results(folder),
            load_expected(folder),
            load_card_info(folder),
            LanguageProfiles.load(folder),
        )
        tagger.segmentation = load_segmentation(folder)
        tagger.unfinished = (folder / checkpoint.STATE).exists()
        return tagger

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells that it can tag: every task in every language of its grid, seen or not."""
        inventory = self.model.inventory
        return tuple(Cell(task, language) for task in inventory.tasks for language in inventory.languages)

    @property
    def seen(self) -> frozenset[Cell]:
        """The cells that it was trained on."""
        return self.model.seen

    @property
    def adapted(self) -> dict[Cell, AdaptedCell]:
        """The cells that were adapted to sentences of their own."""
        return adapted_cells(self.model)

    def cell(self, name: str | Cell) -> Cell:
        """Find the cell of this name, with a language code of ISO 639, UD or WikiANN: `ner/wol`, `ner/wo`."""
        return find_cell(name, self._known)

    def target(self, name: str | Cell) -> Cell:
        """Find the cell of this name, to tag in; of a task alone, that of the task in an unknown language: `ner`."""
        alone = isinstance(name, str) and "/" not in name
        given = name if isinstance(name, Cell) else Cell.parse(f"{name}/{UNKNOWN}" if alone else name)
        if given.language != UNKNOWN or UNKNOWN in self.model.inventory.languages:
            return self.cell(given)
        return Cell(self.model.inventory.task(task_name(given.task)).name, UNKNOWN)

    def __repr__(self) -> str:
        inventory, encoder = self.model.inventory, Path(self.config.encoder.name).name
        return (
            f"<Tagger {self.config.method} over {encoder}: {', '.join(inventory.tasks)} in {len(inventory.languages)} "
            f"languages, {len(self.seen)} of {len(self.cells)} cells seen{', training unfinished' * self.unfinished}>"
        )

    def _repr_html_(self) -> str:
        marks = {cell: "■" if cell in self.seen else "▣" for cell in self.cells} | dict.fromkeys(self.adapted, "◆")
        return html_grid(f"{repr(self)[1:-1]}: ■ seen, ▣ filled{', ◆ adapted' if self.adapted else ''}", marks)

    def tag(
        self, text: Text, cell: str | Cell, samples: int | None = None, options: TaggingOptions | None = None
    ) -> Tagging:
        """Tag one sentence, given as words or as a string; `samples` 0 plugs in the posterior means."""
        return next(self.tag_many([text], cell, samples, options))

    def tag_many(
        self, texts: Iterable[Text], cell: str | Cell, samples: int | None = None, options: TaggingOptions | None = None
    ) -> Iterator[Tagging]:
        """Tag a stream of sentences lazily, in their order and in constant memory."""
        if isinstance(texts, str | Sentence):
            raise DataError(
                f"expected an iterable of sentences, got one {type(texts).__name__}; use tag() for one sentence, or "
                "put sentences in a list"
            )
        return (taggings[0] for taggings in self.tag_cells(texts, [cell], samples, options))

    def tag_cells(
        self,
        texts: Iterable[Text],
        cells: Sequence[str | Cell],
        samples: int | None = None,
        options: TaggingOptions | None = None,
        chunk_sentences: int = CHUNK_SENTENCES,
    ) -> Iterator[tuple[Tagging, ...]]:
        """Tag a stream of sentences, each in several cells, with one pass through the encoder."""
        targets = [self.target(cell) for cell in cells]
        if not targets:
            raise DataError("expected at least one cell, such as ner/wol; got none")
        units = {self.model.inventory.task(cell.task).unit for cell in targets}
        unit = Unit.PAIR if Unit.PAIR in units else Unit.WORD
        if unit is Unit.PAIR and len(units) > 1:
            raise DataError("expected cells that all label pairs, or none; got both; tag them one after the other")
        segmenter = self.segmenter(targets[0])
        sentences = (as_sentence(text, segmenter, unit) for text in texts)
        queries = [self.query(Sentence(()), cell, samples, options) for cell in targets]
        for chunk in _chunks(sentences, chunk_sentences):
            tagged = self.tag_queries([replace(query, sentence=sentence) for query in queries for sentence in chunk])
            yield from zip(*(tagged[i : i + len(chunk)] for i in range(0, len(tagged), len(chunk))), strict=True)

    def segmenter(self, cell: str | Cell, whole: bool = False) -> Segmenter:
        """Return what splits raw text in the language of a cell; see `Segmenter` for `whole`."""
        return Segmenter(self.target(cell).language, self.segmentation, whole)

    def query(
        self, text: Text, cell: str | Cell, samples: int | None = None, options: TaggingOptions | None = None
    ) -> Query:
        """Check what is asked, and make a query for `tag_queries`: a sentence to tag in a cell."""
        target, options = self.target(cell), options or TaggingOptions()
        sentence = as_sentence(text, self.segmenter(target), self.model.inventory.task(target.task).unit)
        n_samples = self.config.prediction.samples if samples is None else samples
        if n_samples < 0:
            raise ConfigError(f"expected samples of 0 (plug-in) or more, got {n_samples}")
        if options.interval is not None and not 0 < options.interval < 1:
            raise DataError(f"expected an interval between 0 and 1, such as 0.9; got {options.interval}")
        calibration = self._calibration(target, n_samples, options)
        return Query(sentence, target, n_samples, options, calibration)

    def tag_queries(self, queries: Sequence[Query], head_of: HeadOf | None = None) -> list[Tagging]:
        """Tag each sentence in its own cell, with one pass through the encoder, and heads from `head_of` if given.

        In a cell of an unknown language, it is tagged in the languages that it is probably in.
        """
        if not queries:
            return []
        shares = [self._shares(query) if query.cell.language == UNKNOWN else {} for query in queries]
        asked = []
        for query, of_languages in zip(queries, shares, strict=True):
            plain = query.options if len(of_languages) < 2 else TaggingOptions(interval=query.options.interval)
            in_each = (Cell(query.cell.task, language) for language in of_languages)
            asked += [self.query(query.sentence, cell, query.n_samples, plain) for cell in in_each] or [query]
        tagged = iter(tag_queries(self.model, asked, head_of or self.head))
        return [
            mixed(self.model, query, of_languages, [next(tagged) for _ in of_languages])
            if of_languages
            else next(tagged)
            for query, of_languages in zip(queries, shares, strict=True)
        ]

    def _shares(self, query: Query) -> dict[str, float]:
        """Return the probabilities of the languages of a query's sentence."""
        if self.profiles is None:
            known = ", ".join(self.model.inventory.languages[:20])
            raise DataError(
                f"{query.cell}: expected a language, as this model has nothing to choose one by; name one of {known}"
            )
        return self.profiles.probabilities(query.sentence)

    def head(self, cell: Cell, n_samples: int) -> Classifier:
        """Draw heads of a cell, the same at every call; 0 gives the head at the posterior means."""
        return draw_head(self.model, cell, n_samples, self.config.prediction.seed)

    def adapt(
        self,
        corpus: Corpus | Iterable[Sentence],
        cell: str | Cell,
        lexicon: str | Path | Mapping[str, str | Iterable[str]] | None = None,
    ) -> AdaptedCell:
        """Update the head of a cell with a few labelled sentences, a lexicon, or both, besides those of before.

        A task that the model does not know becomes a new row of its grid, with the labels of these sentences. The
        lexicon is a file, or forms with their labels: `{"bank": "NOUN,VERB"}`. The change is in memory until `save`.
        """
        labelled = corpus if isinstance(corpus, Corpus) else Corpus.from_sentences(corpus)
        target = self.cell_to_adapt(cell)
        before, inventory = self.adapted.get(target), self.model.inventory
        if target.task not in inventory.tasks:
            task = Task(target.task, tuple(sorted(labelled.label_counts())), labelled.unit)
            inventory = with_tasks(inventory, [task])
        task = inventory.task(target.task)
        listed = before.lexicon if before else None
        examples = before.examples if before else Examples.none(self.model.width(target.task, task.unit))
        if lexicon is not None:
            forms = read_lexicon(lexicon if isinstance(lexicon, Mapping) else Path(lexicon), task)
            new = Lexicon.of(self.model, target, task, forms)
            listed = listed + new if listed else new
        if lexicon is None or len(labelled):
            examples += Examples.of(self.model, target, labelled, inventory)
        adapted = self.adapted_to(examples, target, task, lexicon=listed)
        self.replace_adapted(target, adapted)
        return adapted

    def adapted_to(
        self,
        examples: Examples,
        cell: Cell,
        task: Task | None = None,
        lexicon: Lexicon | None = None,
    ) -> AdaptedCell:
        """Adapt a cell to exactly these sentences and forms, without a change of the tagger.

        `task` is needed if the model does not know it yet.
        """
        task = task or self.model.inventory.task(cell.task)
        of_task = self.calibration.of(cell.task, 0) if self.calibration else None
        prior = generated_prior(self.model, cell, task)
        return adapt_cell(prior, examples, cell, task, of_task, lexicon=lexicon)

    def cell_to_adapt(self, name: str | Cell) -> Cell:
        """Find the cell of this name; it may be of a task that the model does not know, in one of its languages."""
        given = name if isinstance(name, Cell) else Cell.parse(name)
        language = find_language_in(given.language, self.model.inventory.languages)
        if given in self._known or language not in self.model.inventory.languages:
            return self.cell(given)
        return Cell(task_name(given.task), language)

    def forget(self, cell: str | Cell) -> None:
        """Undo the adaptation of a cell."""
        target = self.cell(cell)
        if target not in self.adapted:
            raise DataError(f"{target}: expected an adapted cell, got one that is not: nothing to undo")
        self.replace_adapted(target, None)

    def replace_adapted(self, cell: Cell, adapted: AdaptedCell | None) -> None:
        """Use an adapted head for a cell from now on, or with none the head that the model generates."""
        cells = {other: earlier for other, earlier in self.adapted.items() if other != cell}
        if adapted is not None:
            cells[cell] = adapted
        self.model = with_adapted(self.model, cells).eval()
        self._known = frozenset(self.cells)

    def add_language(self, language: str, text: Corpus | Iterable[Sentence]) -> None:
        """Add a language of which there is nothing but text: every task can be tagged in it from then on."""
        code = find_language_in(language, self.model.inventory.languages)
        plain = text if isinstance(text, Corpus) else Corpus.from_text(text)
        self.model = add_language(self.model, self.config, code, plain).eval()
        self.profiles = self.profiles and self.profiles.with_language(code, plain)
        self._known = frozenset(self.cells)

    def status(self, cell: Cell) -> str:
        """Say what the model knows of a cell: seen, adapted, unseen, or unseen in a language without any data."""
        if cell in self.adapted:
            return str(self.adapted[cell])
        if cell in self.seen:
            return "seen"
        return "unseen, language without data" if cell.language in self.model.inventory.newcomers else "unseen"

    def evaluate(self, grid: Grid, alpha: float = ALPHA) -> Results:
        """Score every cell of a grid that has test data the model was not trained on: a list of results, and a table.

        If the model is calibrated, they include measures of label sets at level `alpha`.
        """
        check_test_data(self.model, grid)
        self.results = Results(evaluate(self.model, grid, self.config, self.calibration, alpha))
        return self.results

    def save(self, folder: str | Path, with_encoder: bool = False) -> Path:
        """Write a model folder: settings, weights, calibration, results and a card.

        A frozen encoder is saved by name only, unless `with_encoder` asks for a copy in the folder.
        """
        out = Path(folder)
        save_model(out, self.model, self.config, with_encoder)
        save_card_info(out, self.card)
        self.save_results(out)
        return out

    def save_results(self, folder: Path) -> None:
        """Write into a model folder what was computed after the training: calibration and scores; and the card."""
        if self.calibration is not None:
            save_calibration(folder, self.calibration)
        if self.expectations is not None:
            save_expected(folder, self.expectations)
        if self.profiles is not None:
            self.profiles.save(folder)
        save_segmentation(folder, self.segmentation)
        save_results(folder, self.results)
        write_card(folder)

    def set_card(self, **notes: Any) -> None:
        """Change what its card says that only a person can say: `license`, `datasets` (names on the hub), `title`."""
        self.card = self.card.change(notes)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        encoder: str | None = None,
        cache: Path | bool = False,
        **hub_options: Any,
    ) -> "Tagger":
        """Load a model folder, or a model of the hub, with options of huggingface_hub; see `crossfill.load` for others.

        Its own function is not used: it asks for a config.json, and fails offline without one.
        """
        return cls.from_folder(find_model(pretrained_model_name_or_path, **hub_options), encoder, cache)

    def save_pretrained(
        self, save_directory: str | Path, *, model_card_kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> str | None:
        """Write a model folder, as `save`; with `push_to_hub=True`, upload it, and return the address of the commit."""
        self.set_card(**(model_card_kwargs or {}))
        return super().save_pretrained(save_directory, **options)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = True,
        delete_patterns: list[str] | str | None = None,
        **options: Any,
    ) -> str:
        """Upload the model folder, with the login of huggingface_hub; returns the address of the commit.

        A repository that is made for it is private unless `private` says otherwise. Files of cells that were adapted
        before and are not any more are deleted there, and so are others that match `delete_patterns`.
        """
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        patterns = [delete_patterns] if isinstance(delete_patterns, str) else list(delete_patterns or ())
        patterns.append(f"{checkpoint.ADAPTED}/*")
        try:
            return super().push_to_hub(repo_id, private=private, delete_patterns=patterns, **options)
        except (HFValidationError, HfHubHTTPError, ValueError, OSError) as error:
            raise CheckpointError(
                f"'{repo_id}': expected a repository of the hub that can be written; {first_line(error)}; log in "
                f"with hf auth login, or save the model to a folder and upload that: hf upload {repo_id} FOLDER"
            ) from None

    def _save_pretrained(self, save_directory: Path) -> None:
        self.save(save_directory)

    def _calibration(self, cell: Cell, n_samples: int, options: TaggingOptions) -> TaskCalibration | None:
        calibration = self.calibration.of(cell.task, n_samples) if self.calibration else None
        needs_one = options.alpha is not None or options.abstain is not None or options.temperature
        if needs_one and calibration is None:
            raise DataError(
                f"{cell}: label sets, abstention and temperature need a calibration on seen {cell.task} cells held out "
                "in turn, and this model has none; train it with --expect (expect=True)"
            )
        if calibration is not None and (adapted := self.adapted.get(cell)):
            return replace(calibration, temperature=calibration.temperature * adapted.calibration.temperature)
        return calibration


def load(
    folder: str | Path, encoder: str | None = None, cache: Path | bool = False, revision: str | None = None
) -> Tagger:
    """Load the tagger in a model folder, or a tagger of the hub by its name, such as `me/tagger`.

    The network is used only for a name of the hub, where no such folder exists; `revision` is a branch, a tag or a
    commit of it. `encoder` is the name or folder of its encoder, if that has moved. Features of tagged text are not
    kept on disk unless `cache` is a folder, or true for the user's cache.
    """
    return Tagger.from_pretrained(folder, revision=revision, encoder=encoder, cache=cache)


def as_sentence(text: Text, segmenter: Segmenter, unit: Unit = Unit.WORD) -> Sentence:
    """Convert words to a sentence; a string is first split into words."""
    if isinstance(text, Sentence) and (not text.words or (text.unit is Unit.PAIR) == (unit is Unit.PAIR)):
        return text
    if unit is not Unit.PAIR and not isinstance(text, Sentence):
        return segmenter.split_words(text) if isinstance(text, str) else Sentence(tuple(text))
    parts = () if isinstance(text, Sentence) else text.split("\t") if isinstance(text, str) else text
    if unit is Unit.PAIR and len(parts) == 2 and all(part.strip() for part in parts):
        return Sentence.pair(segmenter.split_words(parts[0]), segmenter.split_words(parts[1]))
    pair = "a pair of sentences, as two strings or one with a tab between"
    raise DataError(f"expected {pair if unit is Unit.PAIR else 'a sentence'}, got {text!r:.60}")


def _chunks(sentences: Iterable[Sentence], most_sentences: int) -> Iterator[list[Sentence]]:
    """Cut the stream into parts of that many sentences, or of `CHUNK_WORDS` words if those are fewer."""
    chunk, n_words = [], 0
    for sentence in sentences:
        chunk.append(sentence)
        n_words += len(sentence)
        if len(chunk) >= most_sentences or n_words >= CHUNK_WORDS:
            yield chunk
            chunk, n_words = [], 0
    if chunk:
        yield chunk
