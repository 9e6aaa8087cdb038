"""Tagged sentences as text, CoNLL-U, token columns or JSON lines."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crossfill.measures.metrics import TaskKind, span_types

if TYPE_CHECKING:
    from rich.text import Text

    from crossfill.data.conllu import ConlluSentence
    from crossfill.data.streams import Item
    from crossfill.prediction.tagging import Tagging

_COLUMNS = {"pos": 3, "xpos": 4, "deprel": 7}
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green", "bright_magenta")
_UNSURE = 0.5
"""Words with a lower confidence are shown in red."""


def header(taggings: "Sequence[Tagging]", whole: bool) -> str:
    """The comment that names the token columns; the last column of each cell is its label."""
    names = ["word"]
    for tagging in taggings:
        names += ["confidence", "entropy", "mutual_information"]
        names += ["distribution"] * whole + ["label_set"] * (tagging.sets is not None)
        names += ["doubtful"] * (tagging.doubtful is not None) + [str(tagging.cell)]
    return "# " + " ".join(names) + "\n"


def columns(taggings: "Sequence[Tagging]", whole: bool) -> str:
    """Word, then confidence, entropy, mutual information and label of each cell, separated by tabs."""
    lines = []
    for i, word in enumerate(taggings[0].sentence.words):
        row = [word]
        for tagging in taggings:
            row += [f"{value:.4f}" for value in _numbers(tagging, i)]
            row += [_distribution(tagging, i)] * whole + [",".join(tagging.label_sets[i])] * (tagging.sets is not None)
            if tagging.doubtful is not None:
                row.append("yes" if tagging.doubtful[i] else "no")
            row.append(tagging.labels[i])
        lines.append("\t".join(row) + "\n")
    return "".join(lines) + "\n"


def json_line(item: "Item", taggings: "Sequence[Tagging]", whole: bool) -> str:
    """One JSON object: the words, all other fields of the input, and under `tags` one object for each cell."""
    sentence = taggings[0].sentence
    found: dict[str, Any] = {**item.fields, "words": sentence.words}
    if sentence.spaces:
        found["spaces"] = sentence.spaces
    found["tags"] = {str(tagging.cell): _json(tagging, whole) for tagging in taggings}
    return json.dumps(found, ensure_ascii=False) + "\n"


def conllu(item: "Item", taggings: "Sequence[Tagging]", whole: bool) -> str:
    """CoNLL-U with everything the input had; labels in the task's own column, or in MISC like all other values."""
    from crossfill.data.conllu import render

    source = item.conllu or _blank(taggings[0])
    rows, number = [], 0
    for row in source.rows:
        changed = list(row)
        if row[0].isdigit():
            for tagging in taggings:
                _fill(changed, tagging, number, whole)
            number += 1
        rows.append(changed)
    earlier = tuple(f"# {tagging.cell} span " for tagging in taggings)
    kept = [comment for comment in source.comments if not comment.startswith(earlier)]
    comments = [*kept, *_span_comments(taggings)]
    return render([type(source)(tuple(comments), rows)])


def text(taggings: "Sequence[Tagging]") -> "list[Text]":
    """A line for each cell: spans in brackets with type and confidence, other labels after a slash; coloured."""
    from rich.text import Text

    lines = []
    for tagging in taggings:
        line = Text(f"{tagging.cell}  " if len(taggings) > 1 else "", "dim")
        by_start = {span.start: span for span in tagging.spans}
        ends = {span.end for span in tagging.spans}
        plain = tagging.kind is not TaskKind.SPANS
        for i, word in enumerate(tagging.sentence.words):
            marked = tagging.doubtful is not None and bool(tagging.doubtful[i])
            sure = float(tagging.confidence[i]) >= _UNSURE
            if span := by_start.get(i):
                colour = _colour(span.type, tagging)
                line.append("[", "dim").append(f"{span.type} {span.confidence:.2f} ", f"bold {colour}")
            line.append(word, "" if sure else "red")
            if plain:
                line.append(f"/{tagging.labels[i]}", _colour(tagging.labels[i], tagging))
            if marked or (tagging.sets is not None and len(tagging.label_sets[i]) > 1):
                others = f"{{{','.join(tagging.label_sets[i])}}}" if tagging.sets is not None else ""
                line.append("?" * marked + others, "red")
            if i + 1 in ends:
                line.append("]", "dim")
            line.append(" ")
        line.rstrip()
        lines.append(line)
    return lines


