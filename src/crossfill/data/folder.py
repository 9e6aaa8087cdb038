"""Read a grid from a data folder, and write a grid to a data folder."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from crossfill.data import bio, storage
from crossfill.data.beside import look_beside
from crossfill.data.checks import Level, Problem
from crossfill.data.labels import LabelColumn, task_name
from crossfill.data.layout import UD, SourceFile, Split, find_sources
from crossfill.data.readers import VERSION, read_corpus
from crossfill.data.splits import capped, eighty_ten_ten, without_leaks
from crossfill.data.storage import Reading
from crossfill.errors import DataError, unknown
from crossfill.files import default_cache, write_atomically
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus


@dataclass(frozen=True)
class FolderReading:
    """A grid, and all problems found while reading its folder."""

    grid: Grid
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level == "error")


def load_grid(
    path: str | Path,
    *,
    tasks: Sequence[str] = (),
    seed: int = 0,
    max_train: int | None = None,
    cache: Path | bool = True,
) -> Grid:
    """Load the grid of a data folder; if files cannot be read, the error lists all problems.

    `tasks` keeps only these, and may name further columns of UD treebanks (`deprel`, `feats:Case`). `seed` determines
    random splits and the choice of `max_train` sentences. `cache` is a folder, or whether to use the default one.
    """
    reading = read_folder(path, tasks=tasks, seed=seed, max_train=max_train, cache=cache)
    if reading.errors:
        raise DataError("\n".join(map(str, reading.errors)))
    return reading.grid


def read_folder(
    path: str | Path,
    *,
    tasks: Sequence[str] = (),
    seed: int = 0,
    max_train: int | None = None,
    cache: Path | bool = True,
    watch: Callable[[Sequence[SourceFile]], Iterable[SourceFile]] = iter,
) -> FolderReading:
    """Like `load_grid`, but returns the problems beside the grid; `watch` iterates over files and may show progress."""
    root = Path(path)
    store = default_cache() if cache is True else cache or None
    wanted = tuple(task_name(task) for task in tasks)
    sources, problems = find_sources(root)
    names = _corpus_names(sources, root)
    readings: dict[tuple[Cell, str], dict[Split, list[Reading]]] = {}
    for source in watch(sources):
        for task in _tasks_of(source, wanted):
            cell = Cell(task, source.language)
            where = f"{cell} {source.path.relative_to(root)}"
            try:
                found = _read(source, task, where, root, store)
            except DataError as error:
                place, _, message = str(error).partition(": ")
                problems.append(Problem("error", place, message))
                continue
            problems += [Problem("warning", where, "has no sentences")] * (not len(found.corpus))
            readings.setdefault((cell, names[source]), {}).setdefault(source.split, []).append(found)

    corpora: dict[Cell, tuple[Splits, ...]] = {}
    for (cell, name), parts in readings.items():
        if not _has_labels(parts):
            problems.append(Problem("note", str(cell), f"{name} has no labels for {cell.task}: left out"))
            continue
        splits, told = _splits(cell, name, parts, seed, max_train)
        problems += told
        corpora[cell] = (*corpora.get(cell, ()), splits)
    for task in wanted:
        if not any(cell.task == task for cell in corpora):
            message = unknown("task", task, sorted({cell.task for cell in corpora}))
            problems.append(Problem("error", str(root), message))
    if not corpora:
        told = [str(problem) for problem in problems if problem.level == "error"]
        hint = f"{root}: expected corpora as <task>/<language>/train.conllu or .bio, a UD release or WikiANN; got none"
        raise DataError("\n".join([*told, hint]))
    return FolderReading(Grid(corpora), tuple(problems))


def write_grid(grid: Grid, folder: Path) -> None:
    """Write every corpus as `<task>/<language>/<split>.bio`, or as `<corpus>-<split>.bio` where a cell has several."""
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder}: expected no folder of that name, or an empty one; name another")
    for cell in grid.cells:
        corpora = grid[cell]
        for splits in corpora:
            prefix = f"{splits.name}-" if len(corpora) > 1 else ""
            for split, corpus in splits.parts.items():
                sentences = [bio.TaggedSentence(s.words, s.labels) for s in corpus]
                if sentences:
                    path = folder / cell.task / cell.language / f"{prefix}{split}.bio"
                    write_atomically(path, bio.render(sentences).encode())


def _tasks_of(source: SourceFile, wanted: Sequence[str]) -> Iterable[str]:
    if source.task != UD:
        return [source.task] if not wanted or source.task in wanted else []
    return [task for task in wanted or ("pos",) if LabelColumn.names(task)]


def _corpus_names(sources: Sequence[SourceFile], root: Path) -> dict[SourceFile, str]:
    """The name of each source's corpus, or its folder if two folders use the same name for a cell."""
    homes: dict[tuple[str, str, str], set[Path]] = defaultdict(set)
    for source in sources:
        homes[source.task, source.language, source.corpus].add(source.home)
    return {
        source: source.corpus
        if len(homes[source.task, source.language, source.corpus]) == 1
        else str(source.home.relative_to(root))
        for source in sources
    }


