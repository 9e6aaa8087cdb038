"""`crossfill add-language MODEL --language swe --text FILE`: a language with nothing but text."""

from pathlib import Path
from typing import Annotated

import typer

from crossfill.cli.options import ModelFolder


def add_language(
    model: ModelFolder,
    language: Annotated[str, typer.Option(help="Code of the language, as swe.")],
    text: Annotated[Path, typer.Option(help="Plain text of the language; some hundred sentences are enough.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write. [default: the model's own]")] = None,
) -> None:
    """Add a language of which there is only unlabelled text: every task of the model can then be tagged in it."""
    from crossfill.data.codes import language_code, language_name
    from crossfill.data.folder import read_text
    from crossfill.tagger.model_folder import grow_folder
    from crossfill.tagger.tagger import load

    code = language_code(language)
    tagger = load(model, cache=True)
    corpus = read_text([text], code)
    tagger.add_language(code, corpus)
    folder = grow_folder(model, out, tagger.model, tagger.config)
    cells = ", ".join(str(cell) for cell in tagger.cells if cell.language == code)
    typer.echo(f"{folder}: {language_name(code)}, placed by {len(corpus):,} sentences; {cells} can be tagged now")
    typer.echo("no cell of this language has been seen: expect the lowest scores of all cells")
