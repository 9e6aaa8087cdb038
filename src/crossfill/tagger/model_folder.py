"""Writing and reading of model folders, also of folders from untrusted sources."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from crossfill import checkpoint
from crossfill.adaptation.heads import adapted_cells, without_adapted
from crossfill.adaptation.storage import save_adapted
from crossfill.config import Config
from crossfill.encoders import hub
from crossfill.encoders.build import build_encoder
from crossfill.errors import CheckpointError
from crossfill.evaluation.results import CellResult
from crossfill.files import write_json
from crossfill.grid.cells import Grid, Inventory
from crossfill.methods.registry import build_model
from crossfill.model import Model, Outline
from crossfill.prediction.calibration import Calibration, save_calibration
from crossfill.tagger.card import describe_data, encoder_origin, write_card
from crossfill.tagger.hub_model import find_model


def save_model(
    folder: Path,
    model: Model,
    config: Config,
    calibration: Calibration | None = None,
    results: Sequence[CellResult] = (),
    with_encoder: bool = False,
) -> None:
    """Write a model folder without its card: settings, weights, adapted cells, calibration, results, encoder files."""
    folder.mkdir(parents=True, exist_ok=True)
    model, adapted = without_adapted(model), adapted_cells(model)
    description = checkpoint.describe(config, model.inventory, model.seen)
    for name in (checkpoint.STATE, checkpoint.CALIBRATION, checkpoint.RESULTS, checkpoint.EXPECTED):  # of another
        (folder / name).unlink(missing_ok=True)
    write_json(folder / checkpoint.DESCRIPTION, description)
    checkpoint.write_tensors(folder / checkpoint.WEIGHTS, model.state_dict(), {"run": checkpoint.digest(description)})
    for path in (folder / checkpoint.ADAPTED).glob("*.safetensors"):  # of an earlier model
        path.unlink()
    for cell in adapted.values():
        save_adapted(folder, cell)
    if calibration is not None:
        save_calibration(folder, calibration)
    save_results(folder, results)
    _save_encoder(folder, model, config, with_encoder)


def complete_folder(folder: Path, model: Model, grid: Grid, config: Config) -> None:
    """Complete the folder of a training run, which has its weights: its data and encoder files, but no card yet."""
    write_json(folder / checkpoint.DATA, describe_data(grid, sorted(model.seen)))
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
            write_json(scratch / checkpoint.ORIGIN, origin._asdict())
        if out.exists():
            out.rmdir()
        scratch.rename(out)
    return out


def grow_folder(folder: Path, out: Path | None, model: Model, config: Config) -> Path:
    """Write a model folder with other settings and weights, and all else as it is: to `out`, or in its place.

    Settings and weights change together or not at all: the folder is copied, and the copy takes its place.
    """
    target, plain = copy_folder(folder, out), without_adapted(model)
    description = checkpoint.describe(config, plain.inventory, plain.seen)
    with _copied(target, target) as scratch:
        checkpoint.write_tensors(
            scratch / checkpoint.WEIGHTS, plain.state_dict(), {"run": checkpoint.digest(description)}
        )
        write_json(scratch / checkpoint.DESCRIPTION, description)
        write_card(scratch)
        before = target.parent / f".{target.name}-before-{os.getpid()}"
        target.rename(before)
        scratch.rename(target)
        shutil.rmtree(before, ignore_errors=True)
    return target


@contextmanager
def _copied(folder: Path, out: Path) -> Iterator[Path]:
    """Copy a model folder to one next to `out`, to be renamed. The copy is deleted if an OSError occurs."""
    scratch = out.parent / f".{out.name}-{os.getpid()}"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, scratch, ignore=shutil.ignore_patterns(checkpoint.STATE, ".*"))
        yield scratch
    except OSError as error:
        raise CheckpointError(f"{out}: expected a folder that can be written; {error.strerror or error}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def save_results(folder: Path, results: Sequence[CellResult]) -> None:
    """Write results into a model folder, if there are any."""
    if results:
        write_json(folder / checkpoint.RESULTS, [result.as_dict() for result in results], indent=None)


def load_model(
    folder: Path, encoder: str | None = None, cache: Path | bool = True, quiet: bool = True
) -> tuple[Model, Config]:
    """Load the model in a folder, ready to predict, and its config.

    The encoder is the one given, else the one in the folder, else the one it was trained with. The folder is not
    trusted: a model is first built on the meta device, without memory, and its shapes compared with those on file.
    The caller's random numbers go on as if nothing had been built.
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        return _load_model(folder, encoder, cache, quiet)


