"""Tagged sentences as CoNLL-U, token columns or JSON lines."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crossfill.data.conllu import ConlluSentence, blank_rows, with_feature, with_keys
from crossfill.data.conllu import render as render_conllu
from crossfill.data.streams import Item
from crossfill.errors import DataError
from crossfill.grid.sentence import on_one_line
from crossfill.grid.task import Unit
from crossfill.prediction.tagging import Tagging

_COLUMNS = {"pos": 3, "xpos": 4}
_HEAD, _DEPREL = 6, 7


def tagged(form: str, item: Item, taggings: Sequence[Tagging], whole: bool, name: int | str) -> str:
    """Render a tagged sentence in a format; `name` identifies a sentence of CoNLL-U that has no name."""
    if form == "conllu":
        return conllu(item, taggings, whole, name) if item.sentence else ""
    return columns(taggings, whole) if form == "bio" else json_line(item, taggings, whole)


def header(taggings: Sequence[Tagging], whole: bool) -> str:
    """Write the comment that names the token columns; the last column of each cell is its label."""
    names = [name for tagging in taggings for name in (*_numbers(tagging, whole), tagging.cell_asked)]
    return f"# {' '.join([str(taggings[0].task.unit), *names])}\n"


def columns(taggings: Sequence[Tagging], whole: bool) -> str:
    """Write word, confidence, entropy, mutual information and label of each cell, separated by tabs.

    Where cells label whole sentences or pairs, one line for each, and no blank line after it.
    """
    sentence, of_words = taggings[0].sentence, taggings[0].task.unit is Unit.WORD
    texts = sentence.words if of_words else [" ‖ ".join(part.text for part in sentence.sentences)]
    table: list[Sequence[str]] = [[on_one_line(text) for text in texts]]
    for tagging in taggings:
        table += [*_numbers(tagging, whole).values(), tagging.labels]
    lines = ["\t".join(row) + "\n" for row in zip(*table, strict=True)]
    return "".join([*_languages(taggings), *lines]) + ("\n" if of_words else "")


def _languages(taggings: Sequence[Tagging]) -> list[str]:
    """Write a comment on the language that was chosen for a sentence, and on others that it may be in."""
    shares = next((tagging.languages for tagging in taggings if tagging.languages is not None), {})
    return (
        [f"# language {' '.join(f'{language} {share:.4f}' for language, share in shares.items())}\n"] if shares else []
    )


def _numbers(tagging: Tagging, whole: bool) -> dict[str, list[str]]:
    """Write what is known of labels besides themselves, by the names of columns."""
    values = {
        name: [f"{value:.4f}" for value in getattr(tagging, name)]
        for name in ("confidence", "entropy", "mutual_information")
    }
    if whole:
        distributions = (tagging.distribution(i).items() for i in range(len(tagging.labels)))
        values["distribution"] = [",".join(f"{label}:{p:.4f}" for label, p in items) for items in distributions]
    if tagging.sets is not None:
        values["label_set"] = [",".join(labels) for labels in tagging.label_sets]
    if tagging.doubtful is not None:
        values["doubtful"] = ["yes" if doubtful else "no" for doubtful in tagging.doubtful]
    return values


def values_by_name(taggings: Sequence[Tagging], whole: bool) -> dict[str, list[str]]:
    """Name the labels of each cell after its task, and their confidence and what else was asked for after both."""
    values: dict[str, list[str]] = {}
    for tagging in taggings:
        if tagging.languages is not None:
            values["language"] = [tagging.cell.language] * len(tagging)
        task = tagging.cell.task
        if task in values:
            raise DataError(f"expected cells of different tasks for this format, got two of {task}; tag one at a time")
        values[task] = list(tagging.labels)
        for name, texts in _numbers(tagging, whole).items():
            if name not in ("entropy", "mutual_information"):
                values[f"{task}-{name.replace('_', '-')}"] = texts
    return values


def json_line(item: Item, taggings: Sequence[Tagging], whole: bool) -> str:
    """Write one JSON object: the input's other fields, words with offsets, and under `tags` an object for each cell."""
    sentence = taggings[0].sentence
    fields: dict[str, Any] = {**item.fields}
    if sentence.unit is Unit.PAIR:
        fields |= zip(("premise", "hypothesis"), (part.text for part in sentence.sentences), strict=True)
    else:
        fields["words"] = sentence.words
        if sentence.spaces:
            fields["spaces"] = sentence.spaces
        fields["offsets"] = sentence.offsets
        if sentence.surfaces:
            fields["surfaces"] = sentence.surfaces
    fields["tags"] = {str(tagging.cell): tagging.tags(whole) for tagging in taggings}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def conllu(
    item: Item, taggings: Sequence[Tagging], whole: bool, number: int | str, deprel_without_head: bool = False
) -> str:
    """Write CoNLL-U with everything the input had; labels in the task's own column, or in MISC like all other values.

    A sentence that has no `sent_id` gets its number. DEPREL is only written where there is a HEAD, unless asked for.
    """
    if sentence_level := [str(tagging.cell) for tagging in taggings if tagging.task.unit is not Unit.WORD]:
        raise DataError(
            f"expected cells that label words for CoNLL-U, got {', '.join(sentence_level)}; choose --format jsonl"
        )
    source = item.conllu
    if source is None:  # read from another format
        sentence = taggings[0].sentence
        source = ConlluSentence(
            (), blank_rows(replace(sentence, spaces=sentence.spaces[:-1] and (*sentence.spaces[:-1], True)))
        )
    rows, word = [], 0
    numbers = [_numbers(tagging, whole) for tagging in taggings]
    for row in source.rows:
        changed = list(row)
        if row[0].isdigit():
            for tagging, values in zip(taggings, numbers, strict=True):
                _fill(changed, tagging, word, values, deprel_without_head)
            word += 1
        rows.append(changed)
    chosen = [line.rstrip() for line in _languages(taggings)]
    earlier = (*(f"# {tagging.cell} span " for tagging in taggings), *(["# language "] if chosen else []))
    others = [comment for comment in source.comments if not comment.startswith(earlier)]
    spans = [
        f"# {tagging.cell} span {s.start + 1}-{s.end} {s.type} {s.confidence:.4f}"
        for tagging in taggings
        for s in tagging.spans
    ]
    comments = (*_identified(others, number, source.text), *chosen, *spans)
    return render_conllu([ConlluSentence(comments, rows)])


