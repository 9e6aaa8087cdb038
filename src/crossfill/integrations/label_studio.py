"""Label Studio: what a project labels, predictions for its tasks, and its annotations as labelled sentences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossfill.data.segmentation import SpanIndex, TextSpan, cut_into_sentences
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task
from crossfill.integrations.annotation_tools import Utf16Places, labelled_sentence, parse_xml, regions, types_of
from crossfill.prediction.tagging import DIGITS, Tagging

_WHAT = "the labelling configuration"


@dataclass(frozen=True)
class LabelConfig:
    """What a project labels: the first pair of `<Labels>` and `<Text>` in its configuration."""

    from_name: str
    """The name of the labels."""
    to_name: str
    """The name of the text."""
    key: str
    """Where a task's data has the text."""
    names: Mapping[str, str]
    """The project's name for each label, by all its spellings in lower case; empty if it takes any."""
    partial: bool = False
    """Whether only some of what there is to mark is marked: `partial="true"` in the labels' tag."""

    @classmethod
    def parse(cls, config: str) -> "LabelConfig":
        """Find the first pair in a configuration."""
        elements = list(parse_xml(config, _WHAT).iter())
        texts = {element.get("name", ""): element for element in elements if element.tag.lower() == "text"}
        all_labels = [element for element in elements if element.tag.lower() == "labels"]
        for labels in all_labels:
            for target in map(str.strip, labels.get("toName", "").split(",")):
                if target in texts:
                    inside = [element.attrib for element in labels.iter() if element.tag.lower() == "label"]
                    key, partial = _key(texts[target].attrib), _is_partial(labels.get("partial", "false"))
                    return cls(labels.get("name", ""), target, key, _spellings(inside), partial)
        raise DataError(
            f'{_WHAT}: expected <Labels name="label" toName="text"> with <Text name="text" value="$text"/>, got '
            f"{len(all_labels)} <Labels> and {len(texts)} <Text>, none for the other"
        )

    def named(self, label: str) -> str | None:
        """Find the project's name for a label of the model; none if the project does not have it."""
        return self.names.get(label.lower()) if self.names else label

    def check(self, label_names: Sequence[str]) -> None:
        """Refuse a project that has none of a task's labels."""
        types = types_of(label_names)
        if not any(self.named(label) for label in types):
            known = ", ".join(dict.fromkeys(self.names.values()))
            raise DataError(
                f"{_WHAT}: expected labels among {', '.join(types)}, got {known[:200]}; "
                'name them alike, or say which is which, as in <Label value="Person" predicted_values="PER"/>'
            )

    def text(self, data: Any) -> str:
        """Find the text in a task's data; empty if it has none."""
        match data:
            case {self.key: str(text)}:
                return text
        return ""


def prediction(taggings: Sequence[Tagging], labelling: LabelConfig, text: str, version: str) -> dict[str, Any]:
    """Make the prediction for a task with these sentences: a region for every span, or for every labelled word.

    A region's score is its probability. The task's score is 1 / (1 + h), with h the sum of its words' entropies: tasks
    with the lowest score first are in the order of `annotate --strategy entropy`.
    """
    places, result = Utf16Places(text), []
    for region in (region for tagging in taggings for region in regions(tagging)):
        if name := labelling.named(region.label):
            value = {"start": places.units(region.start), "end": places.units(region.end)}
            value |= {"text": text[region.start : region.end], "labels": [name]}
            names = {"from_name": labelling.from_name, "to_name": labelling.to_name}
            score = round(region.probability, DIGITS)
            result.append({"id": f"crossfill-{len(result)}", **names, "type": "labels", "value": value, "score": score})
    entropy = sum(float(tagging.entropy.sum()) for tagging in taggings)
    return {"result": result, "score": 1 / (1 + entropy), "model_version": version}


def labelled_sentences(
    text: str, result: Iterable[Mapping[str, Any]], labelling: LabelConfig, language: str, task: Task
) -> list[Sentence]:
    """Read the sentences of an annotated task, with the labels of its regions; sentences that a region joins are one.

    In tasks that label every word, and in projects whose regions are partial, a word without a region stays open, and
    sentences of such words are left out.
    """
    places = Utf16Places(text)
    types = {name: label for label in types_of(task.labels) if (name := labelling.named(label))}
    ours = [r for r in result if r.get("type") == "labels" and r.get("from_name") == labelling.from_name]
    spans = SpanIndex(_span(region.get("value"), places, types, text) for region in ours)
    sentences = []
    for bounds in cut_into_sentences(text, language, spans):
        inside = spans.between(bounds[0][0], bounds[-1][1])
        sentences.append(labelled_sentence(text, bounds, inside, task, labelling.partial))
    return [sentence for sentence in sentences if sentence is not None]


def _key(text: Mapping[str, str]) -> str:
    value = text.get("value", "")
    if text.get("valueType", "text").lower() != "text":
        raise DataError(
            f'{_WHAT}: expected texts within the tasks, got <Text> with valueType="{text["valueType"]}"; import the '
            "texts themselves, and remove valueType"
        )
    if not value.startswith("$") or not value[1:]:
        raise DataError(f'{_WHAT}: expected <Text value="$text"/> with the key of the tasks\' text, got "{value[:60]}"')
    return value[1:]


def _is_partial(written: str) -> bool:
    if written.lower() not in ("true", "false"):
        raise DataError(f'{_WHAT}: expected <Labels … partial="true"> or "false", got "{written[:20]}"')
    return written.lower() == "true"


def _spellings(labels: Iterable[Mapping[str, str]]) -> dict[str, str]:
    spellings: dict[str, str] = {}
    for label in labels:
        value = label.get("value", "")
        name = label.get("alias") or value
        for spelling in (value, name, *map(str.strip, label.get("predicted_values", "").split(","))):
            if spelling and name:
                spellings.setdefault(spelling.lower(), name)
    return spellings


def _span(value: Any, places: Utf16Places, types: Mapping[str, str], text: str) -> TextSpan:
    """Read a region in characters, without the white space at its ends."""
    match value:
        case {"start": int(start), "end": int(end), "labels": [str(label)]} if start <= end and label in types:
            first, last = places.character(start), places.character(end)
        case _:
            raise DataError(
                "expected regions with start and end in UTF-16 units, and one label of "
                f"{', '.join(types)}; got {str(value)[:100]}"
            )
    inside = text[first:last]
    if not inside.strip():
        raise DataError(f"expected regions with text, got an empty one from {start} to {end}; delete it")
    first += len(inside) - len(inside.lstrip())
    return TextSpan(first, first + len(inside.strip()), types[label])