def _load_model(folder: Path, encoder: str | None, cache: Path | bool, quiet: bool) -> tuple[Model, Config]:
    config, inventory, seen = checkpoint.read_description(folder)
    path = folder / checkpoint.WEIGHTS
    if not path.exists() and (folder / checkpoint.STATE).exists() | (folder / checkpoint.HELD_OUT).exists():
        raise CheckpointError(f"{folder}: expected a trained model, found a run that is not finished; train --resume")
    shapes = checkpoint.read_shapes(path)
    name = encoder or _encoder_name(folder, config)
    named = config.change({"encoder.name": name})
    _check_counts(named, inventory, len(shapes), folder)
    frozen = name != "compact" and config.encoder.pretrained.mode == "frozen"
    base = build_encoder(named, inventory.languages, cache, quiet) if frozen else None

    def build() -> Model:
        encoder = base or build_encoder(named, inventory.languages, cache, quiet, weights=False)
        return build_model(named, inventory, seen, encoder)

    try:
        with Outline():
            outline = build()
    except (RuntimeError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise CheckpointError(f"{folder}: expected settings of a model that fits its weights; {reason}") from None
    checkpoint.check_shapes(outline, shapes, path)
    model = build()
    tensors, notes = checkpoint.read_tensors(path)
    checkpoint.check_same_run(folder, notes)
    checkpoint.check_finite(tensors, path)
    checkpoint.load_weights(model, tensors, path)
    return model.eval(), config


def _save_encoder(folder: Path, model: Model, config: Config, with_encoder: bool = False) -> None:
    """Write the encoder's files. A frozen one is named in the settings, and copied only if asked for."""
    source = getattr(model.encoder, "source", None)
    if source is None:
        return
    if source.folder != folder / checkpoint.ENCODER:
        write_json(folder / checkpoint.ENCODER_SOURCE, _encoder_source(source.folder, config))
    trained = config.encoder.pretrained.mode != "frozen"
    if trained or with_encoder:
        hub.carry(source.folder, folder / checkpoint.ENCODER, weights=not trained)


def _encoder_source(encoder: Path, config: Config) -> dict[str, str | None]:
    """Tell where an encoder came from: for a copy in another model folder, a file next to it says that."""
    if encoder.name == checkpoint.ENCODER and (known := encoder_origin(encoder.parent)):
        origin = known
    else:
        origin = hub.Origin.of(encoder)
    return {
        "name": origin.name if origin else config.encoder.name,
        "revision": origin.revision if origin else None,
        "identity": hub.identity(encoder).hex(),
    }


def _encoder_name(folder: Path, config: Config) -> str:
    """Name the encoder of a model folder: its own copy, else `$CROSSFILL_ENCODER`, else as trained."""
    carried, origin = folder / checkpoint.ENCODER, encoder_origin(folder)
    if carried.is_dir():
        return str(carried)
    if config.encoder.name != "compact" and (moved := os.environ.get("CROSSFILL_ENCODER")):
        return moved
    if origin is None or Path(config.encoder.name).expanduser().exists():
        return config.encoder.name
    return f"{origin.name}@{origin.revision}"


def _check_counts(config: Config, inventory: Inventory, n_tensors: int, folder: Path) -> None:
    """Reject a description with more tasks or layers than there are tensors, before any of them is built."""
    counts = {"tasks": len(inventory.tasks), "generator.hidden": len(config.generator.hidden)}
    if config.encoder.name == "compact":
        counts["encoder.layers"] = config.encoder.layers
    elif config.encoder.pretrained.mode != "frozen":
        from crossfill.encoders.huggingface import Source

        counts["layers of the encoder"] = Source.find(config.encoder.name, weights=False).n_layers
    for name, count in counts.items():
        if count > n_tensors:
            raise CheckpointError(f"{folder}: expected at most {n_tensors} {name}, one per tensor, got {count}")
