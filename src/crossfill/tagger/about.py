"""What a model folder says of its model for people and for the hub; nothing of it changes a tag."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from crossfill import checkpoint
from crossfill.encoders.hub import Origin
from crossfill.errors import CheckpointError, ConfigError, unknown
from crossfill.files import write_json


@dataclass(frozen=True)
class CardNotes:
    """What only a person can say for the model card."""

    license: str = "unknown"
    """An identifier of the hub, such as `cc-by-4.0`; that of the corpora and of the encoder bound it."""
    datasets: tuple[str, ...] = ()
    """Names that the training corpora have on the hub, such as `universal_dependencies`."""
    title: str = "A crossfill tagger"

    def change(self, notes: Mapping[str, Any]) -> "CardNotes":
        """These notes with others in place of some."""
        known = [entry.name for entry in fields(self)]
        for name, value in notes.items():
            if name not in known:
                raise ConfigError(f"model card: {unknown('note', name, known)}")
            if name != "datasets" and not (isinstance(value, str) and value.strip()):
                raise ConfigError(f"model card: {name}: expected words, got {value!r}")
        named = notes.get("datasets", self.datasets)
        datasets = (named,) if isinstance(named, str) else named
        if not isinstance(datasets, list | tuple) or not all(isinstance(name, str) for name in datasets):
            raise ConfigError(f"model card: datasets: expected names of datasets of the hub, got {named!r}")
        return replace(self, **{**notes, "datasets": tuple(datasets)})


@dataclass(frozen=True)
class About:
    """What is known of a model besides what it tags with."""

    data: Mapping[str, Any] = field(default_factory=dict)
    """What each seen cell was trained on (`card.describe_data`)."""
    examples: Mapping[str, list[str]] = field(default_factory=dict)
    """Sentences to try the model on, by language."""
    notes: CardNotes = CardNotes()
    origin: Origin | None = None
    """The model of the hub that it was loaded from."""


def load_about(folder: Path) -> About:
    """What a model folder says of its model."""
    path = folder / checkpoint.CARD_NOTES
    notes = _mapping(path)
    try:
        own = CardNotes().change(notes)
    except ConfigError as error:
        raise CheckpointError(f"{path}: {error}; mend or delete it") from None
    known = _mapping(folder / checkpoint.ORIGIN)
    kept = Origin(str(known["name"]), str(known["revision"])) if {"name", "revision"} <= known.keys() else None
    return About(_mapping(folder / checkpoint.DATA), load_examples(folder), own, Origin.of(folder) or kept)


def save_about(folder: Path, about: About) -> None:
    """Write what is known of a model into its folder; what is not known leaves it."""
    notes = {
        "license": about.notes.license,
        "datasets": list(about.notes.datasets),
        "title": about.notes.title,
    }
    found: dict[str, Any] = {
        checkpoint.DATA: about.data,
        checkpoint.EXAMPLES: about.examples,
        checkpoint.CARD_NOTES: notes if about.notes != CardNotes() else {},
        checkpoint.ORIGIN: about.origin._asdict() if about.origin else {},
    }
    for name, value in found.items():
        if value:
            write_json(folder / name, value)
        else:
            (folder / name).unlink(missing_ok=True)


def load_examples(folder: Path) -> dict[str, list[str]]:
    """Example sentences to try the model on, by language; empty if the folder has none."""
    path = folder / checkpoint.EXAMPLES
    found = checkpoint.read_json(path)
    if not isinstance(found, dict | None) or not all(isinstance(texts, list) for texts in (found or {}).values()):
        raise CheckpointError(
            f'{path}: expected a list of sentences for each language, as {{"wol": ["…", "…"]}}; mend or delete it'
        )
    return {language: [str(text) for text in texts] for language, texts in (found or {}).items()}


def _mapping(path: Path) -> dict[str, Any]:
    found = checkpoint.read_json(path)
    if not isinstance(found, dict | None):
        raise CheckpointError(f"{path}: expected a JSON object, got {type(found).__name__}; mend or delete it")
    return found or {}
