"""The metadata at the head of a model card, in the words of the Hugging Face hub."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crossfill.data.codes import language_name, language_tag
from crossfill.encoders.hub import Origin
from crossfill.evaluation.results import CellResult
from crossfill.grid.cells import Inventory
from crossfill.measures.metrics import Metric, TaskKind
from crossfill.tagger.about import About

if TYPE_CHECKING:
    from huggingface_hub import EvalResult, ModelCardData

TASK_TYPE = "token-classification"
_TYPES = (TASK_TYPE, "text-classification")
_METRICS: Mapping[Metric, tuple[str, str]] = {
    "accuracy": ("accuracy", "accuracy"),
    "span_f1": ("f1", "strict span F1"),
    "token_f1": ("f1", "micro-F1 without the label for none"),
}
"""What the hub calls a headline metric, and what it is exactly."""
_DATASETS = {"wikiann": "wikiann"}
"""Names on the hub of corpora that are known by the name they have here."""


def card_metadata(
    inventory: Inventory, about: About, results: Sequence[CellResult], encoder: Origin | None
) -> "ModelCardData":
    """Licence, encoder, corpora, languages and scores of each evaluated corpus, checked by huggingface_hub.

    An encoder that is not of the hub has no name there, and stays out.
    """
    from huggingface_hub import ModelCardData

    corpora = {str(name) for entry in about.data.values() for name in entry.get("corpora", ())}
    known = {_DATASETS[name] for name in corpora if name in _DATASETS}
    kinds = {task: TaskKind.of(labels, inventory.unit(task)) for task, labels in inventory.labels.items()}
    types = [kind for kind in _TYPES if kind in {_type(kind) for kind in kinds.values()}]
    return ModelCardData(
        library_name="crossfill",
        pipeline_tag=types[0] if types else TASK_TYPE,
        license=about.notes.license,
        base_model=encoder.name if encoder is not None else None,
        datasets=sorted({*about.notes.datasets, *known}) or None,
        language=[language_tag(code) for code in inventory.languages],
        metrics=sorted({_METRICS[kind.metric][0] for kind in kinds.values()}),
        tags=[*types, "zero-shot", "uncertainty", *inventory.tasks],
        model_name=about.notes.title,
        eval_results=[entry for result in results for entry in _entries(result, kinds[result.cell.task])] or None,
    )


def _type(kind: TaskKind) -> str:
    return "text-classification" if kind is TaskKind.CLASSES else TASK_TYPE


def _entries(result: CellResult, kind: TaskKind) -> "Iterator[EvalResult]":
    """Plug-in and averaged score, and calibration error, of a corpus."""
    from huggingface_hub import EvalResult

    cell, (metric, exactly) = result.cell, _METRICS[kind.metric]
    corpus = result.corpus or str(cell)
    of: dict[str, Any] = {
        "task_type": _type(kind),
        "task_name": f"{cell.task} in {language_name(cell.language)}, {'seen' if result.seen else 'unseen'}",
        "dataset_type": _DATASETS.get(corpus, corpus),
        "dataset_name": f"{corpus} ({language_name(cell.language)})",
        "dataset_config": f"{cell.task}-{cell.language}",
        "dataset_split": "test",
        "dataset_args": {"cell": str(cell), "seen": result.seen, "words": result.n_words},
    }
    for value, type_, name in (
        (result.score, metric, f"{exactly}, plug-in"),
        (result.averaged_score, metric, f"{exactly}, averaged"),
        (result.averaged["ece"], "ece", "expected calibration error, averaged"),
    ):
        yield EvalResult(**of, metric_type=type_, metric_name=name, metric_value=round(value, 4))
