"""Evaluation of a model on the corpora of a grid, and calibration on seen cells that were held out in turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.config import Config, PredictionConfig
from crossfill.evaluation.results import CellResult, PredictionKind, SetResult, grouped
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Task
from crossfill.measures import uncertainty
from crossfill.measures.metrics import LabelIds, Labelling, Lengths, Probabilities, score
from crossfill.model import AS_ITS_TASK, Model
from crossfill.prediction.calibration import Calibration, TaskCalibration, rule_for, tempered
from crossfill.prediction.predict import Prediction, encode, predict_features
from crossfill.prediction.rules import Rule, Sample
from crossfill.training.labelled import Labelled, prepare

STUDY_WORDS, STUDY_SAMPLES = 800, 10
"""The paper's entropy study: this many random test words of a cell, this many draws from the posterior."""
ALPHA = 0.1
"""Default level α of the label sets that are measured."""


def scored_corpora(model: Model, grid: Grid) -> list[tuple[Cell, str, Corpus]]:
    """List cell, name and test data of every corpus whose test data the model was not trained on."""
    return [
        (cell, name, corpus)
        for cell in grid.cells
        for name, corpus in grid.evaluation(cell, seen=cell in model.seen).items()
    ]


def evaluate(
    model: Model,
    grid: Grid,
    config: Config,
    calibration: Calibration | None = None,
    alpha: float = ALPHA,
    report: Callable[[int, str], None] = lambda _done, _note: None,
) -> list[CellResult]:
    """Evaluate the model on every corpus that has test data the model was not trained on.

    With a calibration, results include measures of label sets at level α and of the temperature. `report` is called
    before each corpus, with the number of corpora done and the cell.
    """
    results = []
    for cell, name, corpus in scored_corpora(model, grid):
        report(len(results), str(cell))
        result = evaluate_corpus(model, cell, name, corpus, config, calibration, alpha)
        left_out = sum(splits.left_out for splits in grid[cell] if splits.name == name)
        results.append(replace(result, left_out=left_out))
    return results


def evaluate_corpus(
    model: Model,
    cell: Cell,
    name: str,
    corpus: Corpus,
    config: Config,
    calibration: Calibration | None = None,
    alpha: float = ALPHA,
) -> CellResult:
    """Evaluate the model on one corpus of a cell."""
    data = prepare(model.encoder, model.inventory, cell, corpus)
    features, cues = encode(model, data.inputs, cell.task), model.cues(cell, corpus.text())
    settings = config.prediction
    plug_in, averaged = _predict_both(model, features, cell, settings, cues)
    gold, task, lengths = data.labels.numpy(), model.inventory.task(cell.task), data.lengths.numpy()
    decision = model.heads.decisions.get(cell, AS_ITS_TASK)
    labellings = []
    for n_samples, prediction in ((0, plug_in), (settings.samples, averaged)):
        rule = rule_for(calibration and calibration.of(cell.task, n_samples), settings.decision, cell=decision)
        chosen = rule.choose(prediction.probabilities.cpu().numpy(), lengths, task)
        labellings.append(Labelling(gold, chosen, task, lengths))
    known = gold >= 0  # words that have a label: nothing else is scored
    confidence = averaged.confidence.cpu().numpy()[known]
    correct = (averaged.labels.cpu().numpy() == gold)[known]
    bins = uncertainty.reliability(confidence, correct)
    task_calibration = calibration.of(cell.task, settings.samples) if calibration is not None else None
    return CellResult(
        cell=cell,
        corpus=name,
        seen=cell in model.seen,
        n_sentences=len(corpus),
        n_words=int(known.sum()),
        unlabelled=int((~known).sum()),
        plug_in=measure(plug_in, labellings[0]),
        averaged=measure(averaged, labellings[1]),
        by_label=labellings[0].by_label(),
        entropies=study_entropies(model, features, cell, plug_in, settings.seed, cues),
        reliability={field.name: getattr(bins, field.name).tolist() for field in fields(bins)},
        risk_coverage=uncertainty.risk_coverage(confidence, correct).tolist(),
        counts=labellings[0].counts().tolist(),
        label_sets=None if task_calibration is None else measure_sets(averaged, gold, task_calibration, alpha),
    )


def _predict_both(
    model: Model,
    features: Float[Tensor, "words features"],
    cell: Cell,
    settings: PredictionConfig,
    cues: Int[Tensor, "words cues"] | None = None,
) -> tuple[Prediction, Prediction]:
    """Predict with posterior means, and averaged over samples; without a posterior both are the same."""
    plug_in = predict_features(model, features, cell, 0, cues=cues)
    if not (settings.samples and model.heads.has_posterior):
        return plug_in, plug_in
    return plug_in, predict_features(model, features, cell, settings.samples, settings.seed, cues)


