"""The settings of a run that names none: a preset by encoder and device, fitted to the encoder and to the data."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from crossfill.config import Config, load_run_config, parse_config
from crossfill.errors import ConfigError, CrossfillError
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.typology import load_typology
from crossfill.settings import preset_values

if TYPE_CHECKING:
    from crossfill.encoders.huggingface import Source

DEFAULT_ENCODER = "bert-base-multilingual-cased"
STEPS_PER_TASK = 500
"""Training steps over a frozen encoder, for each task."""
PASSES = {"laptop": 20, "gpu": 3, "demo": 6}
"""Passes over the training sentences: the most over a frozen encoder, the usual number where the encoder trains."""
FEWEST, MOST = {"laptop": 1000, "gpu": 100, "demo": 1000}, 5000
"""Steps for small data, where passes would be over too soon (chosen on languages that report nothing), and the most."""
VALIDATIONS = 8


@dataclass(frozen=True)
class RunRequest:
    """What a user asks of a training run; what is none is chosen."""

    method: str | None = None
    encoder: str | None = None
    preset: str | None = None
    """`laptop`, `gpu`, `paper` or `demo`."""
    config: Config | str | Path | None = None
    """Settings, or a YAML file of them; then nothing is chosen but what it leaves open."""
    vectors: str | None = None
    """Folder of typological vectors, unless the settings name another."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings by dotted path, which override all others."""
    out: Path | None = None
    """Folder for the model."""
    resume: bool = False
    """Whether to go on with the run that was interrupted in `out`."""
    force: bool = False
    """Whether to replace the model or run that is in `out`."""
    cache: Path | bool = True
    """Folder for features, or whether to use the default one."""
    expect: bool | None = None
    """Whether to hold out seen cells in turn; by default where the encoder is frozen."""


class Choice(NamedTuple):
    """The settings of a run, and the reason of each choice that the user did not make."""

    config: Config
    reasons: tuple[str, ...]


def choose_settings(grid: Grid, seen: Collection[Cell], request: RunRequest) -> Choice:
    """Choose the settings of a run: those of its config, else the best-measured ones for encoder, device and data."""
    if request.config is None:
        return _from_preset(grid, seen, request)
    if request.preset is not None:
        raise ConfigError(
            f"expected a preset or a config, got both: {request.preset} and {request.config}; a file of settings names "
            f"its preset as preset: {request.preset}"
        )
    config = request.config
    if isinstance(config, str | Path):
        config = load_run_config(Path(config), request.method)
    vectors = config.sources.vectors or request.vectors
    return Choice(_named(config, request.method, request.encoder, vectors).change(request.changes), ())


def _named(config: Config, method: str | None, encoder: str | None, vectors: str | None) -> Config:
    named = {"method": method, "encoder.name": encoder, "sources.vectors": vectors}
    return config.change({name: value for name, value in named.items() if value is not None})


def _from_preset(grid: Grid, seen: Collection[Cell], request: RunRequest) -> Choice:
    reasons: list[str] = []
    name, preset = str(request.encoder or request.changes.get("encoder.name") or ""), request.preset
    if not name:
        name, why = _default_encoder(preset)
        reasons += [f"encoder {name}: none was named, and {why}"] if why else []
    if preset is None:
        preset, why = _default_preset(name)
        reasons.append(f"preset {preset}: {why}")
    config = _named(parse_config(preset_values(preset, request.method)), request.method, name, request.vectors)
    if preset != "paper":
        config = _fit_to_data(config, preset, grid, seen)
        if name != "compact":
            from crossfill.encoders.huggingface import Source

            config = _fit_to_encoder(config, Source.find(name), grid, reasons)
    return Choice(config.change(request.changes), tuple(reasons))


def _default_preset(encoder: str) -> tuple[str, str]:
    if encoder == "compact":
        return "demo", "the compact encoder trains from scratch"
    if torch.accelerator.is_available():
        return "gpu", f"the encoder is fine-tuned on {torch.accelerator.current_accelerator()}"
    return "laptop", "no accelerator, so the encoder stays frozen and its features are cached"


