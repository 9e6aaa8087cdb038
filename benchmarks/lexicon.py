"""What word lists and half-annotated text are worth: `python benchmarks/lexicon.py DATA --encoder ENCODER`.

PF-lr trains on each half of configs/frozen.yaml's cells (`random_halves`, seed 11). In unseen cells, lists are made of
the training text: the most frequent forms (in tasks of names: the most frequent names) with all labels that they have
there. Scores are of the test text, whose labels nothing else sees, after a list, some sentences, or both; and after as
many labelled words in sentences of which every second word is labelled. In tasks of names also recall, where only
half of the names in twenty sentences are marked, and O is unknown. `--chosen` measures the languages that chose the
settings, by default all others are measured, or those of `--languages`. Prints one JSON line: mean scores, and p of
sign flips over cells. With `--unsaid`, before it, one of the scores of seen and unseen cells of all those languages,
with the language of sixty test sentences said (`--cell ner/wol`) and not (`--cell ner`).
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import torch

from crossfill.adaptation.cell import shifted
from crossfill.adaptation.curves import random_order
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import Fit, default_scales, predict_with
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.heads import generated_prior
from crossfill.adaptation.lexicon import Lexicon
from crossfill.config import parse_config
from crossfill.data.lexicons import read_lexicon
from crossfill.evaluation.scoring import predict_cell
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.partition import Partition, random_halves
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Task, TaskKind
from crossfill.measures.metrics import Labelling, score, spans
from crossfill.prediction.calibration import Calibration, TaskCalibration, rule_for
from crossfill.prediction.language_choice import LanguageProfiles
from crossfill.prediction.rules import Rule
from crossfill.settings import merged, read_settings
from crossfill.studies.study import load_study_grid, parse_study, typology_folder
from crossfill.tagger.tagger import Tagger
from crossfill.tagger.train import texts_by_language, train_model
from crossfill.training.labelled import prepare

FORMS, SENTENCES, MANY, UNSAID = (50, 200, 1000), (0, 20), 10_000, 60


@dataclass(frozen=True)
class Target:
    """An unseen cell: its generated head, sentences to learn from and to score, and lists of each size."""

    task: Task
    rule: Rule
    prior: HeadPrior
    train: Examples
    test: Examples
    lists: dict[int, Lexicon]

    def probabilities(self, few: Examples, lexicon: Lexicon | None = None) -> tuple[np.ndarray, Rule]:
        """Return the probabilities of test words, and the rule of decisions."""
        if not len(few) and lexicon is None:
            return predict_with(self.prior.mean.unsqueeze(0), few.labels, self.test), self.rule
        typical = few if len(few) or lexicon is None else lexicon.after(few)
        fit = Fit.of(self.prior, few, default_scales(self.prior, self.task).variances(typical), lexicon)
        rule = shifted(self.rule, fit, self.task) if len(few) else self.rule
        return predict_with(fit.approximate_mean().unsqueeze(0), fit.known, self.test), rule

    def score(self, few: Examples, lexicon: Lexicon | None = None) -> float:
        """Score the test words after some sentences, a list or both."""
        return 100 * score(self.test.labels.numpy(), self._chosen(few, lexicon), self.task, self.test.lengths.numpy())

    def recall(self, few: Examples) -> float:
        """Return the share of names in the test text that are found."""
        labelling = Labelling(self.test.labels.numpy(), self._chosen(few), self.task, self.test.lengths.numpy())
        hits, n_gold, _ = labelling.counts().sum(0)
        return 100 * float(hits / max(1, n_gold))

    def _chosen(self, few: Examples, lexicon: Lexicon | None = None) -> np.ndarray:
        probabilities, rule = self.probabilities(few, lexicon)
        return rule.choose(probabilities, self.test.lengths.numpy(), self.task)


def most_frequent(corpus: Corpus, task: Task) -> list[tuple[str, set[str]]]:
    """List the forms of a corpus, or its names, by frequency, with the labels that they have there."""
    counts: Counter[str] = Counter()
    labels: dict[str, set[str]] = defaultdict(set)
    for sentence in corpus:
        ids = np.array([task.labels.index(label) for label in sentence.labels])
        if task.kind is TaskKind.SPANS:
            size, types = len(ids) + 1, sorted({label[2:] for label in task.labels if label != "O"})
            for span in spans(ids, task.labels, np.array([len(ids)])).tolist():
                place, kind = divmod(span, len(types))
                start, end = divmod(place, size)
                name = " ".join(sentence.words[start:end])
                counts[name] += 1
                labels[name].add(types[kind])
        else:
            for word, label in zip(sentence.words, sentence.labels, strict=True):
                counts[word] += 1
                labels[word].add(label)
    return [(form, labels[form]) for form, _ in counts.most_common() if form.split()]


def half_labelled(examples: Examples, order: Sequence[int], n_words: int) -> Examples:
    """Take sentences in an order until every second of their words makes so many labelled words."""
    taken, n = [], 0
    for place in order:
        taken.append(place)
        n += int(examples.lengths[place]) // 2
        if n >= n_words:
            break
    few = examples.take(taken)
    place = torch.cat([torch.arange(int(length)) for length in few.lengths])
    return replace(few, labels=torch.where(place % 2 == 1, few.labels, -1))


def half_marked(few: Examples, task: Task) -> tuple[Examples, Examples]:
    """Leave half of the names unmarked: their words are O, or all words outside of marked names are unknown."""
    none, labels = task.labels.index("O"), few.labels.clone()
    is_first = torch.tensor([label.startswith("B-") for label in task.labels])[labels]
    number = is_first.cumsum(0)
    dropped = (labels != none) & (number % 2 == 0)
    as_none = torch.where(dropped, none, labels)
    return replace(few, labels=as_none), replace(few, labels=torch.where(as_none == none, -1, as_none))


def measured(target: Target, draws: int = 1) -> dict[str, float]:
    """Measure a cell: scores by name."""
    rows: dict[str, list[float]] = defaultdict(list)
    for draw in range(draws):
        order = random_order(len(target.train), draw)
        for n, k in product(SENTENCES, (0, *FORMS)):
            if n and len(order) < n:
                continue
            rows[f"{n} sentences, {k} forms"].append(target.score(target.train.take(order[:n]), target.lists.get(k)))
        few = target.train.take(order[:20])
        if target.task.kind is TaskKind.SPANS:
            as_none, as_unknown = half_marked(few, target.task)
            for name, given in (("all names", few), ("half, others O", as_none), ("half, others unknown", as_unknown)):
                rows[f"recall, {name}"].append(target.recall(given))
                rows[f"F1, {name}"].append(target.score(given))
            rows["recall, no sentences"].append(target.recall(target.train.take([])))
        else:
            whole = target.train.take(order[:10])
            half = half_labelled(target.train, order, whole.n_labelled)
            rows["10 whole sentences"].append(target.score(whole))
            rows["half-labelled, as many words"].append(target.score(half))
            rows["half-labelled words left out"].append(target.score(whole.take(range(5))))
    return {name: float(np.mean(values)) for name, values in rows.items()}


def summary(cells: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Mean scores over cells; and where a list was given, the gain by it, cells that lose, and p of sign flips."""
    found: dict[str, dict[str, float]] = {}
    for name in cells[0]:
        with_it = [cell for cell in cells if name in cell]
        found[name] = {"mean": round(float(np.mean([cell[name] for cell in with_it])), 2), "cells": len(with_it)}
        without = f"{name.split(',')[0]}, 0 forms"
        if "forms" in name and without != name:
            gains = np.array([cell[name] - cell[without] for cell in with_it])
            signs = np.random.default_rng(0).choice([-1, 1], size=(MANY, len(gains)))
            p = (1 + int((np.abs((signs * gains).mean(1)) >= abs(gains.mean()) - 1e-12).sum())) / (1 + MANY)
            found[name] |= {"gain": round(float(gains.mean()), 2), "lower": int((gains < 0).sum()), "p": round(p, 5)}
    return found


