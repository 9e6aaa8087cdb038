"""Decision rules: from probabilities to labels, for the metric that a task is scored by.

Where every word counts, the most probable label is the best decision for a word alone. F1 counts what was found against
what is there, and its best decision also depends on how often anything is there. A rule adds an offset b to the label
that means none (`O`, `_`). In tasks with spans, and in cells with labelled sentences of their own, it chooses the best
sequence of a sentence by what usually follows what, with spans among valid IOB2 sequences only:

    y* = argmax over valid y of Σᵢ log pᵢ(yᵢ) + b · [yᵢ is none] + ½ Aᵢ     Aᵢ = log p(yᵢ | yᵢ₋₁) / p(yᵢ)

The offset is chosen on seen cells that were held out in turn, so that it expects a cell that was never seen, and A is
counted there; in tasks of tags also in the sentences that a cell was adapted to. A weighs half, as words know some of
what their neighbours tell. IOB2 is valid where an I-X follows B-X or I-X only; the confidence of a word or span is its
probability under the rule, over all sequences that it weighs: p(y) = exp(Σᵢ …) [y is valid] / Z.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from crossfill.grid.task import Task, TaskKind, Unit
from crossfill.measures.metrics import LabelIds, Labelling, Lengths, Probabilities, span_types, spans

Preference = Literal["f1", "precision", "recall"]
BETAS: dict[Preference, float] = {"f1": 1.0, "precision": 0.5, "recall": 2.0}
"""The β of the F score that an offset maximises: below 1 precision counts more, above it recall."""
FARTHEST, STEP = 4.0, 0.1
"""Offsets that are tried: from −FARTHEST to FARTHEST."""
WEIGHT, CELL_WORDS, TASK_WORDS = 0.5, 1000, 100
"""The weight of A, the words that each held-out cell counts as in it, and those that all of them count as next to the
sentences of an adapted cell. Chosen on languages that report nothing."""
TINY = 1e-30
PairTable = tuple[tuple[float, ...], ...]
"""A number for each label after each label, and in the last row at the beginning of a sentence."""


@dataclass(frozen=True)
class Rule:
    """How the probabilities of a task's labels become labels."""

    offset: float = 0.0
    """Added to the log-probability of the label that means none; below 0 finds more, above 0 fewer."""
    valid: bool = True
    """Whether spans are decoded as valid IOB2 sequences."""
    pairs: PairTable = ()
    """The share of each pair of labels in a task (`pair_shares`), which A is taken from; empty for A of zero."""
    counts: PairTable = ()
    """Pairs of labels in the sentences that the cell was adapted to, which count in A with those of the task."""

    def choose(self, probabilities: Probabilities, lengths: Lengths, task: Task) -> LabelIds:
        """Choose the label of each word, sentence or pair, as a column of the probabilities."""
        weights = np.log(np.maximum(self.weighed(probabilities, task), TINY))
        if not self._is_of_sequences(task):
            return weights.argmax(-1)
        return viterbi(weights, lengths, task.labels, self.transitions)

    def confidence(
        self, probabilities: Probabilities, chosen: LabelIds, lengths: Lengths, task: Task
    ) -> Float[np.ndarray, "words"]:
        """Compute the probability of the chosen labels under the rule: over all sequences, where it weighs pairs."""
        weighed = self.weighed(probabilities, task)
        if self.transitions is not None and self._is_of_sequences(task):
            forward, backward, _ = _recursions(weighed, lengths, move_weights(task.labels, self.transitions))
            weighed = (forward * backward).astype(probabilities.dtype)
        return weighed[np.arange(len(chosen)), chosen]

    def weighed(self, probabilities: Probabilities, task: Task) -> Probabilities:
        """Add the offset to the log-probability of the label that means none."""
        if not self.offset or task.absent is None:
            return probabilities
        factors = np.ones(len(task.labels), dtype=probabilities.dtype)
        factors[task.labels.index(task.absent)] = np.exp(self.offset)
        return probabilities * factors / (probabilities @ factors)[:, None]

    @property
    def transitions(self) -> Float[np.ndarray, "previous labels"] | None:
        """½ A, if the rule looks at pairs."""
        return transitions(self.pairs, self.counts) if self.pairs else None

    def _is_of_sequences(self, task: Task) -> bool:
        return (self.valid and task.kind is TaskKind.SPANS) or bool(self.counts)


