"""Typological vectors of languages, and similarities between languages."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
from jaxtyping import Float

from crossfill.errors import DataError
from crossfill.grid.cells import without_script
from crossfill.grid.partition import Similarity

URIEL = ("fam", "geo", "syntax_knn", "phonology_knn")
"""The blocks used to choose the nearest source: family, area, syntax and phonology."""

# block: file in the lang2vec package, prefix of its feature names
_PACKAGE = {
    "fam": ("family_features.npz", "F_"),
    "geo": ("geocoord_features.npz", "GC_"),
    "syntax_knn": ("feature_predictions.npz", "S_"),
    "phonology_knn": ("feature_predictions.npz", "P_"),
    "inventory_knn": ("feature_predictions.npz", "INV_"),
}


@dataclass(frozen=True)
class Block:
    """One kind of feature: a row per language, of unit norm, or all zeros where nothing is known."""

    rows: Mapping[str, int]
    matrix: Float[np.ndarray, "languages features"]

    def row(self, language: str) -> Float[np.ndarray, "features"] | None:
        """Return the row of a language, or of the language without its script, if there is one."""
        place = self.rows.get(language, self.rows.get(without_script(language)))
        return None if place is None else self.matrix[place]


@dataclass(frozen=True)
class Typology:
    """Blocks of features by name."""

    blocks: Mapping[str, Block]

    def similarity(self, first: str, second: str, features: Sequence[str] = ()) -> float:
        """Average the cosine over blocks that both languages have; for unit rows, that of the blocks concatenated.

        NaN if they have no block in common, or if a language is all zeros. `features` names the blocks; by default the
        four of URIEL, or all blocks if there are none of these. A row of zeros is no gap but has cosine 0: an isolate
        is related to no language. Without its family it would be the nearest source of almost every language, since
        other languages differ most in their families.
        """
        if missing := [name for name in features if name not in self.blocks]:
            raise DataError(f"expected typological features {', '.join(missing)}, got {', '.join(self.blocks)}")
        chosen = features or [name for name in URIEL if name in self.blocks] or list(self.blocks)
        if self.without((first, second), chosen):
            return math.nan
        pairs = [(self.blocks[name].row(first), self.blocks[name].row(second)) for name in chosen]
        cosines = [float(a @ b) for a, b in pairs if a is not None and b is not None]
        return sum(cosines) / len(cosines) if cosines else math.nan

    def without(self, languages: Iterable[str], features: Iterable[str]) -> list[str]:
        """List the languages whose vectors in these blocks are all zeros, or missing."""
        blocks = [block for name in features if (block := self.blocks.get(name))]
        rows = {language: [block.row(language) for block in blocks] for language in languages}
        return [language for language, own in rows.items() if not any(row is not None and row.any() for row in own)]


def vectors_beside(corpora: str | Path) -> str | None:
    """Find the folder of typological vectors in a folder of corpora, if there is one."""
    folder = Path(corpora) / "typology"
    return str(folder) if folder.is_dir() else None


def load_typology(folder: str | Path | None = None) -> Typology:
    """Load vectors from a folder with one `<block>.tsv` per block, or from the lang2vec package."""
    if folder is None:
        return _packaged()
    tables = sorted(Path(folder).glob("*.tsv"))
    if not tables:
        raise DataError(f"{folder}: expected typological vectors as tables <block>.tsv, such as fam.tsv; got none")
    return Typology({path.stem: read_block(path) for path in tables})


def read_block(path: Path) -> Block:
    """Read a table with a header, a language in the first column of each row, and numbers in the others."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: expected a table of vectors; {error}") from None
    width = len(lines[0].split("\t")) if lines else 0
    rows: dict[str, list[float]] = {}
    for number, line in enumerate(lines[1:], start=2):
        language, *cells = line.split("\t")
        if not line.strip():
            continue
        try:
            values = [float(cell) for cell in cells]
        except ValueError:
            values = []
        if not values or language in rows or len(values) + 1 != width or not np.isfinite(values).all():
            wanted = f"a language once, and {width - 1} finite numbers, separated by tabs"
            raise DataError(f"{path}:{number}: expected {wanted}; got '{line[:60]}'")
        rows[language] = values
    if not rows:
        raise DataError(f"{path}: expected a header and a row for each language, got none")
    return Block({language: i for i, language in enumerate(rows)}, unit_rows(np.array(list(rows.values()))))