def _read(source: SourceFile, task: str, where: str, root: Path, store: Path | None) -> Reading:
    try:
        data = source.path.read_bytes()
    except OSError as error:
        raise DataError(f"{where}: expected a readable file; {error.strerror}") from None
    beside = look_beside(source.path, root, task)
    entry = None
    if store is not None:
        name = storage.entry_name(data, VERSION, source.suffix, str(source.packed), task, repr(beside))
        entry = store / "corpora" / name
        if (found := storage.load(entry)) is not None:
            return found
    found = read_corpus(data, where, task, beside, source.suffix, source.packed)
    if entry is not None:
        with suppress(OSError):  # a cache that cannot be written only costs time
            storage.save(entry, found)
    return found


def _has_labels(parts: Mapping[Split, Sequence[Reading]]) -> bool:
    return any(r.corpus.labels.distinct() - {"_"} for readings in parts.values() for r in readings)


def _splits(
    cell: Cell, name: str, parts: Mapping[Split, Sequence[Reading]], seed: int, max_train: int | None
) -> tuple[Splits, list[Problem]]:
    """The splits of one corpus, and notes and warnings on how they were made."""
    told: list[tuple[Level, str]] = []
    given = {split: Corpus.joined(reading.corpus for reading in readings) for split, readings in parts.items()}
    if whole := given.pop("whole", None):
        given["train"], given["dev"], given["test"] = eighty_ten_ten(whole, seed)
        told.append(("note", f"{name} comes without splits: {len(whole):,} sentences parted 80–10–10 by seed {seed}"))
    splits, dropped = without_leaks(Splits(name, **given))
    if dropped:
        told.append(("note", f"{dropped:,} training sentences that recur in dev or test left out"))
    train = capped(splits.train, max_train, seed)
    room = None if max_train is None else max_train - len(train)
    splits = replace(splits, train=train, surplus=capped(splits.surplus, room, seed))

    readings = [reading for part in parts.values() for reading in part]
    schemes = Counter(reading.scheme for reading in readings if len(reading.corpus))
    for found in sorted(schemes):
        if found == "mixed":
            repaired = sum(reading.repaired for reading in readings)
            told.append(("warning", f"suspicious scheme: {repaired:,} tags fit no scheme, read as conlleval would"))
        elif found == "none" and cell.task == "ner":
            told.append(("warning", "suspicious scheme: expected IOB tags (B-PER, I-PER, O), got other labels"))
        elif found not in ("none", "IOB2"):
            told.append(("note", f"{found} tags rewritten as IOB2"))
    if prefixes := sorted({reading.prefix for reading in readings if reading.prefix}):
        told.append(("note", f"prefix {', '.join(prefixes)} taken off every word"))
    if normalised := sum(reading.normalised for reading in readings):
        told.append(("note", f"{normalised:,} words composed (NFC)"))
    return splits, [Problem(level, str(cell), message) for level, message in told]
