"""The front door: a trained model that tags sentences in any cell of its grid, one at a time or as a stream."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from crossfill import checkpoint
from crossfill.baselines.methods import build_encoder, load_model
from crossfill.calibration import Calibration, TaskCalibration, load_calibration, save_calibration
from crossfill.config import Config, override
from crossfill.data.labels import task_name
from crossfill.data.languages import find_language
from crossfill.data.segmentation import split_words
from crossfill.doubt import Doubt
from crossfill.encoders.base import CentredEncoder
from crossfill.errors import ConfigError, DataError, unknown
from crossfill.experiments import run
from crossfill.experiments.card import RESULTS, load_results, write_card
from crossfill.generator import Classifier
from crossfill.grid import Cell, Grid
from crossfill.model import Model
from crossfill.partition import hold_out as without
from crossfill.predict import Prediction, draw_head, encode, predict_features
from crossfill.queries import HeadOf, Query, answer, composed
from crossfill.sentence import Sentence
from crossfill.tagging import Tagging

CHUNK_SENTENCES, CHUNK_WORDS = 256, 8192
"""What is held of a stream at once."""
Text = str | Sequence[str] | Sentence
"""A sentence: cut into words already, or a string that is still to be."""


class Tagger:
    """A trained model, ready to tag."""

    def __init__(
        self,
        model: Model,
        config: Config,
        calibration: Calibration | None = None,
        results: Sequence[run.CellResult] = (),
    ) -> None:
        self.model, self.config, self.calibration = model.eval(), config, calibration
        self.results = list(results)
        """How it did where it was evaluated last."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells that it can tag: every task in every language of its grid, seen or not."""
        inventory = self.model.inventory
        return tuple(Cell(task, language) for task in inventory.tasks for language in inventory.languages)

    @property
    def seen(self) -> frozenset[Cell]:
        """The cells that it was trained on."""
        return self.model.seen

    def cell(self, name: str | Cell) -> Cell:
        """The cell of this name, in the codes of ISO 639, UD or WikiANN: `ner/wol`, `ner/wo`."""
        given = name if isinstance(name, Cell) else Cell.parse(name)
        cell = Cell(task_name(given.task), find_language(given.language) or given.language)
        inventory = self.model.inventory
        if cell.task not in inventory.labels or cell.language not in inventory.languages:
            raise DataError(unknown("cell", str(given), map(str, self.cells)))
        return cell

    def tag(self, text: Text, cell: str | Cell, samples: int | None = None, doubt: Doubt | None = None) -> Tagging:
        """Tag one sentence, given as words or as a string; `samples` 0 plugs in the posterior means."""
        return next(self.tag_many([text], cell, samples, doubt))

    def tag_many(
        self, texts: Iterable[Text], cell: str | Cell, samples: int | None = None, doubt: Doubt | None = None
    ) -> Iterator[Tagging]:
        """Tag sentences as they come, in their order and in constant memory."""
        return (taggings[0] for taggings in self.tag_cells(texts, [cell], samples, doubt))

    def tag_cells(
        self,
        texts: Iterable[Text],
        cells: Sequence[str | Cell],
        samples: int | None = None,
        doubt: Doubt | None = None,
        chunk_sentences: int = CHUNK_SENTENCES,
    ) -> Iterator[tuple[Tagging, ...]]:
        """The same in several cells, which share one pass through the encoder."""
        found = [self.cell(cell) for cell in cells]
        if not found:
            raise DataError("expected at least one cell, such as ner/wol; got none")
        sentences = (as_sentence(text, found[0].language) for text in texts)
        kinds = [self.query(Sentence(()), cell, samples, doubt) for cell in found]
        for chunk in _chunks(sentences, chunk_sentences):
            made = self.tag_queries([replace(kind, sentence=sentence) for kind in kinds for sentence in chunk])
            yield from zip(*(made[i : i + len(chunk)] for i in range(0, len(made), len(chunk))), strict=True)

    def query(self, text: Text, cell: str | Cell, samples: int | None = None, doubt: Doubt | None = None) -> Query:
        """A sentence to tag in a cell, checked; see `tag_queries`."""
        found, doubt = self.cell(cell), doubt or Doubt()
        n_samples = self.config.prediction.samples if samples is None else samples
        if n_samples < 0:
            raise ConfigError(f"expected samples of 0 (plug-in) or more, got {n_samples}")
        if doubt.interval is not None and not 0 < doubt.interval < 1:
            raise DataError(f"expected an interval between 0 and 1, such as 0.9; got {doubt.interval}")
        calibration = self._calibration(found, n_samples, doubt)
        return Query(as_sentence(text, found.language), found, n_samples, doubt, calibration)

    def tag_queries(self, queries: Sequence[Query], head_of: HeadOf | None = None) -> list[Tagging]:
        """Tag sentences in a cell each, all over one pass through the encoder, with heads from `head_of` if given."""
        return answer(self.model, queries, head_of or self.head) if queries else []

    def head(self, cell: Cell, n_samples: int) -> Classifier:
        """Draws of a cell's head, the same ones every time; 0 gives the head at the posterior means."""
        return draw_head(self.model, cell, n_samples, self.config.prediction.seed)

    def features(
        self, sentences: Sequence[Sentence], languages: Collection[str]
    ) -> dict[str, Float[Tensor, "words features"]]:
        """The features of all words, as each language's, from one pass through the encoder."""
        encoder = self.model.encoder
        first, *others = dict.fromkeys(languages)
        inputs = encoder.prepare(composed(sentences), first)
        found = {first: encode(self.model, inputs)}
        for language in others:
            is_centred = isinstance(encoder, CentredEncoder)
            found[language] = encode(self.model, encoder.recentred(inputs, language)) if is_centred else found[first]
        return found

    def predict(self, features: Float[Tensor, "words features"], cell: Cell, n_samples: int) -> Prediction:
        """What the model believes of words whose features are at hand."""
        return predict_features(self.model, features, cell, n_samples, self.config.prediction.seed)

    def evaluate(self, grid: Grid) -> list[run.CellResult]:
        """Results on every cell of a grid that has test data the model was not trained on."""
        self.results = run.evaluate(self.model, grid, self.config)
        return self.results

    def save(self, folder: str | Path, with_encoder: bool = False) -> Path:
        """Write a model folder: settings, weights, calibration, results and a card.

        A frozen encoder is named, not copied, unless `with_encoder` asks for all of it to be in the folder.
        """
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        description = checkpoint.describe(self.config, self.model.inventory, self.model.seen)
        checkpoint.write_json(out / checkpoint.DESCRIPTION, description)
        checkpoint.write_tensors(out / checkpoint.WEIGHTS, self.model.state_dict(), {})
        if self.calibration is not None:
            save_calibration(out, self.calibration)
        if self.results:
            checkpoint.write_json(out / RESULTS, [result.as_dict() for result in self.results])
        source = getattr(self.model.encoder, "source", None)
        trained = self.config.encoder.pretrained.mode != "frozen"
        if source is not None and (trained or with_encoder):
            from crossfill.encoders import hub

            hub.carry(source.folder, out / checkpoint.ENCODER, weights=not trained)
        write_card(out)
        return out

    def push_to_hub(self, name: str, private: bool = True, with_encoder: bool = False) -> str:
        """Put the model folder on the Hugging Face hub, with the login that huggingface_hub finds; its address."""
        from tempfile import TemporaryDirectory

        from huggingface_hub import HfApi

        with TemporaryDirectory() as scratch:
            folder = self.save(scratch, with_encoder)
            api = HfApi()
            address = api.create_repo(name, private=private, exist_ok=True)
            api.upload_folder(repo_id=name, folder_path=folder, commit_message="Upload a crossfill model")
        return str(address)

    def _calibration(self, cell: Cell, n_samples: int, doubt: Doubt) -> TaskCalibration | None:
        wanted = doubt.alpha is not None or doubt.abstain is not None or doubt.temperature
        found = self.calibration.of(cell.task, n_samples) if self.calibration else None
        if wanted and found is None:
            raise DataError(
                f"{cell}: label sets, abstention and temperature need dev sentences of seen {cell.task} cells that "
                "selected nothing, and this model kept none; train it with training.calibration_share=0.5"
            )
        return found


