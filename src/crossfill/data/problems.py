"""What loading a data folder has to tell: collected, so that one problem never hides another."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning", "note"]
"""`error`: data that was left out; `warning`: data that is in, and looks wrong; `note`: what was changed on the way."""


@dataclass(frozen=True, order=True)
class Problem:
    """One thing to tell about a cell or a file."""

    level: Level
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"
