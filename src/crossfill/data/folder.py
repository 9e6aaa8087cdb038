"""Read a grid from a data folder."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from crossfill.data import messages
from crossfill.data.codes import is_own_name, language_code
from crossfill.data.corpus_cache import cached
from crossfill.data.labels import LabelColumn, task_name
from crossfill.data.layout import UD, SourceFile, find_sources
from crossfill.data.messages import Level, Message
from crossfill.data.readers import READERS, VERSION, Reading, read_corpus
from crossfill.data.reading import NO_HINTS, ReadingHints, decode, find_hints, read_bytes, unpacked
from crossfill.data.segmentation import Segmenter
from crossfill.data.splits import capped, eighty_ten_ten, separate_evaluation_text
from crossfill.errors import DataError, unknown, unreadable
from crossfill.files import default_cache
from crossfill.grid.cells import SPLITS, Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence

Files = list[tuple[SourceFile, Reading]]
TEXT_FOLDER = "text"
"""The folder of unlabelled text, `text/<language>/*.txt`: enough to give a language without any corpus a place."""
MOST_SENTENCES = 1000  # sentences of unlabelled text that are read in a language: more do not move its centroid


@dataclass(frozen=True)
class ReadOptions:
    """How a data folder is read."""

    tasks: Sequence[str] = ()
    """Keep only these; they may name further columns of UD treebanks (`deprel`, `feats:Case`)."""
    seed: int = 0
    """Determines random splits and the choice of `max_train` sentences."""
    max_train: int | None = None
    """Most training sentences of a corpus."""
    cache: Path | bool = True
    """A folder for parsed corpora, or whether to use the default one."""
    allow_missing: bool = False
    """Whether to ignore tasks that the folder does not have."""


@dataclass(frozen=True)
class FolderReading:
    """A grid, and all problems found while reading its folder."""

    grid: Grid
    problems: tuple[Message, ...]

    @property
    def errors(self) -> tuple[Message, ...]:
        return tuple(problem for problem in self.problems if problem.level == "error")

    def checked(self) -> Grid:
        """Return the grid, or raise an error that lists all files that cannot be read."""
        if self.errors:
            raise DataError("\n".join(map(str, self.errors)))
        return self.grid


def load_grid(
    path: str | Path,
    *,
    tasks: Sequence[str] = (),
    seed: int = 0,
    max_train: int | None = None,
    cache: Path | bool = True,
    allow_missing: bool = False,
) -> Grid:
    """Load the grid of a data folder; if files cannot be read, the error lists all. See `ReadOptions` for the rest."""
    return read_folder(path, ReadOptions(tasks, seed, max_train, cache, allow_missing)).checked()


def read_folder(
    path: str | Path,
    options: ReadOptions = ReadOptions(),  # noqa: B008 - frozen
    watch: Callable[[Sequence[SourceFile]], Iterable[SourceFile]] = iter,
) -> FolderReading:
    """Read a data folder, with all problems; `watch` iterates over files and may show progress."""
    root, seed = Path(path), options.seed
    store = default_cache() if options.cache is True else options.cache or None
    wanted = tuple(task_name(task) for task in options.tasks)
    sources, unread = find_sources(root, store)
    not_asked = Counter((source.home, source.task) for source in sources if not tasks_in(source, wanted))
    for (home, task), n in sorted(not_asked.items()):
        text = f"{n:,} {'file' if n == 1 else 'files'} of {task}: not asked for"
        unread.append(Message("unread", str(home.relative_to(root)), text))
    texts, problems = read_texts(root)
    unread = [problem for problem in unread if problem.where != TEXT_FOLDER or not texts]
    names = corpus_names(sources, root)
    readings: dict[tuple[Cell, str], Files] = {}
    for source, cell, reading in read_sources(watch(sources), wanted, root, problems, store):
        files = readings.setdefault((cell, names[source]), [])
        shown = any(reading.columns == other.columns for _, other in files)  # columns once for files that are alike
        said = reading.messages(str(source.path.relative_to(root)), cell)
        problems += [message for message in said if not (shown and message.level == "recognised")]
        files.append((source, reading))

    corpora: dict[Cell, tuple[Splits, ...]] = {}
    for (cell, name), files in readings.items():
        if problem := _unusable(name, cell.task, files, root):
            problems.append(Message(problem[0], str(cell), problem[1]))
            continue
        parts: dict[str, list[Corpus]] = defaultdict(list)
        for source, reading in files:
            parts[source.split].append(reading.corpus)
        if "whole" in parts:
            whole = Corpus.joined(parts["whole"])
            splits = Splits(name, *eighty_ten_ten(whole, seed))
            note = f"{name} comes without splits: {len(whole):,} sentences parted 80–10–10 by seed {seed}"
            problems.append(Message("note", str(cell), note))
        else:
            splits = Splits(name, *(Corpus.joined(parts[split]) for split in SPLITS))
        corpora[cell] = (*corpora.get(cell, ()), splits)
    for language in sorted({cell.language for cell in corpora if is_own_name(cell.language)}):
        note = "is no code of ISO 639: a column of this name, of which no typological vectors are known"
        problems.append(Message("note", language, note))
    corpora, reports = separate_evaluation_text(corpora)
    problems += messages.about_leakage(reports, corpora)
    limited = ((cell, _capped(several, options.max_train, seed)) for cell, several in corpora.items())
    corpora = {cell: several for cell, several in limited if several}
    for task in wanted:
        if not options.allow_missing and not any(cell.task == task for cell in corpora):
            known = {known for source in sources for known in tasks_in(source, ())}
            problems.append(Message("error", str(root), unknown("task", task, sorted(known))))
    all_problems = tuple(dict.fromkeys([*problems, *unread]))  # a bad line may be read for several tasks
    if not corpora:
        lines = [str(problem) for problem in messages.grouped_messages(all_problems) if problem.level != "note"]
        if not any(problem.level == "error" for problem in all_problems):
            expected = "corpora as <task>/<language>/train.conllu or .bio, a UD release or WikiANN"
            lines.append(f"{root}: expected {expected}; got none")
        raise DataError("\n".join(lines))
    return FolderReading(Grid(corpora, texts), all_problems)


def read_texts(root: Path) -> tuple[dict[str, Corpus], list[Message]]:
    """Read the text of each language under `text/`, and say what is wrong with it."""
    texts: dict[str, Corpus] = {}
    problems: list[Message] = []
    for home in sorted(path for path in root.glob(f"{TEXT_FOLDER}/*") if path.is_dir()):
        where = f"{TEXT_FOLDER}/{home.name}"
        try:
            language = language_code(home.name)
        except DataError as error:
            problems.append(Message("warning", where, f"not read: {error}"))
            continue
        files = sorted(path for path in home.iterdir() if path.name.lower().endswith((".txt", ".txt.gz")))
        try:
            corpus = read_text(files, language)
        except DataError as error:
            problems.append(_as_message(error))
            continue
        if len(corpus):
            texts[language] = corpus
            problems.append(Message("note", where, f"{len(corpus):,} sentences of unlabelled text"))
        else:
            problems.append(Message("warning", where, "has no text in files *.txt"))
    return texts, problems


def read_text(files: Iterable[Path], language: str) -> Corpus:
    """Read the sentences of files of plain text, at most `MOST_SENTENCES`."""

    def sentences() -> Iterator[Sentence]:
        for path in files:
            text = "\n".join(decode(unpacked(read_bytes(path), str(path)), str(path)))
            yield from Segmenter(language).split_text(text)

    return Corpus.from_text(islice(sentences(), MOST_SENTENCES))


def tasks_in(source: SourceFile, wanted: Sequence[str]) -> list[str]:
    """Return the tasks that a file is read for; a treebank's without `wanted` is `pos`."""
    if source.task != UD:
        return [source.task] if not wanted or source.task in wanted else []
    return [task for task in wanted or ("pos",) if LabelColumn.names(task)]


