"""What the adapters for other programs share: the cell in an address, and the version of what tags it."""

from collections.abc import Callable
from hashlib import sha256
from typing import Annotated

from fastapi import Path

from crossfill.adaptation.heads import without_adapted
from crossfill.errors import CrossfillError
from crossfill.grid.cells import Cell
from crossfill.tagger.tagger import Tagger
from crossfill.web.problems import ApiError

TaskName = Annotated[str, Path(description="A task of the model, as ner.")]
LanguageName = Annotated[str, Path(description="A language of the model, as wol.")]


def cell_of(tagger: Tagger, task: str, language: str) -> Cell:
    """The cell in an address."""
    try:
        return tagger.cell(f"{task}/{language}")
    except CrossfillError as error:
        raise ApiError(404, "not_found", str(error)) from None


class Versions:
    """Names of the versions of cells: of the model as it was loaded, and of what each cell has learned since."""

    def __init__(self, name: str, tagger: Tagger, learned: Callable[[Cell], str] = lambda _: "0") -> None:
        digest = sha256()
        for key, tensor in sorted(without_adapted(tagger.model).heads.state_dict().items()):
            digest.update(key.encode() + tensor.detach().cpu().contiguous().float().numpy().tobytes())
        self._base, self._learned = f"{name}-{digest.hexdigest()[:8]}", learned
        self._adapted = {
            cell: sha256(repr((made.examples.hashes, made.examples.labels.tolist())).encode()).hexdigest()[:8]
            for cell, made in tagger.adapted.items()
        }

    def of(self, cell: Cell) -> str:
        """The version that tags a cell now: new with every training and with every adaptation."""
        return "-".join([self._base, *filter(None, [self._adapted.get(cell)]), self._learned(cell)])
