"""A model folder: the names of its files, and how they are read and written. JSON and safetensors, never pickle."""

import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from crossfill.config import Config, parse_config
from crossfill.errors import CheckpointError, DataError
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell, CellName, Inventory
from crossfill.grid.task import Unit
from crossfill.settings import Settings, describe_problems

DESCRIPTION = "config_crossfill.json"
"""All that is needed to rebuild the model (settings, labels, languages, seen cells), under a name of our own."""
WEIGHTS = "model.safetensors"
STATE = "training.safetensors"  # weights, optimiser state and random state of a run, to resume it
HISTORY = "history.json"  # one entry per validation: see `training.loop.Progression`
CALIBRATION = "calibration.json"
RESULTS = "results.json"  # scores of every cell that was evaluated
EXPECTED = "expected.json"  # expected scores of unseen cells, from seen cells held out in turn
LANGUAGES = "languages.safetensors"  # counts of hashed runs of letters, by which the language of a sentence is chosen
SEGMENTATION = "segmentation.json"  # weights that cut raw text into sentences and words
HELD_OUT = "held-out"  # folder with the trainings that hold out seen cells, while a run goes on
LOCK = ".lock"  # held by the process that trains into the folder
EXAMPLES = "examples.json"  # sentences to try the model on, by language
ADAPTED = "adapted"  # folder with a file for each cell that was adapted to a few labelled sentences
CARD = "README.md"
CARD_INFO = "card.json"
"""For the card: licence, names of datasets, title, data of each seen cell, and the hub's model that this one was."""
ENCODER = "encoder"
"""Folder with the encoder's settings and tokenizer, and its weights if they are not part of the model's weights."""
ENCODER_SOURCE = "encoder.json"  # where the encoder came from: its name, its revision on the hub, a hash of its files
_OF_A_RUN = (
    *(WEIGHTS, STATE, HISTORY, CALIBRATION, RESULTS, EXPECTED, LANGUAGES, SEGMENTATION, ENCODER_SOURCE, CARD),
    DESCRIPTION,
)
"""Files that belong to one run, in the order in which they are removed."""
Kind = TypeVar("Kind")


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files that killed processes left behind."""
    for name in _OF_A_RUN:
        for leftover in folder.glob(f".{name}-*"):
            leftover.unlink(missing_ok=True)


def remove_run(folder: Path) -> None:
    """Delete all that an earlier run left in a folder, weights first: they must never meet another run's settings."""
    for name in _OF_A_RUN:
        (folder / name).unlink(missing_ok=True)
    for name in (ADAPTED, ENCODER):
        shutil.rmtree(folder / name, ignore_errors=True)


def read_json(path: Path) -> Any:
    """Read a JSON file; none if it does not exist."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: expected JSON; {error}; copy the file again, or train again") from None


def read_as(path: Path, kind: type[Kind], what: str) -> Kind | None:
    """Read a JSON file as values of this type; none if it does not exist."""
    values = read_json(path)
    try:
        return None if values is None else TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        problem = describe_problems(Settings, f"{path}: expected {what}", error)[0]
    except DataError as error:
        problem = f"{path}: expected {what}; {error}"
    raise CheckpointError(f"{problem}; delete it or train again")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    """Write tensors and JSON notes to one file, atomically."""
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    # one entry: safetensors writes several in any order, and the same run has to leave the same bytes
    write_atomically(path, to_bytes(contiguous, metadata={"notes": json.dumps(dict(notes))}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and notes of a file."""
    try:
        with safe_open(path, framework="pt") as file:
            notes = dict(json.loads((file.metadata() or {"notes": "{}"})["notes"]))
            return {name: file.get_tensor(name) for name in file.keys()}, notes  # noqa: SIM118
    except FileNotFoundError:
        raise CheckpointError(f"{path}: expected a safetensors file, found none; is this a model folder?") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        problem = f"{path}: expected a whole safetensors file; {error}; copy the file again, or train again"
        raise CheckpointError(problem) from None


def describe(config: Config, inventory: Inventory, seen: Collection[Cell], data: str = "") -> dict[str, Any]:
    """Describe all that is needed to rebuild a model, as JSON values, and a digest of its training data."""
    return {
        "format": 1,
        "config": config.model_dump(mode="json"),
        "labels": {name: list(task.labels) for name, task in inventory.tasks.items()},
        "languages": list(inventory.languages),
        "seen": [str(cell) for cell in sorted(seen)],
        **({"data": data} if data else {}),
        **({"newcomers": sorted(inventory.newcomers)} if inventory.newcomers else {}),
        **({"units": {task: str(unit) for task, unit in inventory.units.items()}} if inventory.units else {}),
    }


def digest(description: Mapping[str, Any]) -> str:
    """Hash a description; the weights carry it, so that they are never read with another run's settings."""
    return blake2b(json.dumps(description, sort_keys=True).encode(), digest_size=16).hexdigest()


def check_same_run(folder: Path, notes: Mapping[str, Any]) -> None:
    """Refuse weights whose notes name another run than the folder's description."""
    if notes.get("run") != digest(read_json(folder / DESCRIPTION) or {}):
        raise CheckpointError(f"{folder}: expected weights of the run in {DESCRIPTION}, found those of another")


@dataclass(frozen=True)
class _Description:
    format: Literal[1]
    config: dict[str, Any]
    labels: dict[str, tuple[str, ...]]
    languages: tuple[str, ...]
    seen: frozenset[CellName]
    newcomers: frozenset[str] = frozenset()
    units: dict[str, Unit] = field(default_factory=dict)


def read_description(folder: Path) -> tuple[Config, Inventory, frozenset[Cell]]:
    """Read the config, inventory and seen cells of a model folder."""
    path = folder / DESCRIPTION
    values = read_as(path, _Description, "the description of a model")
    if values is None:
        missing = "is this a model folder?" if folder.is_dir() else f"there is no folder {folder}; check the path"
        raise CheckpointError(f"{path}: expected a model's description, found none; {missing}")
    inventory = Inventory.of(values.labels, values.languages, values.newcomers, values.units)
    return parse_config(values.config, str(path)), inventory, values.seen


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Load tensors into a module, whose names and shapes they must have."""
    try:
        module.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise CheckpointError(f"{where}: the weights are of another model: {error}") from None
