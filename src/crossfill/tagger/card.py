"""Model cards: method, training data, scores, calibration and limits."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from crossfill import checkpoint
from crossfill.config import Config
from crossfill.data.codes import language_name
from crossfill.encoders.hub import Origin
from crossfill.errors import CheckpointError
from crossfill.evaluation.expected import Expectations, load_expected
from crossfill.evaluation.results import CellResult
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.grid.unit import Unit
from crossfill.prediction.calibration import Calibration, load_calibration
from crossfill.tagger.about import About, load_about
from crossfill.tagger.card_metadata import card_metadata

_CITATION = """```bibtex
@article{ponti2021parameter,
  title   = {Parameter Space Factorization for Zero-Shot Learning across Tasks and Languages},
  author  = {Ponti, Edoardo M. and Vuli{\\'c}, Ivan and Cotterell, Ryan and Parovi{\\'c}, Marinela
             and Reichart, Roi and Korhonen, Anna},
  journal = {Transactions of the Association for Computational Linguistics},
  volume  = {9},
  year    = {2021}
}
```"""


def describe_data(grid: Grid, seen: Sequence[Cell]) -> dict[str, Any]:
    """The training data of each seen cell: names of corpora, numbers of sentences and words."""
    found = {}
    for cell in seen:
        if cell in grid.corpora:
            training = grid.training(cell)
            names = [splits.name for splits in grid[cell]]
            found[str(cell)] = {"corpora": names, "sentences": len(training), "words": training.n_words}
    return found


def write_card(folder: Path) -> None:
    """Write the card of the model in a folder, from the files in it."""
    config, inventory, seen = checkpoint.read_description(folder)
    text = render_card(
        config,
        inventory,
        sorted(seen),
        load_results(folder),
        load_calibration(folder),
        load_about(folder),
        encoder_origin(folder),
        load_expected(folder),
    )
    write_atomically(folder / checkpoint.CARD, text.encode())


def encoder_origin(folder: Path) -> Origin | None:
    """The model of the hub that a model folder's encoder is; none if it came from elsewhere."""
    found = checkpoint.read_json(folder / checkpoint.ENCODER_SOURCE)
    known = found if isinstance(found, dict) else {}
    name, revision = known.get("name"), known.get("revision")
    return Origin(name, revision) if isinstance(name, str) and isinstance(revision, str) else None


