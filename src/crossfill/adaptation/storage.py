"""Adapted cells on disk: one safetensors file each, in the folder `adapted` of a model folder.

Tensors: `features`, `cues` and `labels` of words, `lengths` of sentences; `known`, the cues that the cell has learnt;
`mean`, `scale` and `curvature/…` of the posterior; `lexicon/…`, the words of listed forms. Notes (JSON): format, cell,
labels, unit, a hash of the model's weights and of each sentence, variances, temperature, shift, date. Loading executes
nothing, and every shape and value is checked.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import file_digest
from pathlib import Path

import torch
from torch import Tensor

from crossfill import checkpoint
from crossfill.adaptation.cell import AdaptedCell, CellCalibration
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import CellVariances
from crossfill.adaptation.gaussian import Curvature, HeadPosterior
from crossfill.adaptation.lexicon import Lexicon
from crossfill.encoders.cues import KINDS
from crossfill.errors import CheckpointError
from crossfill.files import locked, sync
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task, Unit
from crossfill.model import Model

FORMAT = 10
_LEXICON = ("features", "cues", "allowed")
_CURVATURE = ("label_values", "label_vectors", "feature_values", "feature_vectors", "cue_values")


def adapted_path(folder: Path, cell: Cell) -> Path:
    """The file of an adapted cell."""
    return folder / checkpoint.ADAPTED / f"{cell.file_name}.safetensors"


@contextmanager
def changing_adapted(folder: Path) -> Iterator[None]:
    """Wait for other processes that change adapted cells of a model folder, and have them wait until the block ends."""
    checkpoint.read_description(folder)
    try:
        with locked(folder / checkpoint.ADAPTED / checkpoint.LOCK, wait=True):
            yield
    except OSError as error:
        raise CheckpointError(f"{folder}: expected a model folder that can be written; {error.strerror}") from None


def _weights_digest(folder: Path) -> str:
    with (folder / checkpoint.WEIGHTS).open("rb") as file:
        return file_digest(file, "blake2b").hexdigest()[:32]


def save_adapted(folder: Path, adapted: AdaptedCell) -> Path:
    """Write an adapted cell into a model folder, atomically."""
    examples, posterior = adapted.examples, adapted.posterior
    tensors: dict[str, Tensor] = {
        "features": examples.features,
        "cues": examples.cues.int(),
        "labels": examples.labels,
        "lengths": examples.lengths,
        "known": adapted.known,
        "mean": posterior.mean,
        "scale": posterior.scale.float(),
    }
    tensors |= {f"curvature/{name}": getattr(posterior.curvature, name).float() for name in _CURVATURE}
    if adapted.lexicon is not None:
        tensors |= {f"lexicon/{name}": getattr(adapted.lexicon, name) for name in _LEXICON}
    notes = {
        "format": FORMAT,
        "cell": str(adapted.cell),
        "weights": _weights_digest(folder),
        "labels": list(adapted.task.labels),
        "unit": str(adapted.task.unit),
        "hashes": list(examples.hashes),
        "variances": asdict(adapted.variances),
        "shift": adapted.calibration.shift,
        "temperature": adapted.calibration.temperature,
        "date": adapted.date,
    }
    path = adapted_path(folder, adapted.cell)
    try:
        checkpoint.write_tensors(path, tensors, notes)
        sync(path.parent)
    except OSError as error:
        raise CheckpointError(f"{path}: expected a model folder that can be written; {error.strerror}") from None
    return path


def remove_adapted(folder: Path, cell: Cell) -> None:
    """Undo the adaptation of a cell; an error if it was not adapted."""
    path = adapted_path(folder, cell)
    try:
        path.unlink()
    except FileNotFoundError:
        raise CheckpointError(f"{path}: expected an adapted cell to undo, found none") from None
    except OSError as error:
        raise CheckpointError(f"{path}: expected a model folder that can be written; {error.strerror}") from None


def load_adapted(folder: Path, model: Model) -> dict[Cell, AdaptedCell]:
    """The adapted cells of a model folder, checked against the model."""
    found: dict[Cell, AdaptedCell] = {}
    labels = {name: task.labels for name, task in model.inventory.tasks.items()}
    paths = sorted((folder / checkpoint.ADAPTED).glob("*.safetensors"))
    weights = _weights_digest(folder) if paths else ""
    for path in paths:
        made = _load(path, model, weights)
        if labels.setdefault(made.cell.task, made.task.labels) != made.task.labels:
            raise CheckpointError(f"{path}: expected the labels of other adapted cells of {made.cell.task}; delete it")
        found[made.cell] = made
    return found


def _load(path: Path, model: Model, weights: str) -> AdaptedCell:
    tensors, notes = checkpoint.read_tensors(path)
    try:
        if notes["format"] != FORMAT:
            raise ValueError(f"expected format {FORMAT}, got {notes['format']}; adapt the cell again")
        if notes["weights"] != weights:
            raise ValueError("expected a cell adapted with the weights of this folder, got one of another model")
        cell, labels = Cell.parse(notes["cell"]), tuple(map(str, notes["labels"]))
        model.inventory.language_index(cell.language)
        known = model.inventory.tasks.get(cell.task)
        if known and labels != known.labels:
            raise ValueError(f"expected the labels of the model's {cell.task}, got {', '.join(labels)}")
        hashes = tuple(map(str, notes["hashes"]))
        unit = Unit(notes.get("unit", Unit.WORD))
        if known and unit is not known.unit:
            raise ValueError(f"expected labels of {known.unit}s, got labels of {unit}s")
        _check(tensors, hashes, len(labels), model.width(cell.task, unit))
        words = (tensors["features"], tensors["cues"].long(), tensors["labels"])
        examples = Examples(*words, tensors["lengths"], hashes)
        curvature = Curvature(*(tensors[f"curvature/{name}"].double() for name in _CURVATURE))
        mean, scale = tensors["mean"].double(), tensors["scale"].double()
        lexicon = Lexicon(*(tensors[f"lexicon/{name}"] for name in _LEXICON)) if "lexicon/cues" in tensors else None
        variances = CellVariances(**(notes["variances"] | {"cues": tuple(notes["variances"]["cues"])}))
        calibration = CellCalibration(float(notes["temperature"]), float(notes["shift"]))
        _check_values(variances, calibration, len(labels))
        return AdaptedCell(
            cell=cell,
            task=Task(cell.task, labels, unit),
            examples=examples,
            known=tensors["known"],
            posterior=HeadPosterior(mean, scale, curvature, variances.share),
            variances=variances,
            calibration=calibration,
            date=str(notes["date"]),
            lexicon=lexicon,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{path}: expected an adapted cell of this model; {reason}; delete it") from None


def _check(tensors: dict[str, Tensor], hashes: Iterable[str], labels: int, n_features: int) -> None:
    width = n_features + 1 + len(tensors["known"])
    n_words, n_sentences, rank = len(tensors["labels"]), len(tuple(hashes)), len(tensors["curvature/feature_values"])
    shapes = {
        "features": (n_words, n_features),
        "cues": (n_words, len(KINDS)),
        "labels": (n_words,),
        "lengths": (n_sentences,),
        "known": (len(tensors["known"]),),
        "mean": (labels, width),
        "scale": (width,),
        "curvature/label_values": (labels,),
        "curvature/label_vectors": (labels, labels),
        "curvature/feature_values": (rank,),
        "curvature/feature_vectors": (n_features + 1, rank),
        "curvature/cue_values": (len(tensors["known"]),),
    }
    if "lexicon/cues" in tensors:
        n_listed = len(tensors["lexicon/cues"])
        sizes = {"features": n_features, "cues": len(KINDS), "allowed": labels}
        shapes |= {f"lexicon/{name}": (n_listed, size) for name, size in sizes.items()}
        if not (tensors["lexicon/allowed"].dtype == torch.bool and bool(tensors["lexicon/allowed"].any(1).all())):
            raise ValueError("lexicon/allowed: expected a label that each word may have")
    for name, shape in shapes.items():
        if tuple(tensors[name].shape) != shape:
            raise ValueError(f"{name}: expected {shape}, got {tuple(tensors[name].shape)}")
        lowest = 0.0 if name == "scale" or name.endswith("_values") else -math.inf  # widths and eigenvalues
        if not bool((tensors[name].isfinite() & (tensors[name] >= lowest)).all()):
            raise ValueError(f"{name}: expected finite numbers{', none below 0' if lowest == 0 else ''}")
    if int(tensors["lengths"].sum()) != n_words or bool((tensors["lengths"] < 1).any()):
        raise ValueError("lengths: expected the words of every sentence")
    if n_words and not -1 <= int(tensors["labels"].min()) <= int(tensors["labels"].max()) < labels:
        raise ValueError(f"labels: expected −1 (none) to {labels - 1}")


def _check_values(variances: CellVariances, calibration: CellCalibration, n_labels: int) -> None:
    widths = (variances.weights, variances.bias, *variances.cues, variances.share)
    if len(variances.cues) != len(CellVariances(0, 0).cues) or not all(0 <= width < math.inf for width in widths):
        raise ValueError(f"variances: expected numbers of 0 or more, got {widths}")
    if variances.none_label not in (None, *range(n_labels)):
        raise ValueError(f"none_label: expected 0 to {n_labels - 1}, got {variances.none_label}")
    if not (0 < calibration.temperature < math.inf and math.isfinite(calibration.shift)):
        raise ValueError(f"expected finite numbers and a temperature above 0, got {calibration}")
