"""What tests of the adapters for other programs share: a tagger that knows their examples, and a client of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

import crossfill
from crossfill.grid.sentence import Sentence
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.service import Teacher
from crossfill.web.app import build_app
from crossfill.web.serve_settings import ServeSettings

PLACE = ("B-LOC", "O", "O", "B-LOC", "O")
PLACES = [
    Sentence(("🦁", "Dakar", "mooy", "péeyu", "Senegaal", "."), ("O", "B-LOC", "O", "O", "B-LOC", "O")),
    Sentence(("Dakar", "mooy", "péeyu", "Senegaal", "."), ("B-LOC", "O", "O", "B-LOC", "O")),
    Sentence(("🦁", "mooy", "gaynde", "."), ("O", "O", "O", "O")),
    *(
        Sentence((*before, "Dakar", "mooy", "péeyu", "Senegaal", end), ("O",) * len(before) + PLACE)
        for before in ((), ("🦁",))
        for end in "!?…"
    ),
]
"""The places of the documentation's examples."""


def knowing_tagger(model: Path, sentences: Sequence[Sentence] = PLACES, cell: str = "ner/wol") -> Tagger:
    """A tagger that knows these sentences."""
    tagger = crossfill.load(model)
    tagger.adapt(sentences, cell)
    return tagger


@contextmanager
def asking(tagger: Tagger, teacher: Teacher | None = None) -> Iterator[TestClient]:
    """A client of a server with small limits."""
    app = build_app(tagger, ServeSettings(max_characters=400, max_words=60, timeout=20), "model", {}, teacher)
    with TestClient(app, base_url="http://localhost") as found:
        yield found