class Sample(NamedTuple):
    """Words of one cell with their right labels, and what a model that never saw the cell believes of them."""

    probabilities: Probabilities
    gold: LabelIds
    lengths: Lengths


def count_pairs(gold: LabelIds, lengths: Lengths, n_labels: int) -> Float[np.ndarray, "previous labels"]:
    """Count how often each label follows each, and in the last row how often it begins a sentence.

    Pairs with a word without a label count for none.
    """
    counts = np.zeros((n_labels + 1, n_labels))
    before = np.append(n_labels, gold[:-1])
    before[(np.cumsum(lengths) - lengths)[lengths > 0]] = n_labels
    known = (before >= 0) & (gold >= 0)
    np.add.at(counts, (before[known], gold[known]), 1.0)
    return counts


def pair_shares(cells: Sequence[Sample], task: Task) -> PairTable:
    """Compute the share of each pair of labels, each cell counting the same; nothing for tasks without sequences."""
    if task.kind is TaskKind.VALUES or task.unit is not Unit.WORD or not cells:
        return ()
    n = len(task.labels)
    tables = (count_pairs(sample.gold, sample.lengths, n) for sample in cells)
    pairs = sum((table * CELL_WORDS / max(1, table.sum()) for table in tables), np.full((n + 1, n), 0.5))
    return tuple(map(tuple, (pairs / pairs.sum()).round(9).tolist()))


def transitions(shares: PairTable, counts: PairTable = ()) -> Float[np.ndarray, "previous labels"]:
    """Compute ½ A from the shares of a task's pairs, and from the pairs that a cell was adapted to."""
    pairs = TASK_WORDS * np.array(shares) + (np.array(counts) if counts else 0)
    return WEIGHT * np.log(pairs / pairs.sum(1, keepdims=True) / (pairs.sum(0) / pairs.sum()))


def fit_offsets(cells: Sequence[Sample], task: Task, pairs: PairTable = ()) -> dict[Preference, float]:
    """Find for each preference the offset with the best mean score over the cells; none where all words count.

    Scores are smoothed over neighbouring offsets, as a few spans make them jump.
    """
    if task.absent is None or not cells:
        return {}
    offsets = np.arange(-FARTHEST, FARTHEST + STEP / 2, STEP)
    counts = np.empty((3, len(offsets), len(cells)), dtype=np.int64)
    for i, offset in enumerate(offsets.tolist()):
        for j, sample in enumerate(cells):
            chosen = Rule(offset, pairs=pairs).choose(sample.probabilities, sample.lengths, task)
            counts[:, i, j] = Labelling(sample.gold, chosen, task, sample.lengths).counts().sum(0)
    hits, gold, predicted = counts
    best: dict[Preference, float] = {}
    for preference, beta in BETAS.items():
        scores = (1 + beta**2) * hits / np.maximum(beta**2 * gold + predicted, 1)
        smooth = np.convolve(np.pad(scores.mean(1), 2, mode="edge"), np.full(5, 0.2), mode="valid")
        best[preference] = round(float(offsets[smooth.argmax()]), 6)
    return best


class DecodedSpan(NamedTuple):
    """A span of the decoded sequence: words `start` to `end` (exclusive), counted over all sentences."""

    start: int
    end: int
    type: str
    confidence: float
    """The probability of a span with exactly this start, end and type, over all valid sequences."""


def follows(labels: Sequence[str]) -> Bool[np.ndarray, "labels labels"]:
    """Say whether the label of each column may follow that of each row."""
    inside = np.array([label.startswith("I-") for label in labels])
    same = np.array([[one != "O" and one[2:] == other[2:] for other in labels] for one in labels])
    return ~inside[None, :] | same


