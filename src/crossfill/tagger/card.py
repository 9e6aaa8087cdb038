"""Model cards: what people and the hub read of a model; nothing of it changes a tag."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from crossfill import checkpoint
from crossfill.data.codes import language_name, language_tag
from crossfill.encoders.hub import Origin
from crossfill.errors import listed
from crossfill.evaluation.expected import Expectations, load_expected
from crossfill.evaluation.results import CellResult
from crossfill.files import write_atomically, write_json
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.grid.task import Metric, TaskKind, Unit
from crossfill.prediction.calibration import Calibration, load_calibration
from crossfill.settings import Settings, validated

if TYPE_CHECKING:
    from huggingface_hub import ModelCardData

_METRICS: Mapping[Metric, tuple[str, str]] = {
    "accuracy": ("accuracy", "accuracy"),
    "span_f1": ("f1", "strict span F1"),
    "token_f1": ("f1", "micro-F1 without the label for none"),
}
"""What the hub calls a headline metric, and what it is exactly."""
_HUB_DATASETS = {"wikiann"}
"""Corpora that have the same name on the hub."""
_TEMPLATE = Path(__file__).with_name("card.md")

Words = Annotated[str, Field(min_length=1)]


class CardInfo(Settings):
    """What is known of a model besides what it tags with."""

    license: Words = "unknown"
    """An identifier of the hub, such as `cc-by-4.0`; that of the corpora and of the encoder bound it."""
    datasets: Annotated[
        tuple[Words, ...], BeforeValidator(lambda names: (names,) if isinstance(names, str) else names)
    ] = ()
    """Names that the training corpora have on the hub, such as `universal_dependencies`."""
    title: Words = "A crossfill tagger"
    data: Mapping[str, Any] = {}
    """What each seen cell was trained on (`describe_data`)."""
    examples: Mapping[str, tuple[str, ...]] = {}
    """Sentences to try the model on, by language."""
    origin: Origin | None = None
    """The model of the hub that it was loaded from."""

    def change(self, notes: Mapping[str, Any]) -> "CardInfo":
        """Replace what only a person can say: `license`, `datasets`, `title`."""
        return validated(CardInfo, {**dict(self), **notes}, "model card")


def load_card_info(folder: Path) -> CardInfo:
    """Read what a model folder says of its model."""
    values = checkpoint.read_as(folder / checkpoint.CARD_INFO, dict[str, Any], "a JSON object") or {}
    values["examples"] = checkpoint.read_as(folder / checkpoint.EXAMPLES, dict[str, Any], "a JSON object") or {}
    if (origin := Origin.of(folder)) is not None:
        values["origin"] = origin
    return validated(CardInfo, values, f"{folder}: {checkpoint.CARD_INFO} or {checkpoint.EXAMPLES}")


def save_card_info(folder: Path, info: CardInfo) -> None:
    """Write what is known of a model into its folder, and delete files of what is not known."""
    values = info.model_dump(mode="json", exclude_defaults=True)
    examples = values.pop("examples", None)
    for name, value in ((checkpoint.EXAMPLES, examples), (checkpoint.CARD_INFO, values)):
        if value:
            write_json(folder / name, value)
        else:
            (folder / name).unlink(missing_ok=True)


def describe_data(grid: Grid, seen: Collection[Cell]) -> dict[str, Any]:
    """Describe the training data of each seen cell: names of corpora, numbers of sentences and words."""
    data = {}
    for cell in sorted(set(seen) & grid.corpora.keys()):
        training, names = grid.training(cell), [splits.name for splits in grid[cell]]
        data[str(cell)] = {"corpora": names, "sentences": len(training), "words": training.n_words}
    return data


def encoder_origin(folder: Path) -> Origin | None:
    """Read which model of the hub a model folder's encoder is; none if it came from elsewhere."""
    source = checkpoint.read_as(folder / checkpoint.ENCODER_SOURCE, dict[str, Any], "a JSON object") or {}
    name, revision = source.get("name"), source.get("revision")
    return Origin(name, revision) if isinstance(name, str) and isinstance(revision, str) else None


def load_results(folder: Path) -> list[CellResult]:
    """Read the results in a model folder; empty if it was not evaluated."""
    return checkpoint.read_as(folder / checkpoint.RESULTS, list[CellResult], "results of crossfill") or []


def write_card(folder: Path) -> None:
    """Write the card of the model in a folder, from all other files in it."""
    config, inventory, seen = checkpoint.read_description(folder)
    info, results, encoder = load_card_info(folder), load_results(folder), encoder_origin(folder)
    cells = [Cell(task, language) for task in inventory.tasks for language in inventory.languages]
    unseen = [cell for cell in cells if cell not in seen]
    name = f"`{PurePath(config.encoder.name).name}`"
    if encoder is not None:
        name = f"`{encoder.name}` at revision `{encoder.revision[:40]}`"
    tasks = inventory.tasks.values()
    rows = []
    for cell in sorted(seen):
        entry = info.data.get(str(cell), {})
        corpora = ", ".join(map(str, entry.get("corpora", ())))
        rows.append(f"`{cell}` | {corpora} | {entry.get('sentences', '')} | {entry.get('words', '')}")
    unstated = "No licence was stated for the model; those of its corpora and of its encoder apply."
    parts = {
        "title": info.title,
        "tasks": " and ".join(f"`{task}`" for task in inventory.tasks),
        "n_languages": len(inventory.languages),
        "n_unseen": len(unseen),
        "n_cells": len(cells),
        "method": config.method,
        "encoder": name + (f" ({config.encoder.pretrained.mode})" if config.encoder.name != "compact" else ""),
        "example": '("a sentence", "another")' if next(iter(tasks)).unit is Unit.PAIR else '["a", "sentence"]',
        "first_cell": cells[0],
        "origin": f"Saved from `{info.origin.name}` at revision `{info.origin.revision}`." if info.origin else "",
        "languages": ", ".join(f"{language_name(code)} (`{code}`)" for code in inventory.languages),
        "labels": "\n".join(
            f"- `{task.name}`, labels of {task.unit}s: {', '.join(f'`{label}`' for label in task.labels)}"
            for task in tasks
        ),
        "data": _table("seen cell | corpora | sentences | words", rows),
        "license": unstated if info.license == "unknown" else f"Licence of the model: `{info.license}`.",
        "scores": _scores(results),
        "expected": _expected(load_expected(folder), {result.cell for result in results}),
        "calibration": _calibration(load_calibration(folder), config.prediction.samples),
        "zero_shot": "",
    }
    if unseen:
        n_scored, names = len({r.cell for r in results if not r.seen}), listed((f"`{cell}`" for cell in unseen), 12)
        parts["zero_shot"] = f"- {len(unseen)} cells are zero-shot ({names}); {n_scored} of them were measured above."
    text = re.sub(r"\n{3,}", "\n\n", _TEMPLATE.read_text(encoding="utf-8").format_map(parts))
    header = f"---\n{_metadata(inventory, info, results, encoder).to_yaml()}\n---\n\n"
    write_atomically(folder / checkpoint.CARD, (header + text).encode())