def measure(prediction: Prediction, labelling: Labelling) -> dict[str, float]:
    """Compute every measure of a prediction and of the labels chosen by it, by name; of words that have a label."""
    likeliest, known = prediction.labels.cpu().numpy(), labelling.gold >= 0
    probabilities, confidence = (
        prediction.probabilities.cpu().numpy()[known],
        prediction.confidence.cpu().numpy()[known],
    )
    gold, correct = labelling.gold[known], (likeliest == labelling.gold)[known]
    return labelling.scores() | {
        "argmax": score(labelling.gold, likeliest, labelling.task, labelling.lengths),
        "nll": uncertainty.nll(probabilities, gold),
        "brier": uncertainty.brier(probabilities, gold),
        "ece": uncertainty.reliability(confidence, correct).error(),
        "ece_adaptive": uncertainty.reliability(confidence, correct, adaptive=True).error(),
        "aurc": uncertainty.aurc(confidence, correct),
        "entropy": float(prediction.entropy.cpu().numpy()[known].mean()),
        "mutual_information": float(prediction.mutual_information.cpu().numpy()[known].mean()),
    }


def measure_sets(prediction: Prediction, gold: LabelIds, calibration: TaskCalibration, alpha: float) -> SetResult:
    """Measure coverage and size of label sets, and NLL and ECE with the temperature, of words that have a label."""
    probabilities, gold = prediction.probabilities.cpu().numpy()[gold >= 0], gold[gold >= 0]
    sets = calibration.sets(probabilities, alpha)
    sizes = sets.sum(-1)
    coverage, set_size, single = sets[np.arange(len(gold)), gold].mean(), sizes.mean(), (sizes == 1).mean()
    scaled = tempered(probabilities, calibration.temperature)
    ece = uncertainty.reliability(scaled.max(-1), scaled.argmax(-1) == gold).error()
    return SetResult(alpha, float(coverage), float(set_size), float(single), uncertainty.nll(scaled, gold), ece)


def study_entropies(
    model: Model,
    features: Float[Tensor, "words features"],
    cell: Cell,
    plug_in: Prediction,
    seed: int,
    cues: Int[Tensor, "words cues"] | None = None,
) -> list[float]:
    """Compute entropies of random words of a corpus, in its order, for the paper's entropy study.

    Where heads vote, they are those of the plug-in prediction: the vote needs all words, and draws do not differ.
    """
    chosen = np.sort(np.random.default_rng(seed).permutation(len(features))[:STUDY_WORDS])
    words = torch.from_numpy(chosen).to(features.device)
    if model.heads.vote is not None:
        return plug_in.entropy[words].tolist()
    of_words = None if cues is None else cues[chosen]
    return predict_features(model, features[words], cell, STUDY_SAMPLES, seed, of_words).entropy.tolist()


@dataclass(frozen=True)
class PredictedCell:
    """Words of a cell with their right labels, and what a model predicts of them."""

    cell: Cell
    task: Task
    """Its labels are those of the columns of the probabilities."""
    lengths: Lengths
    gold: LabelIds
    plug_in: Probabilities
    averaged: Probabilities
    """The same with Bayesian model averaging; the plug-in probabilities for methods without a posterior."""

    def sample(self, kind: PredictionKind = "plug_in") -> Sample:
        """Return one kind of prediction, to fit a rule or a calibration to."""
        return Sample(self.plug_in if kind == "plug_in" else self.averaged, self.gold, self.lengths)

    def score(self, rule: Rule | None = None) -> float:
        """Compute the task's headline score of the plug-in prediction, from 0 to 1."""
        chosen = (rule or Rule()).choose(self.plug_in, self.lengths, self.task)
        return Labelling(self.gold, chosen, self.task, self.lengths).scores()["score"]


def predict_cell(model: Model, cell: Cell, parts: Sequence[Labelled], config: Config) -> PredictedCell:
    """Predict labelled sentences of a cell with posterior means, and averaged over samples."""
    features = [encode(model, data.inputs, cell.task) for data in parts]
    pairs = zip(*(_predict_both(model, part, cell, config.prediction) for part in features), strict=True)
    plug_in, averaged = (np.concatenate([part.probabilities.cpu().numpy() for part in kind]) for kind in pairs)
    return PredictedCell(
        cell,
        model.inventory.task(cell.task),
        np.concatenate([data.lengths.numpy() for data in parts]),
        np.concatenate([data.labels.numpy() for data in parts]),
        plug_in,
        averaged,
    )


def calibrate_on(cells: Sequence[PredictedCell]) -> Calibration:
    """Calibrate each task on these cells, which the models that predicted them did not train on."""
    of_task = sorted(grouped(cells, lambda predicted: predicted.cell.task).items())
    plug_in, averaged = (
        {task: TaskCalibration.of([one.sample(kind) for one in group], group[0].task) for task, group in of_task}
        for kind in ("plug_in", "averaged")
    )
    return Calibration(plug_in, averaged)