@dataclass(frozen=True)
class Half:
    """A model that was trained on half of the cells, and how decisions are made with it."""

    tagger: Tagger
    grid: Grid
    partition: Partition
    chosen: set[str]
    """The languages that chose the settings."""

    @property
    def scored(self) -> Iterable[tuple[Cell, Corpus]]:
        """The cells of all languages that have test text which was not trained on."""
        for cell in sorted(self.partition.seen | self.partition.unseen):
            seen = cell in self.partition.seen
            if len(test := Corpus.joined(self.grid.evaluation(cell, seen).values())):
                yield cell, test


def halves(data: str, encoder_name: str) -> Iterable[Half]:
    """Train on each half; unseen cells of the languages that chose the settings say how decisions are made."""
    study = parse_study(merged(read_settings(Path("configs/frozen.yaml")), {"data": {"path": data}}))
    grid, chosen = load_study_grid(study.data).grid, set(study.chosen.languages if study.chosen else ())
    common = {
        "encoder": {"name": encoder_name, "pretrained": {"precision": "int8"}},
        "sources": {"vectors": typology_folder(study.data)},
    }
    config = parse_config(merged(merged(study.config, common), {"method": "pf-lr"}))
    for partition in random_halves(grid.cells, 11):
        model = train_model(grid, partition.seen, config).model
        samples = defaultdict(list)
        with torch.no_grad():
            for cell in sorted(c for c in partition.unseen if c.language in chosen):
                corpora = grid.evaluation(cell, seen=False).values()
                parts = [prepare(model.encoder, model.inventory, cell, c) for c in corpora]
                samples[cell.task].append(predict_cell(model, cell, parts, config).sample())
        tasks = {name: model.inventory.task(name) for name in samples}
        calibration = Calibration({name: TaskCalibration.of(samples[name], task) for name, task in tasks.items()}, {})
        profiles = LanguageProfiles.of(texts_by_language(grid, partition.seen))
        yield Half(Tagger(model, config, calibration, profiles=profiles), grid, partition, chosen)