def viterbi(
    weights: Probabilities,
    lengths: Lengths,
    labels: Sequence[str],
    after: Float[np.ndarray, "previous labels"] | None = None,
) -> LabelIds:
    """Find the valid sequence of each sentence with the largest sum of weights, of all sentences at once."""
    with np.errstate(divide="ignore"):  # what is not valid weighs −∞
        logs = np.log(move_weights(labels, after))
    moves_from, first = logs[:-1], logs[-1]
    steps = _steps(lengths)
    back = np.zeros(weights.shape, dtype=np.int64)
    scores = np.zeros((len(steps[0]) if steps else 0, len(labels)))
    for step, rows in enumerate(steps):
        n = len(rows)
        if step == 0:
            scores[:] = weights[rows] + first
            continue
        moves = scores[:n, :, None] + moves_from  # sentences × previous label × next label
        back[rows] = moves.argmax(1)
        scores[:n] = moves.max(1) + weights[rows]
    best = scores.argmax(1)
    chosen = np.zeros(len(weights), dtype=np.int64)
    for rows in reversed(steps):
        n = len(rows)
        chosen[rows] = best[:n]
        best[:n] = back[rows, best[:n]]
    return chosen


def move_weights(
    labels: Sequence[str], after: Float[np.ndarray, "previous labels"] | None = None
) -> Float[np.ndarray, "previous labels"]:
    """Weigh each label after each, and in the last row at the beginning: e^A, and 0 for what is not valid."""
    begins = np.array([not label.startswith("I-") for label in labels])
    valid = np.vstack([follows(labels), begins]).astype(np.float64)
    return valid if after is None else valid * np.exp(after)


def decode_spans(
    probabilities: Probabilities,
    decoded: LabelIds,
    lengths: Lengths,
    labels: Sequence[str],
    after: Float[np.ndarray, "previous labels"] | None = None,
) -> list[DecodedSpan]:
    """Find the spans of a sequence with their probabilities, by the forward and backward recursions."""
    table = move_weights(labels, after)
    forward, backward, scales = _recursions(probabilities, lengths, table)
    p = np.maximum(probabilities, TINY)
    column = {label: i for i, label in enumerate(labels)}
    types, sentence_end = span_types(labels), np.repeat(np.cumsum(lengths), lengths)
    decoded_spans = []
    for item in spans(decoded, labels, lengths).tolist():
        place, number = divmod(item, len(types))
        (start, end), kind = divmod(place, len(decoded) + 1), types[number]
        inside = column.get(f"I-{kind}")
        mass = forward[start, column[f"B-{kind}"]]
        if inside is not None:
            before = decoded[start : end - 1]
            mass *= np.prod(p[start + 1 : end, inside] * table[before, inside] / scales[start + 1 : end])
        if end < sentence_end[start]:  # the span ends here: the next label is any valid one but its continuation
            others = table[decoded[end - 1]].copy()
            if inside is not None:
                others[inside] = 0.0
            mass *= float((p[end] * backward[end]) @ others) / scales[end]
        decoded_spans.append(DecodedSpan(start, end, kind, min(1.0, float(mass))))
    return decoded_spans


def _recursions(
    probabilities: Probabilities, lengths: Lengths, table: Float[np.ndarray, "previous labels"]
) -> tuple[Probabilities, Probabilities, Float[np.ndarray, "words"]]:
    """Compute forward and backward sums over all sequences, divided at each word by the total of the forward sums."""
    p, allowed = np.maximum(probabilities.astype(np.float64), TINY), table[:-1]
    steps = _steps(lengths)
    forward, backward, scales = np.zeros_like(p), np.ones_like(p), np.ones(len(p))
    for step, rows in enumerate(steps):
        reach = table[-1] if step == 0 else forward[steps[step - 1][: len(rows)]] @ allowed
        mass = p[rows] * reach
        scales[rows] = mass.sum(1)
        forward[rows] = mass / scales[rows, None]
    for step in range(len(steps) - 1, 0, -1):
        rows = steps[step]
        backward[steps[step - 1][: len(rows)]] = (p[rows] * backward[rows] / scales[rows, None]) @ allowed.T
    return forward, backward, scales


def _steps(lengths: Lengths) -> list[Int[np.ndarray, "active"]]:
    """List the rows of all first words, all second words, …; longest sentences first, so that unfinished ones lead."""
    order = np.argsort(-lengths, kind="stable")
    first = (np.cumsum(lengths) - lengths)[order]
    active = np.searchsorted(-lengths[order], -np.arange(1, int(lengths.max(initial=0)) + 1), side="right")
    return [first[:n] + step for step, n in enumerate(active)]
