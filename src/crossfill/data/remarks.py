"""What a person should know about files that were read: sentences left out, columns recognised, tags rewritten."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from crossfill.data.checks import Level, Problem
from crossfill.data.crossing import Crossing
from crossfill.data.storage import Reading
from crossfill.grid.cells import Cell, Splits
from crossfill.grid.sentence import Corpus

_SHOWN_WORDS = 8


def on_file(where: str, reading: Reading) -> list[Problem]:
    """What was left out of a file for a bad line, which words were split where a span cuts them, that it is empty."""
    told = [Problem("warning", f"{where}:{line}", f"sentence left out: {why}") for line, why in reading.lost]
    if more := reading.n_lost - len(reading.lost):
        told.append(Problem("warning", where, f"{more:,} more {_sentences(more)} left out, each for a bad line"))
    told += [Problem("note", f"{where}:{line}", why) for line, why in reading.cut]
    if more := reading.n_cut - len(reading.cut):
        told.append(Problem("note", where, f"words split where spans begin or end on {more:,} more lines"))
    if not len(reading.corpus):
        told.append(Problem("warning", where, "has no sentences"))
    return told


def on_columns(files: Sequence[tuple[str, Reading]]) -> list[Problem]:
    """How the columns of a corpus were recognised, where that was a question: once for all files that are alike."""
    alike: dict[tuple[str, bool], list[tuple[str, Reading]]] = {}
    for where, reading in files:
        if reading.columns and len(reading.corpus):
            alike.setdefault((reading.columns, reading.doubtful), []).append((where, reading))
    told = []
    for (how, doubtful), found in alike.items():
        (where, reading), level = found[0], "warning" if doubtful else "recognised"
        others = f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""
        remedy = "; if that is wrong, name the columns in a file columns.txt beside it" if doubtful else ""
        told.append(Problem(level, where + others, f"{how}; first sentence: {first_sentence(reading.corpus)}{remedy}"))
    return told


def on_corpus(cell: Cell, readings: Sequence[Reading]) -> list[Problem]:
    """Notes and warnings on what was changed in the words and tags of a corpus."""
    told: list[tuple[Level, str]] = []
    schemes = Counter(reading.scheme for reading in readings if len(reading.corpus))
    for found in sorted(schemes):
        if found == "mixed":
            repaired = sum(reading.repaired for reading in readings)
            told.append(("warning", f"suspicious scheme: {repaired:,} tags fit no scheme, read as conlleval would"))
        elif found == "none" and cell.task == "ner":
            told.append(("warning", "suspicious scheme: expected IOB tags (B-PER, I-PER, O), got other labels"))
        elif found not in ("none", "IOB2"):
            told.append(("note", f"{found} tags rewritten as IOB2"))
    if recased := sum(reading.recased for reading in readings):
        told.append(("note", f"{recased:,} tags rewritten in upper case"))
    if prefixes := sorted({reading.prefix for reading in readings if reading.prefix}):
        told.append(("note", f"prefix {', '.join(prefixes)} taken off every word"))
    if normalised := sum(reading.normalised for reading in readings):
        told.append(("note", f"{normalised:,} words composed (NFC)"))
    return [Problem(level, str(cell), message) for level, message in told]


def on_crossings(crossings: Iterable[Crossing], corpora: Mapping[Cell, Sequence[Splits]]) -> list[Problem]:
    """Notes on sentences that were left out or moved because they are evaluation text; warnings where none are left."""
    told = []
    for crossing in crossings:
        cell = crossing.cell
        splits = next(splits for splits in corpora[cell] if splits.name == crossing.corpus)
        named = f" ({splits.name})" if len(corpora[cell]) > 1 else ""
        n_training = crossing.left_out["train"] + crossing.left_out["surplus"]
        messages = [
            f"{n:,} {what} {_sentences(n)} left out: {held_out} text of {_tasks(crossing)}{named}"
            for n, what, held_out in (
                (n_training, "training", "dev or test"),
                (crossing.left_out["dev"], "dev", "test"),
                (crossing.left_out["test"], "test", "test"),
            )
            if n
        ]
        if moved := crossing.moved:
            n_test = len(splits.test)
            messages.append(
                f"{moved:,} of {moved + n_test:,} test sentences train, {n_test:,} evaluate{named}: the text is also "
                "test text of another corpus of the language"
            )
        told += [Problem("note", str(cell), message) for message in messages]
        if not any(map(len, splits.parts.values())):
            message = f"{splits.name} left out: all its text is dev or test text of {_tasks(crossing)}"
            told.append(Problem("warning", str(cell), f"{message}; give corpora of one text the same splits"))
    return told


def first_sentence(corpus: Corpus) -> str:
    """The first sentence as it was read, `Dakar/B-LOC mooy/O`, cut after a few words."""
    sentence = next(sentence for sentence in corpus if len(sentence))
    pairs = list(zip(sentence.words, sentence.labels, strict=True))
    shown = " ".join(f"{word[:30]}/{label[:30]}" for word, label in pairs[:_SHOWN_WORDS])
    return f"{shown} …" if len(pairs) > _SHOWN_WORDS else shown


def once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems in their order, each once: a treebank read for several tasks has the same bad line in each."""
    return tuple(dict.fromkeys(problems))


def _tasks(crossing: Crossing) -> str:
    """The tasks that evaluate on what was left out, the corpus's own only if there is no other."""
    tasks = sorted(crossing.tasks - {crossing.cell.task}) or [crossing.cell.task]
    return tasks[0] if len(tasks) == 1 else f"{', '.join(tasks[:-1])} and {tasks[-1]}"


def _sentences(n: int) -> str:
    return "sentence" if n == 1 else "sentences"
