"""Read a grid from a data folder, and write a grid to a data folder."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from crossfill.data import remarks, storage
from crossfill.data.beside import look_beside
from crossfill.data.checks import Problem, of_one_unit
from crossfill.data.crossing import keep_apart
from crossfill.data.labels import LabelColumn, task_name
from crossfill.data.layout import UD, SourceFile, find_sources
from crossfill.data.readers import TEXT, VERSION, read_corpus
from crossfill.data.splits import capped, eighty_ten_ten
from crossfill.data.storage import Reading
from crossfill.data.texts import FOLDER as TEXT_FOLDER
from crossfill.data.texts import read_texts
from crossfill.data.unread import summed
from crossfill.data.writers import writer
from crossfill.errors import DataError, unknown
from crossfill.files import default_cache, write_atomically
from crossfill.grid.cells import SPLITS, Cell, Grid, Splits
from crossfill.grid.sentence import Corpus
from crossfill.grid.unit import Unit


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
    strict: bool = False,
    lacking: bool = False,
) -> Grid:
    """Load the grid of a data folder; if files cannot be read, the error lists all problems.

    `tasks` keeps only these, and may name further columns of UD treebanks (`deprel`, `feats:Case`). `seed` determines
    random splits and the choice of `max_train` sentences. `cache` is a folder, or whether to use the default one.
    A bad line loses its sentence; with `strict`, it is an error. With `lacking`, tasks that the folder lacks are none.
    """
    reading = read_folder(
        path, tasks=tasks, seed=seed, max_train=max_train, cache=cache, strict=strict, lacking=lacking
    )
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
    strict: bool = False,
    lacking: bool = False,
    watch: Callable[[Sequence[SourceFile]], Iterable[SourceFile]] = iter,
) -> FolderReading:
    """Like `load_grid`, but returns the problems beside the grid; `watch` iterates over files and may show progress."""
    root = Path(path)
    store = default_cache() if cache is True else cache or None
    wanted = tuple(task_name(task) for task in tasks)
    sources, unread = find_sources(root, store)
    unread += _not_asked_for(sources, wanted, root)
    texts, about_texts = read_texts(root)
    unread = [problem for problem in unread if problem.where != TEXT_FOLDER or not texts]
    names = corpus_names(sources, root)
    problems: list[Problem] = list(about_texts)
    readings: dict[tuple[Cell, str], list[tuple[SourceFile, Reading]]] = {}
    for source in watch(sources):
        for task in tasks_of(source, wanted):
            cell, place = Cell(task, source.language), str(source.path.relative_to(root))
            try:
                found = _read(source, task, f"{cell} {place}", root, store, strict)
            except DataError as error:
                where, _, message = str(error).partition(": ")
                problems.append(Problem("error", where, message))
                continue
            problems += remarks.on_file(place, found)
            readings.setdefault((cell, names[source]), []).append((source, found))

    corpora: dict[Cell, tuple[Splits, ...]] = {}
    for (cell, name), files in readings.items():
        if not any(reading.corpus.labels.distinct() - {"_"} for _, reading in files):
            problems.append(Problem("note", str(cell), f"{name} has no labels for {cell.task}: left out"))
            continue
        if len({source.split == "whole" for source, _ in files}) == 2:
            found = ", ".join(sorted(str(source.path.relative_to(root)) for source, _ in files))
            message = f"expected {name} in files by split (train, dev, test) or in one without, got both: {found}; "
            problems.append(Problem("error", str(cell), message + "remove one, or name it <corpus>-train"))
            continue
        if len(units := {reading.corpus.unit for _, reading in files if len(reading.corpus)}) > 1:
            message = f"expected {name} with labels of one unit, got {' and '.join(sorted(units))}s; part its files"
            problems.append(Problem("error", str(cell), message))
            continue
        splits, told = _splits(cell, name, files, seed)
        problems += told
        problems += remarks.on_columns([(str(source.path.relative_to(root)), found) for source, found in files])
        problems += remarks.on_corpus(cell, [found for _, found in files])
        corpora[cell] = (*corpora.get(cell, ()), splits)
    corpora, mixed = of_one_unit(corpora)
    problems += mixed
    corpora, crossings = keep_apart(corpora)
    problems += remarks.on_crossings(crossings, corpora)
    corpora = {cell: kept for cell, found in corpora.items() if (kept := _capped(found, max_train, seed))}
    for task in () if lacking else wanted:
        if not any(cell.task == task for cell in corpora):
            there = {known for source in sources for known in tasks_of(source, ())}
            message = unknown("task", task, sorted(there))
            problems.append(Problem("error", str(root), message))
    told = remarks.once([*problems, *unread])
    if not corpora:
        hint = f"{root}: expected corpora as <task>/<language>/train.conllu or .bio, a UD release or WikiANN; got none"
        hints = [] if any(problem.level == "error" for problem in told) else [hint]
        raise DataError("\n".join([*(str(problem) for problem in summed(told) if problem.level != "note"), *hints]))
    return FolderReading(Grid(corpora, texts), told)


def write_grid(grid: Grid, folder: Path) -> None:
    """Write every corpus as `<task>/<language>/<split>.bio`, or as `<corpus>-<split>.bio` where a cell has several.

    Sentences and pairs with their labels are written as `.tsv`.
    """
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder}: expected no folder of that name, or an empty one; name another")
    for cell in grid.cells:
        corpora = grid[cell]
        for splits in corpora:
            prefix = f"{splits.name}-" if len(corpora) > 1 else ""
            for split, corpus in splits.parts.items():
                suffix = ".bio" if corpus.unit is Unit.WORD else ".tsv"
                if len(corpus):
                    path = folder / cell.task / cell.language / f"{prefix}{split}{suffix}"
                    write_atomically(path, writer(suffix, corpus.unit)(corpus, cell.task, ()))


def tasks_of(source: SourceFile, wanted: Sequence[str]) -> list[str]:
    """The tasks that a file is read for; a treebank's without `wanted` is `pos`."""
    if source.task != UD:
        return [source.task] if not wanted or source.task in wanted else []
    return [task for task in wanted or ("pos",) if LabelColumn.names(task)]


