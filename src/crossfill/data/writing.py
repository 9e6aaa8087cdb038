"""A grid as a data folder, to be read again by `load_grid`."""

from pathlib import Path

from crossfill.data import bio
from crossfill.errors import DataError
from crossfill.files import write_atomically
from crossfill.grid import Grid


def write_grid(grid: Grid, folder: Path) -> None:
    """Write every corpus as `<task>/<language>/<split>.bio`, or as `<corpus>-<split>.bio` where a cell has several."""
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder}: expected no folder of that name, or an empty one; name another")
    for cell in grid.cells:
        corpora = grid[cell]
        for splits in corpora:
            prefix = f"{splits.name}-" if len(corpora) > 1 else ""
            for split in ("train", "dev", "test", "surplus"):
                sentences = [bio.TaggedSentence(s.words, s.labels) for s in getattr(splits, split)]
                if sentences:
                    path = folder / cell.task / cell.language / f"{prefix}{split}.bio"
                    write_atomically(path, bio.render(sentences).encode())