def load(folder: str | Path, encoder: str | None = None, cache: Path | bool = False) -> Tagger:
    """The tagger in a model folder; `encoder` names its encoder where that lies elsewhere now.

    Features of text that is tagged are not kept on disk, unless `cache` says where, or true for the user's cache.
    """
    path = Path(folder)
    model, config = load_model(path, encoder, cache)
    return Tagger(model, config, load_calibration(path), load_results(path))


def train(
    grid: Grid,
    method: str = "pf-lr",
    encoder: str = "compact",
    out: str | Path | None = None,
    config: Config | None = None,
    hold_out: Iterable[str | Cell] = (),
    cache: Path | bool = True,
    quiet: bool = True,
) -> Tagger:
    """Train on the cells of a grid, all but those held out; the model is kept in `out` where that is named."""
    settings = override(config or Config(), [f"method={method}", f"encoder.name={encoder}"])
    kept = [cell if isinstance(cell, Cell) else Cell.parse(cell) for cell in hold_out]
    seen = without(grid.cells, kept).seen
    base = build_encoder(settings, grid.inventory, cache, quiet)
    folder = None if out is None else Path(out)
    model = run.train(grid, seen, settings, folder, quiet=quiet, encoder=base)
    return Tagger(model, settings, load_calibration(folder) if folder else run.calibrate(model, grid, settings))


def as_sentence(text: Text, language: str) -> Sentence:
    """Words as a sentence; a string is cut into words by the rules of a language."""
    if isinstance(text, Sentence):
        return text
    return split_words(text, language) if isinstance(text, str) else Sentence(tuple(text))


def _chunks(sentences: Iterable[Sentence], most_sentences: int) -> Iterator[list[Sentence]]:
    chunk, n_words = [], 0
    for sentence in sentences:
        chunk.append(sentence)
        n_words += len(sentence)
        if len(chunk) >= most_sentences or n_words >= CHUNK_WORDS:
            yield chunk
            chunk, n_words = [], 0
    if chunk:
        yield chunk
