"""Partitions of a grid's cells into seen and unseen, under the constraint of the paper's section 4.1.

Every unseen cell must have its task seen in another language and its language seen in another task; a cell whose task
or language occurs in no other cell is seen in every partition.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, cycle

from crossfill.errors import DataError, unknown
from crossfill.grid.cells import Cell

FEW_BRIDGES = 5
"""Fewer bridges than this are worth a note: see the table of bridges in docs/results.md."""
ENOUGH_BRIDGES = 10
"""Fewer, and names over a pretrained encoder score no better than by one shared head: the same table."""
Similarity = Callable[[str, str], float]
"""How similar two languages are: larger is more similar. Choosing a subset of languages expects it to be symmetric."""


@dataclass(frozen=True)
class Partition:
    """Cells to train on (seen) and cells to hold out (unseen)."""

    seen: frozenset[Cell]
    unseen: frozenset[Cell]


def hold_out(cells: Iterable[Cell], unseen: Iterable[Cell]) -> Partition:
    """Hold out exactly these cells; the error lists every cell that breaks the constraint."""
    known, wanted = set(cells), frozenset(unseen)
    for cell in sorted(wanted - known):
        raise DataError(unknown("cell", str(cell), map(str, sorted(known))))
    seen, problems = frozenset(known - wanted), []
    tasks, languages = _names(seen)
    for cell in sorted(wanted):
        missing = [] if cell.task in tasks else [f"task {cell.task}"]
        missing += [] if cell.language in languages else [f"language {cell.language}"]
        if missing:
            problems.append(f"{cell} cannot be unseen: {' and '.join(missing)} would be seen in no other cell")
    if problems:
        raise DataError("\n".join([*problems, "hold out fewer cells, or add data for these tasks and languages"]))
    return Partition(seen, wanted)


def random_halves(cells: Iterable[Cell], seed: int) -> tuple[Partition, Partition]:
    """Make two random partitions; each cell that can be held out is unseen in exactly one of them.

    Cells are the edges of a bipartite graph between tasks and languages. Colours that alternate along its Euler
    circuits split the edges of every task and language evenly (de Werra's equitable colouring), so both halves satisfy
    the constraint on any ragged grid with any number of tasks: each holds out half of a task's cells, half of a
    language's and half of all, to within one cell. With two tasks, that is one of the two cells of each language.
    """
    known = sorted(set(cells))
    free = _free(known, "random halves")
    colours = _alternate(free, random.Random(seed))  # noqa: S311 - a seeded experiment, not a secret
    first, second = (hold_out(known, [c for c in free if colours[c] is half]) for half in (True, False))
    return first, second


def bridge_halves(cells: Iterable[Cell], n_bridges: int, seed: int) -> tuple[Partition, Partition]:
    """Random halves in which `n_bridges` languages, drawn at random, are seen in all of their tasks.

    Partitions of one seed differ in their bridges alone: those of a smaller number are among those of a larger one.
    """
    known = sorted(set(cells))
    first, second = random_halves(known, seed)
    languages = sorted({cell.language for cell in first.unseen | second.unseen})
    if not 0 <= n_bridges < len(languages):
        raise DataError(f"expected 0 to {len(languages) - 1} bridges, to leave a language to hold out; got {n_bridges}")
    order = random.Random(seed).sample(languages, len(languages))  # noqa: S311 - a seeded experiment, not a secret
    bridges = set(order[:n_bridges])
    left, right = (hold_out(known, (c for c in half.unseen if c.language not in bridges)) for half in (first, second))
    return left, right


def alternating_halves(cells: Iterable[Cell], languages: Sequence[str] = ()) -> tuple[Partition, ...]:
    """Make the halves of the authors' script: every |T|-th cell, along the diagonals of tasks × languages.

    Cell (i, j) is unseen in partition (i + j) mod |T|, one partition per task. The script counts i·|L| + j instead: the
    same where |L| mod |T| = 1, as in the paper (2 × 33); elsewhere its count can hold out a whole language.
    `languages` gives their order, by default that of ISO 639-3 codes.
    """
    known = sorted(set(cells))
    tasks, names = map(sorted, _names(known))
    rows = {language: j for j, language in enumerate(languages or names)}
    for language in names:
        if language not in rows:
            raise DataError(unknown("language", language, rows) + "; the order has to name every language of the grid")
    free = _free(known, "alternating halves")
    return tuple(
        hold_out(known, [c for c in free if (tasks.index(c.task) + rows[c.language]) % len(tasks) == p])
        for p in range(len(tasks))
    )


def language_folds(cells: Iterable[Cell], n_folds: int, seed: int) -> tuple[Partition, ...]:
    """Leave out whole languages, each once: on purpose against the constraint, there is nothing but their text."""
    known = sorted(set(cells))
    tasks, languages = _names(known)
    if not 2 <= n_folds <= len(languages):
        raise DataError(f"expected 2 to {len(languages)} parts of {len(languages)} languages, got {n_folds}")
    order = random.Random(seed).sample(sorted(languages), len(languages))  # noqa: S311 - a seeded experiment
    folds = [frozenset(cell for cell in known if cell.language in order[i::n_folds]) for i in range(n_folds)]
    for fold in folds:
        for task in sorted(tasks - {cell.task for cell in known if cell not in fold}):
            raise DataError(f"{task} would be seen in no language: leave out fewer languages at a time")
    return tuple(Partition(frozenset(known) - fold, fold) for fold in folds)


def bridges(seen: Iterable[Cell]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Find the languages that are seen in both tasks, for each pair of tasks: its bridges."""
    languages: dict[str, set[str]] = defaultdict(set)
    for cell in seen:
        languages[cell.task].add(cell.language)
    return {(a, b): tuple(sorted(languages[a] & languages[b])) for a, b in combinations(sorted(languages), 2)}


def bridge_note(seen: Iterable[Cell]) -> str | None:
    """Say which pairs of tasks few languages bridge, but for pairs without an empty cell; none if all is well."""
    cells = frozenset(seen)
    facts = []
    for (first, second), shared in bridges(cells).items():
        either = {cell.language for cell in cells if cell.task in (first, second)}
        if len(shared) < min(FEW_BRIDGES, len(either)):
            count = f"only {', '.join(shared)} {'has' if len(shared) == 1 else 'have'}" if shared else "no language has"
            facts.append(f"{count} both {first} and {second}")
    if not facts:
        return None
    more = [f"and {len(facts) - 3} more pairs of tasks have as few"] if len(facts) > 3 else []
    return (
        f"{'; '.join(facts[:3] + more)}: from so little the model can hardly learn how the two tasks of a language go "
        f"together; annotate {FEW_BRIDGES} or more languages in both tasks, or compare with jm and jm-kernel"
    )


def similar_languages(languages: Iterable[str], size: int, similarity: Similarity) -> tuple[str, ...]:
    """Choose languages that are as similar as possible (the paper's Sim): largest sum of similarity over pairs."""
    return _subset(sorted(set(languages)), size, similarity)


def different_languages(languages: Iterable[str], size: int, similarity: Similarity) -> tuple[str, ...]:
    """Choose languages that are as different as possible (the paper's Dif): smallest sum of similarity over pairs."""
    return _subset(sorted(set(languages)), size, lambda a, b: -similarity(a, b))


def _names(cells: Iterable[Cell]) -> tuple[set[str], set[str]]:
    pairs = [(cell.task, cell.language) for cell in cells]
    return {task for task, _ in pairs}, {language for _, language in pairs}


def _free(cells: Sequence[Cell], what: str) -> list[Cell]:
    """List the cells that can be held out: their task and their language also occur in other cells."""
    tasks, languages = Counter(c.task for c in cells), Counter(c.language for c in cells)
    free = [c for c in cells if tasks[c.task] > 1 and languages[c.language] > 1]
    if not free:
        got = ", ".join(map(str, cells[:20])) or "no cells"
        raise DataError(f"{what} need a cell whose task and whose language occur in other cells, too; got {got}")
    return free


def _alternate(cells: Sequence[Cell], random_source: random.Random) -> dict[Cell | None, bool]:
    """Make an equitable two-colouring: true and false alternate along the Euler circuits of tasks × languages.

    Vertices of odd degree are joined to an extra vertex of the other side, which makes every degree even; circuits of a
    bipartite graph are even, so colours alternate all the way round.
    """
    edges: list[tuple[tuple[str, str], tuple[str, str], Cell | None]]
    edges = [(("task", cell.task), ("language", cell.language), cell) for cell in cells]
    degree = Counter(vertex for left, right, _ in edges for vertex in (left, right))
    odd = sorted(vertex for vertex, n in degree.items() if n % 2)
    edges += [(("language", ""), v, None) if v[0] == "task" else (("task", ""), v, None) for v in odd]
    if sum(side == "task" for side, _ in odd) % 2:
        edges.append((("task", ""), ("language", ""), None))
    random_source.shuffle(edges)

    at: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, (left, right, _) in enumerate(edges):
        at[left].append(i)
        at[right].append(i)
    colours: dict[Cell | None, bool] = {}
    walked = [False] * len(edges)
    for start in list(at):
        vertex, colour = start, cycle(random_source.sample((True, False), 2))
        while at[vertex]:
            i = at[vertex].pop()
            if walked[i]:
                continue
            walked[i] = True
            left, right, cell = edges[i]
            vertex = right if vertex == left else left
            colours[cell] = next(colour)
    return colours


def _subset(languages: Sequence[str], size: int, gain: Similarity) -> tuple[str, ...]:
    """Choose languages with the largest sum of gains: greedy search from every language, then swaps; deterministic."""
    if not 2 <= size <= len(languages):
        raise DataError(f"expected a subset of 2 to {len(languages)} languages, got {size}")
    matrix = {a: {b: gain(a, b) if a != b else 0.0 for b in languages} for a in languages}

    def pull(language: str, chosen: Sequence[str]) -> float:
        return sum(matrix[language][other] for other in chosen)

    def climb(first: str) -> list[str]:
        chosen, rest = [first], [a for a in languages if a != first]
        while len(chosen) < size:
            chosen.append(max(rest, key=lambda a: pull(a, chosen)))
            rest.remove(chosen[-1])
        while rest:
            pulls = {a: pull(a, chosen) for a in languages}
            change, old, new = max(
                (pulls[new] - matrix[new][old] - pulls[old], old, new) for old in chosen for new in rest
            )
            if change <= 1e-9:
                break
            chosen[chosen.index(old)], rest[rest.index(new)] = new, old
        return chosen

    return tuple(sorted(max(map(climb, languages), key=lambda chosen: sum(pull(a, chosen) for a in chosen))))