def cosine(first: Float[np.ndarray, "features"], second: Float[np.ndarray, "features"]) -> float:
    """Compute the cosine similarity; NaN where either vector is zero."""
    norm = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / norm if norm else math.nan


def place(
    languages: Sequence[str], similarities: Sequence[Similarity], size: int, power: float, newcomers: Sequence[str] = ()
) -> dict[str, Float[np.ndarray, "size"]]:
    """Return a vector of `size` numbers for each language, with inner products that approximate the similarities.

    Each similarity is scaled to 0 to 1 over pairs of languages and raised to `power`, and their mean is taken. The
    vectors are the leading components of that matrix K = V diag(λ) Vᵀ (kernel PCA without centring): V diag(λ)^½.
    Unknown similarities count as 0. `newcomers` move no other language: with similarities k to the others, their vector
    is kᵀ V diag(λ)^−½ (Nyström), wherever and in whatever company they are placed.
    """
    parts = [_scaled(languages, similarity, newcomers) for similarity in similarities]
    kernel, across = (np.mean([part[side] ** power for part in parts], axis=0) for side in (0, 1))
    values, vectors = np.linalg.eigh(kernel)
    order = np.argsort(-values)[:size]
    scales = np.sqrt(np.maximum(values[order], 0.0))
    points = vectors[:, order] * scales
    signs = np.where(points[np.abs(points).argmax(axis=0), np.arange(len(order))] < 0, -1.0, 1.0)  # fixes the sign
    usable = scales > 1e-6 * scales.max(initial=0.0)
    outside = across @ (vectors[:, order] * np.where(usable, 1 / np.where(usable, scales, 1.0), 0.0))
    everyone = np.concatenate([points, outside]) * signs
    padded = np.pad(everyone, ((0, 0), (0, size - len(order)))).astype(np.float32)
    return dict(zip([*languages, *newcomers], padded, strict=True))


def _scaled(
    languages: Sequence[str], similarity: Similarity, newcomers: Sequence[str]
) -> tuple[Float[np.ndarray, "languages languages"], Float[np.ndarray, "newcomers languages"]]:
    """Scale similarities of all pairs to 0 (lowest) to 1 (self), those of newcomers likewise; unknown ones are 0."""
    among = np.full((len(languages), len(languages)), np.nan)
    for i, first in enumerate(languages):
        for j in range(i):
            among[i, j] = among[j, i] = similarity(first, languages[j])
    across = np.array([[similarity(new, known) for known in languages] for new in newcomers])
    across = across.reshape(len(newcomers), len(languages))
    low = among[~np.isnan(among)].min(initial=np.inf)
    low = 0.0 if np.isinf(low) else low
    scaled, outside = (
        np.where(np.isnan(part), 0.0, np.clip((part - low) / max(1.0 - low, 1e-9), 0.0, 1.0))
        for part in (among, across)
    )
    np.fill_diagonal(scaled, 1.0)
    return scaled, outside


def unit_rows(matrix: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows columns"]:
    """Scale each row to unit norm; rows of zeros stay as they are."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(norms > 0, norms, 1.0)


@cache
def _packaged() -> Typology:
    """Read URIEL from lang2vec's data files; its code needs parts of setuptools that were removed."""
    try:
        package = distribution("lang2vec")
    except PackageNotFoundError:
        remedy = "install crossfill[typology], or name a folder of tables in sources.vectors"
        raise DataError(f"expected typological vectors for the nearest source, found none: {remedy}") from None
    folder = Path(str(package.locate_file("lang2vec/data")))
    blocks = {}
    for name, (file, prefix) in _PACKAGE.items():
        with np.load(folder / file, allow_pickle=False) as data:
            columns = [i for i, feature in enumerate(data["feats"].tolist()) if feature.startswith(prefix)]
            matrix = data["data"][:, columns, 0].astype(np.float32)
            rows = {language: i for i, language in enumerate(data["langs"].tolist())}
        blocks[name] = Block(rows, unit_rows(np.maximum(matrix, 0)))
    return Typology(blocks)
