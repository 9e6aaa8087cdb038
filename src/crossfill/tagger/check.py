"""Check the labels of a grid: each by the head of its corpus without the sentence, by influence.

A corpus is fitted by itself (`crossfill.adaptation`), from a prior centred on zero; sentences of one text are left out
together. Heads read the cues of words, and a frozen encoder's features if there is one: no model has to be trained.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import SCALES_FROM_SCRATCH, Fit
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.encoders.base import Encoder, build_encoder
from crossfill.encoders.cues import KINDS, NONE, cues_of
from crossfill.errors import EncoderError
from crossfill.evaluation.label_errors import FormUse, LabelError, compare_uses, find_errors
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Unit
from crossfill.grid.text_keys import sentence_hashes
from crossfill.tagger.presets import RunRequest, choose_settings
from crossfill.tagger.train import centre

MOST_WORDS = 50_000
"""Words that a head is fitted to at once; larger corpora are checked in parts."""
FEWEST = 20
"""Sentences of a corpus that is checked."""


@dataclass(frozen=True)
class CheckedCorpus:
    """One corpus of a cell: how many of its labels are wrong, as far as heads can tell."""

    cell: Cell
    name: str
    labels: int
    """Words (sentences, pairs) that have a label."""
    share: float | None
    """The estimated share of errors; none where the corpus was not checked."""
    problem: str = ""
    """Why it was not."""


@dataclass(frozen=True)
class Check:
    """What `check` found."""

    errors: Sequence[LabelError]
    """Labels that are probably wrong, the least likely ones first."""
    corpora: Sequence[CheckedCorpus]
    uses: Sequence[FormUse]
    """Forms that corpora of a task label differently."""

    def __repr__(self) -> str:
        return f"<Check of {len(self.corpora)} corpora: {len(self.errors)} labels to look at>"


@dataclass(frozen=True)
class _Member:
    """A corpus of a grid, with all of its splits."""

    cell: Cell
    name: str
    parts: Sequence[Corpus]
    """As they are encoded in training and evaluation, so that their features are in the cache."""

    @classmethod
    def of(cls, cell: Cell, splits: Splits, several: bool) -> "_Member":
        parts = (splits.training, splits.dev, splits.evaluation(seen=True))
        return cls(cell, f"{cell} ({splits.name})" if several else str(cell), [part for part in parts if len(part)])

    @cached_property
    def corpus(self) -> Corpus:
        return Corpus.joined(self.parts)


def check(
    grid: Grid,
    encoder: str | None = None,
    *,
    most: int = 100,
    cache: Path | bool = True,
    watch: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> Check:
    """Find the labels of a grid that are most likely wrong, and forms that its corpora label differently.

    Args:
        grid: Corpora with labels; all of their splits are checked.
        encoder: A pretrained encoder whose features heads read; without one, they read the cues of words only.
        most: How many labels to find.
        cache: The folder for features, or whether to use the default one.
        watch: Iterates over the corpora, and may show progress.

    """
    network = None
    if encoder is not None:
        if encoder == "compact":
            raise EncoderError(
                "encoder 'compact': expected a pretrained one that stays frozen, got one that trains; name another, or "
                "none: cues of words alone find most errors"
            )
        config = choose_settings(grid, grid.cells, RunRequest(encoder=encoder, preset="laptop")).config
        network = build_encoder(config, grid.inventory.languages, cache).eval()
        centre(network, grid, grid.cells)
    members = [_Member.of(cell, splits, len(grid[cell]) > 1) for cell in grid.cells for splits in grid[cell]]
    errors: list[LabelError] = []
    checked = []
    for member in watch(members):
        worst, result = _check_corpus(member, network, most)
        errors = sorted([*errors, *worst], key=lambda error: -error.surprise)[:most]
        checked.append(result)
    uses = [
        use
        for task in grid.tasks
        if grid.inventory.task(task).unit is Unit.WORD
        for use in compare_uses(task, ((m.cell.language, m.name, m.corpus) for m in members if m.cell.task == task))
    ]
    return Check(errors, checked, uses)


def _check_corpus(member: _Member, encoder: Encoder | None, most: int) -> tuple[list[LabelError], CheckedCorpus]:
    corpus, n = member.corpus, len(set(sentence_hashes(member.corpus)))
    counts = corpus.label_counts()
    labels = sorted(counts)
    problem = ""
    if n < FEWEST:
        problem = f"expected {FEWEST} sentences or more, got {n}"
    elif len(labels) < 2:
        problem = "all of its labels are the same"
    elif corpus.unit is not Unit.WORD and encoder is None:
        problem = f"labels of {corpus.unit}s need an --encoder"
    if problem:
        return [], CheckedCorpus(member.cell, member.name, counts.total(), None, problem)
    logits = left_out_logits(_examples(member, labels, encoder), len(labels)).numpy()
    errors, noise = find_errors(member.cell, member.name, corpus, logits, labels, most)
    return errors, CheckedCorpus(member.cell, member.name, counts.total(), noise.share)


@torch.inference_mode()
def _examples(member: _Member, labels: Sequence[str], encoder: Encoder | None) -> Examples:
    """Make the examples of a corpus; here, texts may occur twice."""
    corpus, words = member.corpus, member.corpus.unit is Unit.WORD
    given = torch.from_numpy(corpus.labels.positions_in({label: i for i, label in enumerate(labels)}))
    cues = cues_of(corpus) if words else torch.full((len(given), len(KINDS)), NONE)
    features = torch.zeros(len(given), 0)
    if encoder is not None:
        inputs = [encoder.prepare(part.text(), member.cell.language) for part in member.parts]
        features = torch.cat([encoder.pool(encoder(one), one.lengths, corpus.unit) for one in inputs]).float()
    lengths = torch.from_numpy(corpus.lengths) if words else torch.ones(len(corpus), dtype=torch.long)
    return Examples(features, cues, given, lengths, sentence_hashes(corpus))


@torch.no_grad()
def left_out_logits(examples: Examples, n_labels: int) -> Float[Tensor, "words labels"]:
    """Compute the logits of all words by heads without any sentence of the same text."""
    texts: dict[str, list[int]] = {}
    for sentence, text in enumerate(examples.hashes):
        texts.setdefault(text, []).append(sentence)
    in_order, n_parts = [texts[text] for text in sorted(texts)], -(-len(examples.labels) // MOST_WORDS)
    logits = torch.zeros(len(examples.labels), n_labels, dtype=torch.float64)
    prior = HeadPrior.at(torch.zeros(n_labels, examples.features.shape[1] + 1, dtype=torch.float64))
    for part in range(n_parts):
        same_text = in_order[part::n_parts]
        chosen = [sentence for sentences in same_text for sentence in sentences]
        few, words = examples.take(chosen), torch.arange(len(examples.words_of(chosen)))
        groups = words.split([len(examples.words_of(sentences)) for sentences in same_text])
        fit = Fit.of(prior, few, SCALES_FROM_SCRATCH.variances(few))
        logits[examples.words_of(chosen)] = fit.problem.leave_out_logits(groups)
    return logits