def targets(half: Half, is_measured: Callable[[str, set[str]], bool]) -> Iterable[Target]:
    """Prepare the unseen cells of a half that have something to make lists of."""
    calibration = half.tagger.calibration or Calibration({}, {})
    for cell, test in half.scored:
        seen_or_bare = cell in half.partition.seen or not half.grid[cell][0].has_training_data
        if not seen_or_bare and is_measured(cell.language, half.chosen):
            yield target(half, cell, test, rule_for(calibration.of(cell.task, 0), "metric"))


def target(half: Half, cell: Cell, test: Corpus, rule: Rule) -> Target:
    model, corpus = half.tagger.model, half.grid.training(cell)
    task = model.inventory.task(cell.task)
    forms = most_frequent(corpus, task)
    lists = {k: Lexicon.of(model, cell, task, read_lexicon(dict(forms[:k]), task)) for k in FORMS}
    examples = (Examples.of(model, cell, one) for one in (corpus, test))
    return Target(task, rule, generated_prior(model, cell), *examples, lists)


def said_and_not(half: Half, chosen_only: bool) -> dict[str, list[tuple[float, float]]]:
    """Score test sentences with their language said and not, in seen and in unseen cells."""
    rows: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for cell, every in half.scored:
        if (cell.language in half.chosen) is not chosen_only:
            continue
        test = every.take(range(min(len(every), UNSAID)))
        task = half.tagger.model.inventory.task(cell.task)
        tagged = zip(*half.tagger.tag_cells(Corpus.from_text(test), [cell, cell.task], samples=0), strict=True)
        gold = half.tagger.model.inventory.label_ids(cell.task, test.labels)
        chosen = (np.array([task.labels.index(y) for one in side for y in one.labels]) for side in tagged)
        first, second = (100 * score(gold, ids, task, test.lengths) for ids in chosen)
        rows[f"{cell.task}, {'seen' if cell in half.partition.seen else 'unseen'}"].append((first, second))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--chosen", action="store_true")
    parser.add_argument("--languages", default="", help="all others by default")
    parser.add_argument("--unsaid", action="store_true")
    parser.add_argument("--draws", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    wanted = set(given.languages.split(",")) - {""}

    def is_measured(language: str, chosen: set[str]) -> bool:
        return language in wanted if wanted else (language in chosen) is given.chosen

    of_task: dict[str, list[dict[str, float]]] = defaultdict(list)
    unsaid: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for half in halves(given.data, given.encoder):
        for name, pairs in said_and_not(half, given.chosen).items() if given.unsaid else ():
            unsaid[name] += pairs
        with torch.no_grad():  # not around the next training
            for one in targets(half, is_measured):
                of_task[one.task.name].append(measured(one, given.draws))
    if given.unsaid:
        means = {name: (np.mean(pairs, axis=0).round(2).tolist(), len(pairs)) for name, pairs in unsaid.items()}
        print(json.dumps({"said, and not": means}))
    print(json.dumps({"lexicon": {task: summary(cells) for task, cells in of_task.items()}}))


if __name__ == "__main__":
    main()