def _identified(comments: list[str], number: int | str, text: str) -> list[str]:
    """Add a `sent_id` and the text to the comments of a sentence, after those on its document and paragraph."""
    names = [comment.removeprefix("#").partition("=")[0].strip() for comment in comments]
    values = {"sent_id": number, "text": text}
    new = [f"# {name} = {value}" for name, value in values.items() if name not in names]
    if "sent_id" in names:
        place = names.index("sent_id") + 1
    else:
        place = next((i for i, name in enumerate(names) if not name.startswith(("newdoc", "newpar"))), len(names))
    return [*comments[:place], *new, *comments[place:]]


def _fill(
    row: list[str], tagging: Tagging, word: int, numbers: Mapping[str, Sequence[str]], deprel_without_head: bool
) -> None:
    """Write a word's label and numbers into the columns of its line."""
    task, label = tagging.cell.task, tagging.labels[word]
    kind, _, key = task.partition(":")
    name = "".join(part.capitalize() for part in task.replace(":", "-").split("-"))
    misc: dict[str, str] = {}
    if task in _COLUMNS:
        row[_COLUMNS[task]] = label
    elif task == "deprel" and (row[_HEAD] != "_" or deprel_without_head):
        row[_DEPREL], misc["DEPREL"] = relation_to(row[_HEAD], tagging, word) if row[_HEAD] != "_" else label, "_"
    elif kind == "feats" and key:
        row[5] = with_feature(row[5], key, label.replace("|", "/"))
    else:
        misc[key if kind == "misc" else task.upper()] = label
    for what, texts in numbers.items():
        if what != "doubtful":
            misc[name + what.title().replace("_", "")] = texts[word]
        elif texts[word] == "yes":
            misc[f"{name}Doubtful"] = "Yes"
    row[9] = with_keys(row[9], misc)


def relation_to(head: str, tagging: Tagging, word: int) -> str:
    """Find the relation of a word to a head in CoNLL-U: `root` to 0, and only to 0, as trees have it."""
    label = tagging.labels[word]
    if "root" not in tagging.task.labels or (label == "root") == (head == "0"):
        return label
    return "root" if head == "0" else next(other for other in tagging.distribution(word) if other != "root")
