"""Train a model on the seen cells of a grid: plan, build, centre, train, and complete its folder."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from crossfill.config import Config
from crossfill.data.conllu import reread
from crossfill.encoders.base import Encoder
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.methods.registry import Plan, build_model, find_method
from crossfill.model import Model
from crossfill.progress import Report
from crossfill.tagger.model_folder import complete_folder
from crossfill.training.labelled import prepare_development, prepare_grid
from crossfill.training.loop import Progression, Trainer
from crossfill.training.processes import Processes


class Trained(NamedTuple):
    """A trained model, with the data and cells that it was trained on, and the steps and scores of its run."""

    model: Model
    plan: Plan
    progression: Progression


def train_model(
    grid: Grid,
    seen: Collection[Cell],
    config: Config,
    out: Path | None = None,
    encoder: Encoder | None = None,
    report: Report | None = None,
    log: Callable[[str], None] | None = None,
) -> Trained:
    """Train a model of the config's method on the seen cells, or on those that its plan chooses.

    With `out`, the model is written to that folder, without a card, and a run that was interrupted there is resumed.
    `report` is called after every step, and `log` with the notes of the plan.
    """
    processes = Processes(config.training)
    method = find_method(config.method)
    plan = method.plan(grid, frozenset(seen), config)
    if log is not None and processes.is_first:
        for note in plan.notes:
            log(f"{method.name}: {note}")
    model = build_model(config, grid.inventory, plan.seen, encoder)
    with processes.first_goes_first():
        centre(model.encoder, grid, seen)
        method.prepare(model, plan, config)
        training, development = prepare_grid(model, plan.grid, plan.cells)
        if config.training.selection == "oracle":
            development = prepare_development(model, grid, (cell for cell in grid.cells if cell not in model.seen))
    data = plan.grid.digest(plan.cells) if out is not None else ""
    trainer = Trainer(model, training, development, config, out, processes, data)
    progression = trainer.run(resume=True, report=report or (lambda _step, _note: None))
    if out is not None and processes.is_first:
        complete_folder(out, model, grid, config)
    return Trained(model, plan, progression)


def centre(encoder: Encoder, grid: Grid, seen: Collection[Cell]) -> None:
    """Centre a frozen encoder on each language's unlabelled text, and on the text of its cells, seen or not."""
    if encoder.is_centred:
        encoder.centre_on(texts_by_language(grid, seen))


def texts_by_language(grid: Grid, seen: Collection[Cell]) -> dict[str, list[Corpus]]:
    """Collect the text of each language that may be read without labels: unlabelled, and of its cells, seen or not."""
    texts: dict[str, list[Corpus]] = {language: [] for language in grid.inventory.languages}
    for language, text in grid.texts.items():
        texts[language].append(text)
    for cell in grid.cells:
        texts[cell.language].append(readable_text(grid, cell, cell in seen).text())
    return texts


def cut_sentences(grid: Grid, seen: Collection[Cell]) -> dict[str, list[Sentence]]:
    """Read the sentences of each language's CoNLL-U files again that may be read, with their contractions."""
    places: dict[str, set[tuple[str, int]]] = {language: set() for language in grid.inventory.languages}
    for cell in grid.cells:
        corpus = readable_text(grid, cell, cell in seen)
        lines = corpus.all_lines()[corpus.offsets[:-1]].tolist()
        places[cell.language].update(zip(corpus.all_files(), lines, strict=True))
    return {
        language: [s for path in sorted({p for p, _ in some}) for s in reread(Path(path)) if (path, s.lines[0]) in some]
        for language, some in places.items()
    }


def texts_to_encode(
    grid: Grid, seen: Collection[Cell], trained: Collection[Cell], scored: Grid | None, centred: bool = True
) -> Iterator[tuple[str, Corpus]]:
    """Yield the text that a run encodes: to centre features, to train and select on some cells, and to score a grid.

    Each comes with the name of its cell or language.
    """
    if centred:
        yield from grid.texts.items()
    for cell in grid.cells:
        if centred:
            yield str(cell), readable_text(grid, cell, cell in seen)
        if cell in trained:
            yield str(cell), grid.training(cell)
            yield str(cell), grid.development(cell)
    if scored is not None:
        for cell in scored.cells:
            yield from ((str(cell), corpus) for corpus in scored.evaluation(cell, cell in seen).values())


def readable_text(grid: Grid, cell: Cell, seen: bool) -> Corpus:
    """Join the text of a cell that may be read without its labels: what trains, or would if the cell were seen.

    Test text is used only where it is also trained on: in seen cells without other data.
    """
    return Corpus.joined(splits.training for splits in grid[cell] if seen or splits.has_training_data)