def corpus_names(sources: Sequence[SourceFile], root: Path) -> dict[SourceFile, str]:
    """Name the corpus of each source, by its folder if two folders use the same name for a cell."""
    homes: dict[tuple[str, str, str], set[Path]] = defaultdict(set)
    for source in sources:
        homes[source.task, source.language, source.corpus].add(source.home)
    folders = {source: homes[source.task, source.language, source.corpus] for source in sources}
    return {s: s.corpus if len(folders[s]) == 1 else str(s.home.relative_to(root)) for s in sources}


def read_sources(
    sources: Iterable[SourceFile], wanted: Sequence[str], root: Path, problems: list[Message], store: Path | None = None
) -> Iterator[tuple[SourceFile, Cell, Reading]]:
    """Read each file for its tasks; what cannot be read is added to `problems`."""
    for source in sources:
        for cell in (Cell(task, source.language) for task in tasks_in(source, wanted)):
            where = f"{cell} {source.path.relative_to(root)}"
            try:
                reading = _read_source(source, cell.task, where, root, store)
            except DataError as error:
                problems.append(_as_message(error))
            else:
                yield source, cell, replace(reading, corpus=reading.corpus.read_from(str(source.path)))


def _read_source(
    source: SourceFile, task: str, where: str, root: Path, store: Path | None = None, more: ReadingHints = NO_HINTS
) -> Reading:
    """Read a file, or take what was read from the cache in `store` if the file has not changed since.

    `more` says of words without a label what the hints next to the file may also say.
    """
    try:
        hints = find_hints(source.path, root, task)
        marks, partial = more.unlabelled or hints.unlabelled, more.partial or hints.partial
        hints = replace(hints, language=source.language, unlabelled=marks, partial=partial)
        how = (VERSION, source.suffix, str(source.packed), task, repr(hints))

        def read() -> Reading:
            return read_corpus(source.path.read_bytes(), where, task, hints, source.suffix, source.packed)

        return cached(store, source.path, how, read)
    except OSError as error:
        raise unreadable(where, error) from None


