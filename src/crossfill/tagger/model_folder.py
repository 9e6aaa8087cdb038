"""Model folders: written, read, copied, and fetched from the Hugging Face hub; a folder is data and never trusted."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from crossfill import checkpoint
from crossfill.adaptation.heads import adapted_cells, without_adapted
from crossfill.adaptation.storage import save_adapted
from crossfill.config import Config
from crossfill.data.boundaries import Segmentation
from crossfill.encoders import hub
from crossfill.encoders.base import build_encoder
from crossfill.encoders.hub import READ
from crossfill.errors import CheckpointError, first_line
from crossfill.evaluation.results import CellResult
from crossfill.files import sync, write_json
from crossfill.grid.cells import Grid
from crossfill.methods.registry import build_model
from crossfill.model import Model
from crossfill.prediction.language_choice import LanguageProfiles
from crossfill.tagger.card import describe_data, encoder_origin, load_card_info, save_card_info, write_card

_RESULT_FILES = (
    *(checkpoint.CALIBRATION, checkpoint.RESULTS, checkpoint.EXPECTED, checkpoint.LANGUAGES),
    checkpoint.SEGMENTATION,
)
"""Files of what is computed after the training."""
_WANTED = [
    *(checkpoint.DESCRIPTION, checkpoint.WEIGHTS, *_RESULT_FILES, checkpoint.EXAMPLES),
    *(checkpoint.ENCODER_SOURCE, checkpoint.CARD, checkpoint.CARD_INFO),
    *(f"{checkpoint.ADAPTED}/*.safetensors", *(f"{checkpoint.ENCODER}/*{end}" for end in READ)),
]
"""Files of a model folder that are fetched: JSON, safetensors and text alone."""


def save_model(folder: Path, model: Model, config: Config, with_encoder: bool = False) -> None:
    """Write settings, weights, adapted cells and encoder files into a folder, and delete results of earlier models."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (checkpoint.STATE, *_RESULT_FILES):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / checkpoint.ADAPTED, ignore_errors=True)
    _save_weights(folder, model, config)
    for cell in adapted_cells(model).values():
        save_adapted(folder, cell)
    _save_encoder(folder, model, config, with_encoder)


def _save_weights(folder: Path, model: Model, config: Config) -> None:
    """Write settings and weights, but those of adapted cells."""
    plain = without_adapted(model)
    description = checkpoint.describe(config, plain.inventory, plain.seen)
    write_json(folder / checkpoint.DESCRIPTION, description)
    checkpoint.write_tensors(folder / checkpoint.WEIGHTS, plain.state_dict(), {"run": checkpoint.digest(description)})


def complete_folder(folder: Path, model: Model, grid: Grid, config: Config) -> None:
    """Complete the folder of a training run, which has its weights: its data and encoder files, but no card yet."""
    info = load_card_info(folder).change({"data": describe_data(grid, model.seen), "origin": None})
    save_card_info(folder, info)
    _save_encoder(folder, model, config)


def copy_folder(folder: Path, out: Path | None) -> Path:
    """Copy a model folder to one that does not exist yet, completely or not at all; none leaves it where it is.

    A folder of the hub's cache stays as it is: its copy says where it came from.
    """
    folder = find_model(folder)
    origin = hub.Origin.of(folder)
    if origin is not None and out in (None, folder):
        raise CheckpointError(f"model '{origin.name}' of the hub: expected a folder to write to; name one with --out")
    if out is None or out == folder:
        return folder
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CheckpointError(f"{out}: expected no folder of that name, or an empty one; name another")
    with _copied(folder, out) as scratch:
        if origin is not None:
            save_card_info(scratch, load_card_info(folder))
        if out.exists():
            out.rmdir()
        scratch.rename(out)
    return out


def grow_folder(
    folder: Path, out: Path | None, model: Model, config: Config, profiles: LanguageProfiles | None = None
) -> Path:
    """Write a model folder with one more language, and all else as it is: to `out`, or in its place.

    Settings and weights change together or not at all: the folder is copied, and the copy takes its place.
    """
    target = copy_folder(folder, out)
    with _copied(target, target) as scratch:
        _save_weights(scratch, model, config)
        for cell in adapted_cells(model).values():
            save_adapted(scratch, cell)
        if profiles is not None:
            profiles.save(scratch)
        write_card(scratch)
        for path in (*scratch.rglob("*"), scratch):
            sync(path)
        before = target.parent / f".{target.name}-before-{os.getpid()}"
        target.rename(before)
        scratch.rename(target)
        shutil.rmtree(before, ignore_errors=True)
    return target


@contextmanager
def _copied(folder: Path, out: Path) -> Iterator[Path]:
    """Copy a model folder to one next to `out`, to be renamed; what is left of the copy at the end is deleted."""
    scratch = out.parent / f".{out.name}-{os.getpid()}"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, scratch, ignore=shutil.ignore_patterns(checkpoint.STATE, ".*"))
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def save_results(folder: Path, results: Sequence[CellResult]) -> None:
    """Write results into a model folder, if there are any."""
    if results:
        write_json(folder / checkpoint.RESULTS, [result.as_dict() for result in results], indent=None)


def save_segmentation(folder: Path, segmentation: Segmentation | None) -> None:
    """Write what cuts raw text into a model folder, if there is any."""
    if segmentation is not None:
        write_json(folder / checkpoint.SEGMENTATION, asdict(segmentation), indent=None)


