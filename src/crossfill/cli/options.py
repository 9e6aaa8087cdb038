"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

MOST_SEED = 2**32 - 1
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is already there.")]
ModelFolder = Annotated[Path, typer.Argument(help="Folder of a trained model, or its name on the hub, as me/tagger.")]