def _table(header: str, rows: Sequence[str]) -> str:
    return "\n".join([f"| {header} |", "|" + "---|" * (header.count("|") + 1), *(f"| {row} |" for row in rows)])


def _scores(results: Sequence[CellResult]) -> str:
    if not results:
        return "Not evaluated yet: `crossfill evaluate MODEL DATA`."
    rows = [
        f"`{r.cell}` | {r.corpus} | {'seen' if r.seen else 'unseen'} | {100 * r.score:.1f} | "
        f"{100 * r.averaged_score:.1f} | {r.averaged['nll']:.3f} | {r.averaged['ece']:.3f}"
        for r in results
    ]
    return (
        "Score: strict span F1 for spans, else accuracy (micro-F1 without `_` for features), plug-in. "
        "Averaged, NLL and ECE: Bayesian model averaging.\n\n"
        + _table("cell | corpus | | score | averaged | NLL | ECE", rows)
    )


def _expected(expectations: Expectations | None, scored: Collection[Cell]) -> str:
    if expectations is None or not (unscored := expectations.unscored(scored)):
        return ""
    rows = [f"`{one.cell}` | {100 * one.score:.1f} | {100 * one.low:.0f} | {100 * one.high:.0f}" for one in unscored]
    return (
        f"Cells without test data, as {len(expectations.held_out)} seen cells did that were held out in turn: expected "
        f"score, and the interval that it lies in with a probability of {expectations.level:.0%}.\n\n"
        + _table("cell | expected | from | to", rows)
    )


def _calibration(calibration: Calibration | None, n_samples: int) -> str:
    if calibration is None or not calibration.averaged:
        return "None: no seen cells were held out in turn. Confidences are the model's own."
    rows = [
        f"`{task}` | {values.n_words} | {values.n_sentences} | {values.temperature:.2f} | {1 - values.scores[900]:.4f}"
        for task, values in calibration.averaged.items()
    ]
    return (
        f"On seen cells that were held out in turn, by models trained without them, {n_samples} samples:\n\n"
        + _table("task | words | sentences | temperature | label sets at α = 0.1 keep p ≥", rows)
    )


def _metadata(
    inventory: Inventory, info: CardInfo, results: Sequence[CellResult], encoder: Origin | None
) -> "ModelCardData":
    """Describe the model in the words of the hub; an encoder that is not of the hub has no name there."""
    from huggingface_hub import EvalResult, ModelCardData

    corpora = {str(name) for entry in info.data.values() for name in entry.get("corpora", ())}
    types = {
        name: "text-classification" if task.kind is TaskKind.CLASSES else "token-classification"
        for name, task in inventory.tasks.items()
    }
    metrics = {name: _METRICS[task.kind.metric] for name, task in inventory.tasks.items()}
    used_types = sorted(set(types.values()), reverse=True)

    def entries(result: CellResult) -> Iterator[EvalResult]:
        cell, corpus, name = result.cell, result.corpus or str(result.cell), language_name(result.cell.language)
        metric, exactly = metrics[cell.task]
        for value, metric_type, metric_name in (
            (result.score, metric, f"{exactly}, plug-in"),
            (result.averaged_score, metric, f"{exactly}, averaged"),
            (result.averaged["ece"], "ece", "expected calibration error, averaged"),
        ):
            yield EvalResult(
                task_type=types[cell.task],
                task_name=f"{cell.task} in {name}, {'seen' if result.seen else 'unseen'}",
                dataset_type=corpus,
                dataset_name=f"{corpus} ({name})",
                dataset_config=f"{cell.task}-{cell.language}",
                dataset_split="test",
                dataset_args={"cell": str(cell), "seen": result.seen, "words": result.n_words},
                metric_type=metric_type,
                metric_name=metric_name,
                metric_value=round(value, 4),
            )

    return ModelCardData(
        library_name="crossfill",
        pipeline_tag=used_types[0],
        license=info.license,
        base_model=encoder.name if encoder is not None else None,
        datasets=sorted({*info.datasets, *(corpora & _HUB_DATASETS)}) or None,
        language=list(dict.fromkeys(map(language_tag, inventory.languages))),
        metrics=sorted({metric for metric, _ in metrics.values()}),
        tags=[*used_types, "zero-shot", "uncertainty", *inventory.tasks],
        model_name=info.title,
        eval_results=[entry for result in results for entry in entries(result)] or None,
    )
