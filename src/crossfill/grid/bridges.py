"""Bridges of a grid: languages seen in two tasks, without which nothing ties a language's use in one to the other."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from crossfill.grid.cells import Cell

FEW = 5
"""Fewer bridges than this are worth a note: see the table of bridges in docs/results.md."""
MOST_FACTS = 3
"""Most pairs of tasks that a note names."""


def bridges(seen: Iterable[Cell]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The languages that are seen in both tasks, for each pair of tasks."""
    languages: dict[str, set[str]] = defaultdict(set)
    for cell in seen:
        languages[cell.task].add(cell.language)
    return {(a, b): tuple(sorted(languages[a] & languages[b])) for a, b in combinations(sorted(languages), 2)}


def bridge_note(seen: Iterable[Cell]) -> str | None:
    """Which pairs of tasks few languages or none bridge, and what follows for their empty cells; none if all is well.

    A pair that has no empty cell (every language is in both tasks, or in neither) needs no bridge.
    """
    cells = frozenset(seen)
    facts = []
    for (first, second), shared in bridges(cells).items():
        either = {cell.language for cell in cells if cell.task in (first, second)}
        if len(shared) < min(FEW, len(either)):
            found = f"only {', '.join(shared)} {'has' if len(shared) == 1 else 'have'}" if shared else "no language has"
            facts.append(f"{found} both {first} and {second}")
    if not facts:
        return None
    told = "; ".join(facts[:MOST_FACTS])
    if len(facts) > MOST_FACTS:
        told += f"; and so for {len(facts) - MOST_FACTS} more pairs of tasks"
    return (
        f"{told}: from so little the model can hardly learn how the two tasks of a language go together, and what "
        f"pf-lr and pf-d fill in comes from the similarity of languages; annotate {FEW} or more languages in both "
        "tasks, or compare with jm and jm-kernel"
    )
