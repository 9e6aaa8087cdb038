"""Options that several commands share."""

from typing import Annotated

import typer

MOST_SEED = 2**32 - 1
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is already there.")]