def load_results(folder: Path) -> list[CellResult]:
    """The results in a model folder; empty if it was not evaluated."""
    path = folder / checkpoint.RESULTS
    found = checkpoint.read_json(path)
    try:
        return [CellResult.from_dict(values) for values in found or ()]
    except (KeyError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{path}: expected results of crossfill; {reason}; delete it") from None


def render_card(
    config: Config,
    inventory: Inventory,
    seen: Sequence[Cell],
    results: Sequence[CellResult],
    calibration: Calibration | None,
    about: About,
    encoder: Origin | None = None,
    expectations: Expectations | None = None,
) -> str:
    """The card in Markdown; `encoder` is known if it came from the hub."""
    languages = ", ".join(f"{language_name(code)} (`{code}`)" for code in inventory.languages)
    own = PurePath(config.encoder.name).name
    unseen = [f"`{t}/{l}`" for t in inventory.tasks for l in inventory.languages if Cell(t, l) not in seen]
    parts = [
        f"---\n{card_metadata(inventory, about, results, encoder).to_yaml()}\n---",
        f"# {about.notes.title}",
        f"Tags {' and '.join(f'`{task}`' for task in inventory.tasks)} in {len(inventory.languages)} languages, also "
        f"in the {len(unseen)} of {len(inventory.tasks) * len(inventory.languages)} cells (task, language) for which "
        f"it had no training data. Method `{config.method}`, encoder "
        + (f"`{encoder.name}` at revision `{encoder.revision[:40]}`" if encoder else f"`{own}`")
        + (f" ({config.encoder.pretrained.mode})." if config.encoder.name != "compact" else "."),
        '```python\nimport crossfill\n\ntagger = crossfill.load("this-folder")\n'
        f'tagger.tag({_example(inventory)}, cell="{inventory.tasks[0]}/{inventory.languages[0]}")\n```',
        f"Saved from `{about.origin.name}` at revision `{about.origin.revision}`." if about.origin else "",
        "## Data",
        f"Languages: {languages}.",
        _labels(inventory),
        _data(seen, about.data),
        _licence(about),
        "## Scores",
        _scores(results),
        _expected(expectations, {result.cell for result in results}),
        "## Calibration",
        _calibration(calibration, config.prediction.samples),
        "## Limits",
        _limits(unseen, results),
        "## Citation",
        "The method:",
        _CITATION,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _example(inventory: Inventory) -> str:
    """A sentence, or a pair if the first task labels pairs."""
    return '("a sentence", "another")' if inventory.unit(inventory.tasks[0]) is Unit.PAIR else '["a", "sentence"]'


def _labels(inventory: Inventory) -> str:
    return "\n".join(
        f"- `{task}`, labels of {inventory.unit(task)}s: {', '.join(f'`{name}`' for name in inventory.labels[task])}"
        for task in inventory.tasks
    )


def _data(seen: Sequence[Cell], data: Mapping[str, Any]) -> str:
    rows = ["| seen cell | corpora | sentences | words |", "|---|---|---|---|"]
    for cell in seen:
        entry = data.get(str(cell), {})
        corpora = ", ".join(map(str, entry.get("corpora", ())))
        rows.append(f"| `{cell}` | {corpora} | {entry.get('sentences', '')} | {entry.get('words', '')} |")
    return "\n".join(rows)


def _licence(about: About) -> str:
    if about.notes.license != "unknown":
        return f"Licence of the model: `{about.notes.license}`."
    return "No licence was stated for the model; those of its corpora and of its encoder apply."


def _scores(results: Sequence[CellResult]) -> str:
    if not results:
        return "Not evaluated yet: `crossfill evaluate MODEL DATA`."
    rows = ["| cell | corpus | | score | averaged | NLL | ECE |", "|---|---|---|---|---|---|---|"]
    for r in results:
        numbers = (
            f"{100 * r.score:.1f} | {100 * r.averaged_score:.1f} | {r.averaged['nll']:.3f} | {r.averaged['ece']:.3f}"
        )
        rows.append(f"| `{r.cell}` | {r.corpus} | {'seen' if r.seen else 'unseen'} | {numbers} |")
    note = "Score: strict span F1 for spans, else accuracy (micro-F1 without `_` for features), plug-in."
    return "\n".join([note + " Averaged, NLL and ECE: Bayesian model averaging.", "", *rows])


def _expected(found: Expectations | None, scored: Collection[Cell]) -> str:
    """Expected scores of the cells that nobody has scored."""
    unknown = [one for one in found.expected if one.cell not in scored] if found is not None else []
    if found is None or not unknown:
        return ""
    note = (
        f"Cells without test data, as {len(found.held_out)} seen cells did that were held out in turn: expected score, "
        f"and the interval that it lies in with a probability of {found.level:.0%}."
    )
    rows = ["| cell | expected | from | to |", "|---|---|---|---|"]
    rows += [
        f"| `{one.cell}` | {100 * one.score:.1f} | {100 * one.low:.0f} | {100 * one.high:.0f} |" for one in unknown
    ]
    return "\n".join([note, "", *rows])


def _calibration(calibration: Calibration | None, n_samples: int) -> str:
    found = calibration.averaged if calibration is not None else {}
    if not found:
        return "None: no dev sentences were kept back. Confidences are the model's own."
    rows = ["| task | words | sentences | temperature | label sets at α = 0.1 keep p ≥ |", "|---|---|---|---|---|"]
    for task, values in found.items():
        kept = 1 - values.scores[900]
        rows.append(f"| `{task}` | {values.n_words} | {values.n_sentences} | {values.temperature:.2f} | {kept:.4f} |")
    return "\n".join([f"On dev sentences of seen cells that selected nothing, {n_samples} samples:", "", *rows])


def _limits(unseen: Sequence[str], results: Sequence[CellResult]) -> str:
    lines = [
        "- Coverage of label sets is promised for text like the calibration text: words of seen cells. For unseen "
        "cells it is measured where there is test data, not promised.",
        "- Words are labelled as they are cut in the training corpora; other tokenisation costs accuracy.",
        "- Text of another domain than the training corpora costs accuracy, and confidence need not fall with it.",
    ]
    scored = sorted({str(r.cell) for r in results if not r.seen})
    if unseen:
        shown = ", ".join(unseen[:12]) + (" …" if len(unseen) > 12 else "")
        lines.insert(0, f"- {len(unseen)} cells are zero-shot ({shown}); {len(scored)} of them were measured above.")
    return "\n".join(lines)