def _default_encoder(preset: str | None) -> tuple[str, str]:
    """Name a pretrained encoder if it is on this machine, else the built-in one, and why; nothing is fetched."""
    from crossfill.encoders.hub import is_cached

    if preset == "demo":
        return "compact", ""
    if Path(DEFAULT_ENCODER).is_dir() or is_cached(DEFAULT_ENCODER):
        return DEFAULT_ENCODER, "this one is on this machine"
    if preset is not None:
        return DEFAULT_ENCODER, f"preset {preset} is for pretrained ones"
    remedy = f"--encoder {DEFAULT_ENCODER} fetches it and does much better"
    return "compact", f"{DEFAULT_ENCODER} is not on this machine; {remedy}"


def _fit_to_data(config: Config, preset: str, grid: Grid, seen: Collection[Cell]) -> Config:
    """Choose steps by tasks over a frozen encoder, by sentences where the encoder trains; validations spread over them.

    Over a frozen encoder the words of a sentence are weighed by attention (docs/results.md).
    """
    settings = config.training
    sentences = sum(len(grid.training(cell)) for cell in seen)
    usual = -(-PASSES[preset] * sentences // (settings.cells_per_step * settings.batch_sentences))
    if preset == "laptop":
        ratio = settings.steps / 1000  # methods with a head for every language take more
        usual = min(usual, round(ratio * STEPS_PER_TASK * len({cell.task for cell in seen})))
    steps = min(MOST, max(FEWEST[preset], usual))
    changes: dict[str, Any] = {"training.steps": steps, "training.validate_every": max(1, steps // VALIDATIONS)}
    if preset == "laptop" and grid.inventory.units:
        changes["encoder.sentences"] = "attention"
    return config.change(changes)


def _fit_to_encoder(config: Config, source: "Source", grid: Grid, reasons: list[str]) -> Config:
    """Choose pooling by the direction of attention, windows that the network takes, and similarities that are known."""
    settings, pooling, attention = config.encoder.pretrained, "first", "bidirectional"
    if source.is_causal:
        pooling, attention = "last", "causal, so the last piece of a word has seen all of it"
    reasons.append(f"pooling {pooling}: attention is {attention}")
    changes: dict[str, Any] = {"encoder.pretrained.pooling": pooling}
    if settings.mode == "frozen" and not torch.accelerator.is_available() and _is_fast_in_int8():
        changes["encoder.pretrained.precision"] = "int8"
        reasons.append("precision int8: this processor encodes several times as fast in it, and scores are as high")
    if source.longest < settings.max_pieces:
        changes["encoder.pretrained.max_pieces"] = source.longest
        changes["encoder.pretrained.overlap"] = min(settings.overlap, source.longest // 4)
    if config.latents.prior == "similar" and not _knows_typology(config, grid):
        if "centroid" in config.latents.similarity and settings.mode == "frozen":
            changes["latents.similarity"] = ["centroid"]
        else:
            changes["latents.prior"] = "standard"
        reasons.append(
            "no typological vectors (pip install 'crossfill[typology]'): languages are alike by features alone"
        )
    return config.change(changes)


def _is_fast_in_int8() -> bool:
    """Whether the processor has the instructions that products of whole numbers need to be fast."""
    return torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def _knows_typology(config: Config, grid: Grid) -> bool:
    return len(without_vectors(config, grid.languages)) < len(grid.languages)


def without_vectors(config: Config, languages: Sequence[str]) -> list[str]:
    """List the languages that have not all typological vectors which a prior of similar languages asks for."""
    names = [name for name in config.latents.similarity if name != "centroid"]
    if not names or config.latents.prior != "similar":
        return []
    try:
        known = load_typology(config.sources.vectors and Path(config.sources.vectors))
    except CrossfillError:
        return list(languages)
    missing = {language for name in names for language in known.without(languages, [name])}
    return [language for language in languages if language in missing]