def _numbers(tagging: "Tagging", word: int) -> tuple[float, float, float]:
    return (
        float(tagging.confidence[word]),
        float(tagging.entropy[word]),
        float(tagging.mutual_information[word]),
    )


def _json(tagging: "Tagging", whole: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"labels": tagging.labels}
    for name in ("confidence", "entropy", "mutual_information"):
        found[name] = [round(value, 6) for value in getattr(tagging, name).tolist()]
    if tagging.kind is TaskKind.SPANS:
        found["spans"] = [span.as_dict() for span in tagging.spans]
    if tagging.sets is not None:
        found["label_sets"] = tagging.label_sets
    if tagging.doubtful is not None:
        found["doubtful"] = tagging.doubtful.tolist()
    if whole:
        found["distributions"] = [
            {label: round(p, 6) for label, p in tagging.distribution(i).items()} for i in range(len(tagging))
        ]
    return found


def _blank(tagging: "Tagging") -> "ConlluSentence":
    """The CoNLL-U lines of a sentence that was read from another format."""
    from crossfill.data.conllu import ConlluSentence

    sentence = tagging.sentence
    spaces = sentence.spaces or (True,) * len(sentence)
    rows = [
        [str(i), word or "_", *("_" * 7), "_" if space or i == len(sentence) else "SpaceAfter=No"]
        for i, (word, space) in enumerate(zip(sentence.words, spaces, strict=True), start=1)
    ]
    return ConlluSentence((f"# text = {sentence.text}",), rows)


def _fill(row: list[str], tagging: "Tagging", word: int, whole: bool) -> None:
    """Write a word's label and numbers into the columns of its line."""
    task, label = tagging.cell.task, tagging.labels[word]
    kind, _, key = task.partition(":")
    name = "".join(part.capitalize() for part in task.replace(":", "-").split("-"))
    misc: dict[str, str] = {}
    if task in _COLUMNS:
        row[_COLUMNS[task]] = label
    elif kind == "feats" and key:
        row[5] = _keyed(row[5], {key: label})
    else:
        misc[key if kind == "misc" else task.upper()] = label
    numbers = zip(("Confidence", "Entropy", "MutualInformation"), _numbers(tagging, word), strict=True)
    misc |= {f"{name}{what}": f"{value:.4f}" for what, value in numbers}
    if whole:
        misc[f"{name}Distribution"] = _distribution(tagging, word)
    if tagging.sets is not None:
        misc[f"{name}LabelSet"] = ",".join(tagging.label_sets[word])
    if tagging.doubtful is not None and tagging.doubtful[word]:
        misc[f"{name}Doubtful"] = "Yes"
    row[9] = _keyed(row[9], misc)


def _keyed(column: str, changes: dict[str, str]) -> str:
    """A column of `Key=Value|…` with some keys changed; a value of `_` removes the key."""
    kept = [pair for pair in column.split("|") if pair != "_" and pair.partition("=")[0] not in changes]
    kept += [f"{key}={value.replace('|', '/')}" for key, value in changes.items() if value != "_"]
    return "|".join(kept) or "_"


def _span_comments(taggings: "Sequence[Tagging]") -> list[str]:
    return [
        f"# {tagging.cell} span {s.start + 1}-{s.end} {s.type} {s.confidence:.4f}"
        for tagging in taggings
        for s in tagging.spans
    ]


def _distribution(tagging: "Tagging", word: int) -> str:
    return ",".join(f"{label}:{p:.4f}" for label, p in tagging.distribution(word).items())


def _colour(label: str, tagging: "Tagging") -> str:
    names = span_types(tagging.label_names) if tagging.kind is TaskKind.SPANS else sorted(tagging.label_names)
    return _COLOURS[names.index(label) % len(_COLOURS)] if label in names else "dim"
