"""`crossfill adapt` and `crossfill add-language`: a better cell from a few sentences, a new language from text."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from crossfill.cli.options import ModelFolder, OneCell

if TYPE_CHECKING:
    from crossfill.grid.cells import Cell
    from crossfill.grid.sentence import Corpus


def adapt(
    context: typer.Context,
    model: ModelFolder,
    cell: OneCell,
    labelled: Annotated[
        Path | None, Argument(help="Labelled sentences: .conllu, or a word and its label per line.")
    ] = None,
    out: Annotated[Path | None, Option(help="Folder to write the adapted model to. [default: the model's own]")] = None,
    undo: Annotated[bool, Option("--undo", help="Forget all sentences that the cell was adapted to.")] = False,
    data: Annotated[
        Path | None, Option(help="Data folder: refuse sentences that are in its test data of the language.")
    ] = None,
    unlabelled: Annotated[
        list[str] | None, Option(help="Label of words that nobody has labelled; repeatable. [default: none, _ or ?]")
    ] = None,
    spans_partial: Annotated[
        bool, Option("--spans-partial", help="Only some spans are marked: a word in none may be in one.")
    ] = False,
    lexicon: Annotated[
        Path | None, Option(help="Word list: a form, a tab and the labels that it may have on each line; or from FLEx.")
    ] = None,
) -> None:
    """Adapt a cell to a few labelled sentences, a word list or both, besides those of before; or undo that."""
    from crossfill.adaptation.storage import changing_adapted, remove_adapted, save_adapted
    from crossfill.errors import DataError
    from crossfill.grid.sentence import Corpus
    from crossfill.tagger.model_folder import copy_folder, find_model
    from crossfill.tagger.tagger import load

    if (labelled is None and lexicon is None) != undo:
        raise DataError(
            "expected a file of labelled sentences, a --lexicon or both; or --undo to forget those of before"
        )
    if out is None:
        context.with_resource(changing_adapted(find_model(model)))
    tagger = load(model, cache=True)
    target = tagger.cell_to_adapt(cell)
    if undo:
        folder = copy_folder(model, out)
        remove_adapted(folder, target)
        typer.echo(f"{folder}: {target} is as it was before it was adapted")
        return
    corpus = Corpus.from_sentences(()) if labelled is None else _read(labelled, target, unlabelled or (), spans_partial)
    if data is not None:
        _check_unseen(corpus, target, data)
    known, before = tagger.model.inventory.tasks, tagger.adapted.get(target)
    try:
        adapted = tagger.adapt(corpus, target, lexicon)
    except DataError as error:
        where = "" if labelled is None or str(error).startswith(f"{lexicon}:") else f"{labelled}: "
        raise DataError(f"{where}{error}") from None
    folder, gain = copy_folder(model, out), adapted.gain
    if gain is not None and target.task in known:
        scores = f"{100 * gain.before:.0f} → {100 * gain.after:.0f}"
        typer.echo(f"{target}: its {len(adapted.examples)} sentences, each left out in turn: {scores}", err=True)
        if gain.is_loss:
            typer.echo(f"{folder}: {target} would lose, and stays as it was; check the labels, or give more sentences")
            return
    save_adapted(folder, adapted)
    n_new = len(adapted.examples) - (len(before.examples) if before else 0)
    if target.task not in known:
        labels = f"{len(adapted.task.labels)} labels: {', '.join(adapted.task.labels)}"
        typer.echo(f"{target.task} is a new task (the model has {', '.join(known)}), of {labels}", err=True)
    typer.echo(
        f"{folder}: {target} {adapted} ({n_new} new, {adapted.examples.n_labelled} labels); "
        f"{len(adapted.known)} cues learnt, "
        f"prior variance τ² {adapted.variances.weights:.2g}, temperature × {adapted.calibration.temperature:.2f}"
    )


def _read(path: Path, cell: "Cell", unlabelled: Sequence[str], spans_partial: bool) -> "Corpus":
    from crossfill.data.folder import read_file
    from crossfill.errors import DataError

    reading = read_file(path, cell, unlabelled, spans_partial)
    if not reading.corpus.label_counts():
        got = "words without a label" if len(reading.corpus) else "an empty file"
        raise DataError(f"{path}: expected labelled sentences, got {got}")
    for message in reading.messages(str(path), cell):
        if message.level in ("warning", "note"):
            typer.echo(f"{message.level}: {message}", err=True)
    return reading.corpus


def _check_unseen(corpus: "Corpus", cell: "Cell", data: Path) -> None:
    """Refuse sentences that are test data of the cell's language, in any task."""
    from crossfill.data.folder import load_grid
    from crossfill.errors import DataError
    from crossfill.grid.text_keys import sentence_hashes

    grid = load_grid(data, cache=True)
    cells = [other for other in grid.cells if other.language == cell.language]
    test = {text for other in cells for splits in grid[other] for text in sentence_hashes(splits.test)}
    seen = [sentence for sentence, text in zip(corpus, sentence_hashes(corpus), strict=True) if text in test]
    if seen:
        words = " ".join(seen[0].words[:8])
        raise DataError(
            f"{cell}: expected sentences that are not in the test data of {data}, got {len(seen)} that are, such as "
            f"'{words} …'; leave them out, or scores there will mean nothing"
        )


def add_language(
    context: typer.Context,
    model: ModelFolder,
    language: Annotated[str, Option(help="Code of the language, as swe.")],
    text: Annotated[Path, Option(help="Plain text of the language; some hundred sentences are enough.")],
    out: Annotated[Path | None, Option(help="Folder to write. [default: the model's own]")] = None,
) -> None:
    """Add a language of which there is only unlabelled text: every task of the model can then be tagged in it."""
    from crossfill.adaptation.storage import changing_adapted
    from crossfill.data.codes import language_code, language_name
    from crossfill.data.folder import read_text
    from crossfill.tagger.model_folder import find_model, grow_folder
    from crossfill.tagger.tagger import load

    code, changing = language_code(language), context.with_resource(ExitStack())
    if out is None:
        changing.enter_context(changing_adapted(find_model(model)))
    tagger = load(model, cache=True)
    corpus = read_text([text], code)
    tagger.add_language(code, corpus)
    if os.name == "nt":
        changing.close()  # Windows renames no folder in which a file is open
    folder = grow_folder(model, out, tagger.model, tagger.config, tagger.profiles)
    cells = ", ".join(str(cell) for cell in tagger.cells if cell.language == code)
    typer.echo(f"{folder}: {language_name(code)}, placed by {len(corpus):,} sentences; {cells} can be tagged now")
    typer.echo("no cell of this language has been seen: expect the lowest scores of all cells")
