"""Label Studio: what a project labels, and predictions for its tasks, as its ML backends give them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossfill.errors import DataError
from crossfill.grid.task import TaskKind
from crossfill.integrations.label_names import types_of
from crossfill.integrations.markup import elements
from crossfill.integrations.utf16 import Utf16Places
from crossfill.prediction.tagging import DIGITS, Tagging

_WHAT = "the labelling configuration"


@dataclass(frozen=True)
class Labelling:
    """What a project labels: the first pair of `<Labels>` and `<Text>` in its configuration."""

    from_name: str
    """The name of the labels."""
    to_name: str
    """The name of the text."""
    key: str
    """Where a task's data has the text."""
    names: Mapping[str, str]
    """The project's name for each label, by all its spellings in lower case; empty if it takes any."""

    @classmethod
    def parse(cls, config: str) -> "Labelling":
        """The first pair in a configuration."""
        labels: dict[str, dict[str, str]] = {}
        texts: dict[str, dict[str, str]] = {}
        names: dict[str, list[dict[str, str]]] = {}
        inside: tuple[int, str] | None = None  # depth and name of the <Labels> that the element is in
        for depth, tag, attributes in elements(config, _WHAT):
            inside = inside if inside and depth > inside[0] else None
            kind, name = tag.lower(), attributes.get("name", "")
            if kind == "labels":
                labels[name], inside = attributes, (depth, name)
            elif kind == "text":
                texts[name] = attributes
            elif kind == "label" and inside:
                names.setdefault(inside[1], []).append(attributes)
        for name, attributes in labels.items():
            for target in attributes.get("toName", "").split(","):
                if target.strip() in texts:
                    text = texts[target.strip()]
                    return cls(name, target.strip(), _key(text), _spellings(names.get(name, [])))
        raise DataError(
            f'{_WHAT}: expected <Labels name="label" toName="text"> with <Text name="text" value="$text"/>, got '
            f"{len(labels)} <Labels> and {len(texts)} <Text>, none for the other"
        )

    def named(self, label: str) -> str | None:
        """The project's name for a label of the model; none if the project does not have it."""
        return self.names.get(label.lower()) if self.names else label

    def check(self, label_names: Sequence[str]) -> None:
        """An error if the project has none of a task's labels."""
        types = types_of(label_names)
        if not any(self.named(label) for label in types):
            known = ", ".join(dict.fromkeys(self.names.values()))
            raise DataError(
                f"{_WHAT}: expected labels among {', '.join(types)}, got {known[:200]}; "
                'name them alike, or say which is which, as in <Label value="Person" predicted_values="PER"/>'
            )

    def text(self, task: Mapping[str, Any]) -> str:
        """The text of a task; empty if it has none."""
        data = task.get("data")
        found = data.get(self.key) if isinstance(data, Mapping) else None
        return found if isinstance(found, str) else ""


def prediction(taggings: Sequence[Tagging], labelling: Labelling, text: str, version: str) -> dict[str, Any]:
    """The prediction for a task, whose sentences these are: a region for every span, or for every labelled word.

    A region's score is its probability. The task's score is 1 / (1 + h), with h the sum of its words' entropies: tasks
    with the lowest score first are in the order of `annotate --strategy entropy`.
    """
    places = Utf16Places(text)
    found = [
        {
            "id": f"crossfill-{number}",
            "from_name": labelling.from_name,
            "to_name": labelling.to_name,
            "type": "labels",
            "value": {
                "start": places.units(start),
                "end": places.units(end),
                "text": text[start:end],
                "labels": [name],
            },
            "score": round(score, DIGITS),
        }
        for number, (start, end, name, score) in enumerate(_regions(taggings, labelling))
    ]
    entropy = sum(float(tagging.entropy.sum()) for tagging in taggings)
    return {"result": found, "score": 1 / (1 + entropy), "model_version": version}


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


def _spellings(labels: Iterable[Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for label in labels:
        value = label.get("value", "")
        name = label.get("alias") or value
        others = [other.strip() for other in label.get("predicted_values", "").split(",")]
        for spelling in (value, name, *others):
            if spelling and name:
                found.setdefault(spelling.lower(), name)
    return found


def _regions(taggings: Sequence[Tagging], labelling: Labelling) -> Iterable[tuple[int, int, str, float]]:
    for tagging in taggings:
        if tagging.kind is TaskKind.SPANS:
            found = [(span.start_char, span.end_char, span.type, span.confidence) for span in tagging.spans]
        else:
            found = [(word.start_char, word.end_char, word.label, word.confidence) for word in tagging.words]
        for start, end, label, score in found:
            if label != "_" and (name := labelling.named(label)):
                yield start, end, name, score
