"""How alike the languages of a study are: by URIEL, or by their own settings on the artificial grid."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossfill.data.synthetic import SETTINGS, synthetic_grid
from crossfill.files import write_atomically
from crossfill.grid.typology import Block, Typology, load_typology, unit_rows, vectors_beside
from crossfill.studies.study import DataSettings

ARTIFICIAL = "settings"


def typology_folder(data: DataSettings) -> str | None:
    """The folder of the study's typological vectors; none where those of the lang2vec package serve."""
    if data.typology is not None:
        return data.typology
    return vectors_beside(data.path) if data.path else None


def study_typology(data: DataSettings) -> Typology:
    """The typology of a study's languages; on the artificial grid, their true settings."""
    if data.synthetic is None:
        return load_typology(typology_folder(data))
    import numpy as np

    vectors = synthetic_grid(data.synthetic, data.seed).typology
    rows = {language: i for i, language in enumerate(vectors)}
    return Typology({ARTIFICIAL: Block(rows, unit_rows(np.stack(list(vectors.values()))))})


def language_similarity(data: DataSettings, languages: Sequence[str], features: Sequence[str] = ()) -> dict[str, Any]:
    """How alike all pairs of languages are, as JSON: languages, similarity (a matrix), source.

    What typology does not know of counts as nothing in common; on the artificial grid there is one kind of features.
    """
    typology = study_typology(data)
    chosen = () if data.synthetic is not None else tuple(features)
    matrix = [[typology.similarity(a, b, chosen) if a != b else 1.0 for b in languages] for a in languages]
    return {
        "languages": list(languages),
        "similarity": [[0.0 if math.isnan(value) else round(value, 6) for value in row] for row in matrix],
        "source": "true settings" if data.synthetic is not None else "URIEL",
    }


def write_vectors(data: DataSettings, folder: Path) -> None:
    """Write the artificial languages' settings as a table that methods can read as they read URIEL's."""
    if data.synthetic is None:
        return
    vectors = synthetic_grid(data.synthetic, data.seed).typology
    lines = ["\t".join(("language", *SETTINGS))]
    lines += ["\t".join((language, *(f"{value:g}" for value in vector))) for language, vector in vectors.items()]
    write_atomically(folder / f"{ARTIFICIAL}.tsv", ("\n".join(lines) + "\n").encode())