def read_file(path: Path, cell: Cell, unlabelled: Sequence[str] = (), spans_partial: bool = False) -> Reading:
    """Read a single file of labelled sentences, by its ending.

    `unlabelled` and `spans_partial` say which words nobody has labelled, as columns.txt next to the file may.
    """
    packed = path.suffix.lower() == ".gz"
    suffix = (path.with_suffix("") if packed else path).suffix.lower()
    if suffix not in READERS:
        raise DataError(f"{path}: " + unknown("ending", suffix, filter(None, READERS)))
    absolute = path.absolute()
    source = SourceFile(absolute, cell.task, cell.language, cell.task, "whole", absolute.parent, suffix)
    more = ReadingHints(unlabelled=tuple(unlabelled), partial=spans_partial)
    return _read_source(source, cell.task, str(path), absolute.parent, more=more)


def _as_message(error: DataError) -> Message:
    """Say what an error says, with its place apart."""
    where, _, message = str(error).partition(": ")
    return Message("error", where, message)


def _unusable(name: str, task: str, files: Files, root: Path) -> tuple[Level, str] | None:
    """Say why the files of a corpus cannot be used together, if they cannot."""
    if not any(set(reading.corpus.label_counts()) - {"_"} for _, reading in files):
        return "note", f"{name} has no labels for {task}: left out"
    if len({source.split == "whole" for source, _ in files}) == 2:
        paths = ", ".join(sorted(str(source.path.relative_to(root)) for source, _ in files))
        message = f"expected {name} in files by split (train, dev, test) or in one without, got both: {paths}; "
        return "error", message + "remove one, or name it <corpus>-train"
    return None


def _capped(corpora: Iterable[Splits], max_train: int | None, seed: int) -> tuple[Splits, ...]:
    """Return the corpora that have sentences, with at most this many training sentences, surplus included."""
    limited = []
    for splits in corpora:
        train = capped(splits.train, max_train, seed)
        room = None if max_train is None else max_train - len(train)
        limited.append(replace(splits, train=train, surplus=capped(splits.surplus, room, seed)))
    return tuple(splits for splits in limited if any(map(len, splits.parts.values())))