def load_segmentation(folder: Path) -> Segmentation | None:
    """Read what cuts raw text; none if the folder has none."""
    return checkpoint.read_as(folder / checkpoint.SEGMENTATION, Segmentation, "what cuts raw text into words")


def load_model(
    folder: Path, encoder: str | None = None, cache: Path | bool = True, quiet: bool = True
) -> tuple[Model, Config]:
    """Load the model in a folder, ready to predict, and its config; over another encoder, if one is given.

    Settings that do not belong to the weights are rejected before a model is built. The caller's random numbers stay
    as they are.
    """
    config, inventory, seen = checkpoint.read_description(folder)
    path = folder / checkpoint.WEIGHTS
    if not path.exists() and (folder / checkpoint.STATE).exists() | (folder / checkpoint.HELD_OUT).exists():
        raise CheckpointError(f"{folder}: expected a trained model, found a run that is not finished; train --resume")
    tensors, notes = checkpoint.read_tensors(path)
    checkpoint.check_same_run(folder, notes)
    named = config.change({"encoder.name": encoder or _encoder_name(folder, config)})
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        built = build_encoder(named, inventory.languages, cache, quiet, weights=False)
        model = build_model(named, inventory, seen, built)
    checkpoint.load_weights(model, tensors, path)
    return model.eval(), config


def _save_encoder(folder: Path, model: Model, config: Config, with_encoder: bool = False) -> None:
    """Write the encoder's files. A frozen one is named in the settings, and copied only if asked for."""
    source = model.encoder.source
    if source is None:
        return
    if source.folder != folder / checkpoint.ENCODER:
        # a copy in another model folder has its origin in a file next to it
        known = encoder_origin(source.folder.parent) if source.folder.name == checkpoint.ENCODER else None
        name, revision = known or hub.Origin.of(source.folder) or (config.encoder.name, None)
        entry = {"name": name, "revision": revision, "identity": hub.identity(source.folder).hex()}
        write_json(folder / checkpoint.ENCODER_SOURCE, entry)
    frozen = model.encoder.stored is not None
    if with_encoder or not frozen:
        hub.carry(source.folder, folder / checkpoint.ENCODER, weights=frozen)


def _encoder_name(folder: Path, config: Config) -> str:
    """Name the encoder of a model folder: its own copy, else `$CROSSFILL_ENCODER`, else as trained."""
    carried, origin, name = folder / checkpoint.ENCODER, encoder_origin(folder), config.encoder.name
    if carried.is_dir():
        return str(carried)
    if name != "compact" and (moved := os.environ.get("CROSSFILL_ENCODER")):
        return moved
    return name if origin is None or Path(name).expanduser().exists() else f"{origin.name}@{origin.revision}"


def find_model(name: str | Path, revision: str | None = None, **options: Any) -> Path:
    """Find the folder of a model: the path itself or, for a name of the hub, a copy in the hub's cache, fetched there.

    Nothing is fetched before the description is that of a crossfill model, and then only files that a model folder
    has. `options` are those of huggingface_hub, as `token` and `local_files_only`.
    """
    path = Path(name).expanduser()
    if path.exists() or not is_hub_name(str(name)):
        if revision is not None:
            raise CheckpointError(f"'{name}': expected a name of the hub, as there is a revision; got a folder")
        return path
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import RemoteEntryNotFoundError

    hub.check_revision(revision or "")

    try:
        description = Path(hf_hub_download(str(name), checkpoint.DESCRIPTION, revision=revision, **options))
        checkpoint.read_description(description.parent)
        commit = description.parent.name  # all files of one commit, also if there is a new one by now
        snapshot_download(str(name), revision=commit, allow_patterns=_WANTED, ignore_patterns=["*/*/*"], **options)
    except CheckpointError as error:
        raise CheckpointError(f"model '{name}' of the hub: expected a crossfill model; {error}") from None
    except RemoteEntryNotFoundError:
        raise CheckpointError(
            f"model '{name}' of the hub: expected a crossfill model, found none: it has no {checkpoint.DESCRIPTION}"
        ) from None
    except Exception as error:  # of any kind, as the hub's place may answer anything
        raise _not_found(str(name), revision, options.get("local_files_only", False), error) from None
    return description.parent


def is_hub_name(name: str) -> bool:
    """Say whether a path could name a model of the hub, as `me/tagger`: not if its first part is a folder here."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    owner, _, rest = name.partition("/")
    return bool(owner and rest) and not Path(owner).exists()


def shown_name(folder: Path) -> str:
    """Name a model for people: as on the hub if it came from there, else as its folder."""
    origin = hub.Origin.of(folder)
    return origin.name if origin is not None else folder.resolve().name


def _not_found(name: str, revision: str | None, local_only: bool, error: Exception) -> CheckpointError:
    from huggingface_hub import is_offline_mode
    from huggingface_hub.constants import HF_HUB_CACHE

    reason = first_line(error)
    if is_offline_mode() or local_only:
        reason = f"it may not be fetched, as {'HF_HUB_OFFLINE' if is_offline_mode() else 'local_files_only'} is set"
    at = f" --revision {revision}" if revision else ""
    return CheckpointError(
        f"model '{name}': expected a folder, or a model of the hub that is in {HF_HUB_CACHE} or can be fetched; "
        f"{reason}; correct the name, log in (hf auth login), or fetch it where there is a network (hf download "
        f"{name}{at}) and copy that cache here"
    )
