"""Typological vectors of languages, and how similar they make two languages."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
from jaxtyping import Float

from crossfill.errors import DataError
from crossfill.partition import Similarity

URIEL = ("fam", "geo", "syntax_knn", "phonology_knn")
"""The blocks that the nearest source is chosen by: family, area, syntax and phonology."""

# block: file of the lang2vec package, and how the names of its features begin
_PACKAGE = {
    "fam": ("family_features.npz", "F_"),
    "geo": ("geocoord_features.npz", "GC_"),
    "syntax_knn": ("feature_predictions.npz", "S_"),
    "phonology_knn": ("feature_predictions.npz", "P_"),
    "inventory_knn": ("feature_predictions.npz", "INV_"),
}


@dataclass(frozen=True)
class Block:
    """One kind of features: a row of unit norm for each language, or of zeros where nothing is known."""

    rows: Mapping[str, int]
    matrix: Float[np.ndarray, "languages features"]

    def cosine(self, first: str, second: str) -> float:
        """Cosine similarity; NaN where either language is missing or all zero."""
        if first not in self.rows or second not in self.rows:
            return math.nan
        a, b = self.matrix[self.rows[first]], self.matrix[self.rows[second]]
        return float(a @ b) if a.any() and b.any() else math.nan


@dataclass(frozen=True)
class Typology:
    """Blocks of features by name."""

    blocks: Mapping[str, Block]

    @property
    def languages(self) -> frozenset[str]:
        """The languages that are in any block."""
        return frozenset(language for block in self.blocks.values() for language in block.rows)

    def similarity(self, first: str, second: str, features: Sequence[str] = ()) -> float:
        """Cosine of the concatenated blocks, each of unit norm, over those that both languages have; NaN without any.

        `features` names the blocks; by default URIEL's four, or all blocks of a folder that has none of these.
        """
        if missing := [name for name in features if name not in self.blocks]:
            raise DataError(f"expected typological features {', '.join(missing)}, got {', '.join(self.blocks)}")
        chosen = features or [name for name in URIEL if name in self.blocks] or list(self.blocks)
        cosines = [self.blocks[name].cosine(first, second) for name in chosen]
        known = [value for value in cosines if not math.isnan(value)]
        return sum(known) / len(known) if known else math.nan


def load_typology(folder: str | Path | None = None) -> Typology:
    """The vectors in a folder, one `<block>.tsv` each, or those of the lang2vec package."""
    if folder is None:
        return _packaged()
    tables = sorted(Path(folder).glob("*.tsv"))
    if not tables:
        raise DataError(f"{folder}: expected typological vectors as tables <block>.tsv, such as fam.tsv; got none")
    return Typology({path.stem: read_block(path) for path in tables})


def read_block(path: Path) -> Block:
    """A table with a header, a language in the first column of each row, and numbers in the others."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: expected a table of vectors; {error}") from None
    width = len(lines[0].split("\t")) if lines else 0
    rows: dict[str, int] = {}
    values: list[list[float]] = []
    for number, line in enumerate(lines[1:], start=2):
        language, *cells = line.split("\t")
        if not line.strip():
            continue
        if language in rows:
            raise DataError(f"{path}:{number}: expected each language once, got '{language}' again")
        if len(cells) + 1 != width or width < 2:
            raise DataError(f"{path}:{number}: expected {width} columns separated by tabs, got {len(cells) + 1}")
        try:
            found = [float(cell) for cell in cells]
        except ValueError as error:
            raise DataError(f"{path}:{number}: expected numbers after the language; {error}") from None
        if not all(map(math.isfinite, found)):
            raise DataError(f"{path}:{number}: expected finite numbers; write 0 for what is unknown")
        rows[language] = len(values)
        values.append(found)
    if not rows:
        raise DataError(f"{path}: expected a header and a row for each language, got none")
    return Block(rows, unit_rows(np.array(values)))


def unit_rows(matrix: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows columns"]:
    """The matrix with each row scaled to unit norm; rows of zeros stay."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(norms > 0, norms, 1.0)


@cache
def _packaged() -> Typology:
    """URIEL from lang2vec's data files. Its code is not run: it needs parts of setuptools that are gone."""
    try:
        package = distribution("lang2vec")
    except PackageNotFoundError:
        raise DataError(
            "expected typological vectors for the nearest source, found none: install crossfill[typology], "
            "or name a folder of tables in sources.vectors"
        ) from None
    folder = Path(str(package.locate_file("lang2vec/data")))
    blocks = {}
    for name, (file, prefix) in _PACKAGE.items():
        with np.load(folder / file, allow_pickle=False) as data:
            columns = [i for i, feature in enumerate(data["feats"].tolist()) if feature.startswith(prefix)]
            matrix = data["data"][:, columns, 0].astype(np.float32)
            rows = {language: i for i, language in enumerate(data["langs"].tolist())}
        blocks[name] = Block(rows, unit_rows(np.maximum(matrix, 0)))
    return Typology(blocks)


def trigram_similarity(counts: Mapping[str, Mapping[tuple[str, str, str], int]]) -> Similarity:
    """−KL(target ‖ source) of label trigrams; a trigram that a source lacks counts once. NaN where one is unknown."""

    def similarity(target: str, source: str) -> float:
        ours, theirs = counts.get(target), counts.get(source)
        if not ours or not theirs:
            return math.nan
        n_ours, n_theirs = sum(ours.values()), sum(theirs.values())
        return -sum(n / n_ours * math.log(n / n_ours * n_theirs / theirs.get(key, 1)) for key, n in ours.items())

    return similarity