def _not_asked_for(sources: Sequence[SourceFile], wanted: Sequence[str], root: Path) -> list[Problem]:
    """One line for each folder of a task that was not asked for."""
    left = Counter((source.home, source.task) for source in sources if not tasks_of(source, wanted))
    return [
        Problem(
            "unread", str(home.relative_to(root)), f"{n:,} {'file' if n == 1 else 'files'} of {task}: not asked for"
        )
        for (home, task), n in sorted(left.items())
    ]


def corpus_names(sources: Sequence[SourceFile], root: Path) -> dict[SourceFile, str]:
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


def _read(source: SourceFile, task: str, where: str, root: Path, store: Path | None, strict: bool) -> Reading:
    found = _parsed(source, task, where, root, store)
    if strict and found.n_lost:
        line, problem = found.lost[0]
        bad = f"{found.n_lost:,} sentences are bad; " if found.n_lost > 1 else ""
        raise DataError(
            f"{where}:{line}: {problem} ({bad}without strict, {'they are' if bad else 'its sentence is'} left out)"
        )
    return found


def _parsed(source: SourceFile, task: str, where: str, root: Path, store: Path | None) -> Reading:
    """The reading of a file, from the cache if it is there."""
    try:
        data = source.path.read_bytes()
    except OSError as error:
        raise DataError(f"{where}: expected a readable file; {error.strerror}") from None
    beside = look_beside(source.path, root, task)
    if source.suffix in TEXT:
        beside = replace(beside, language=source.language)
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


def _splits(
    cell: Cell, name: str, files: Sequence[tuple[SourceFile, Reading]], seed: int
) -> tuple[Splits, list[Problem]]:
    """The splits of one corpus, and a note if they had to be made."""
    parts: dict[str, list[Corpus]] = defaultdict(list)
    for source, reading in files:
        parts[source.split].append(reading.corpus)
    if "whole" not in parts:
        return Splits(name, *(Corpus.joined(parts[split]) for split in SPLITS)), []
    whole = Corpus.joined(parts["whole"])
    train, dev, test = eighty_ten_ten(whole, seed)
    told = f"{name} comes without splits: {len(whole):,} sentences parted 80–10–10 by seed {seed}"
    return Splits(name, train, dev, test), [Problem("note", str(cell), told)]


def _capped(corpora: Iterable[Splits], max_train: int | None, seed: int) -> tuple[Splits, ...]:
    """The corpora that have sentences, with at most this many training sentences, surplus included."""
    kept = []
    for splits in corpora:
        train = capped(splits.train, max_train, seed)
        room = None if max_train is None else max_train - len(train)
        kept.append(replace(splits, train=train, surplus=capped(splits.surplus, room, seed)))
    return tuple(splits for splits in kept if any(map(len, splits.parts.values())))
