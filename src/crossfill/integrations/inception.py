"""INCEpTION: documents as UIMA CAS in XMI, which its external recommenders get and learn from, through dkpro-cassis.

Their type system names the layers of a project. dkpro-cassis makes Python classes of it, with the names of features in
the code: so all names are checked before it may. Offsets count UTF-16 units in XMI, and characters in what it reads.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any

from crossfill.data.segmentation import Bounds, TextSpan, split_text
from crossfill.errors import ConfigError, DataError, missing_package
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind
from crossfill.integrations.annotation_tools import Utf16Places, elements, labelled_sentence, types_of
from crossfill.prediction.tagging import Tagging

SENTENCE = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence"
TOKEN = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token"  # noqa: S105
PREDICTED = "inception_internal_predicted"
ALPHA = 0.1
"""Label sets in explanations hold the right label in all but this share of words."""
_FEATURE, _TYPE = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]{0,99}"), re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,199}")
_MOST_CHARACTERS = 2**23


@dataclass(frozen=True)
class Layer:
    """What a recommender predicts: a feature of the annotations of a layer."""

    name: str
    feature: str
    anchoring: str = "tokens"
    """`characters`, `singleToken`, `tokens` or `sentences`."""

    def __post_init__(self) -> None:
        if self.anchoring == "sentences":
            raise DataError(
                f"expected a layer of words or characters, got {self.name}, whose annotations are sentences"
            )


@dataclass(frozen=True)
class Document:
    """A document that was read."""

    cas: Any
    """A `cassis.Cas`."""
    text: str
    sentences: tuple[Sentence, ...]
    """Cut into words as in the document, or if it is not cut, by the rules of its language."""

    @classmethod
    def parse(cls, xmi: str, types: Any, language: str) -> "Document":
        """Read a document."""
        xmi = _undeclared(xmi)
        _check_offsets(xmi)
        cas = _third_party("a document in XMI", lambda: _cassis().load_cas_from_xmi(xmi, types))
        text = cas.sofa_string or ""
        words = [bounds for bounds in _bounds(cas, TOKEN) if text[bounds[0] : bounds[1]].strip()]
        if words:
            starts = [start for start, _ in _bounds(cas, SENTENCE)]
            sentences = [Sentence.cut(text, part) for part in _split(words, starts)]
        else:
            sentences = list(split_text(text, language))
        return cls(cas, text, tuple(sentences))

    def annotations(self, layer: Layer) -> list[Any]:
        """Select the annotations of a layer that are no predictions, and have a value."""
        selected = self.cas.select(_type(self.cas, layer))
        return [a for a in selected if not getattr(a, PREDICTED, None) and getattr(a, layer.feature)]

    def predicted(self, taggings: Sequence[Tagging], layer: Layer) -> str:
        """Write the document as XMI with predictions, in place of any that it had."""
        kind = _type(self.cas, layer)
        for earlier in [a for a in self.cas.select(kind) if getattr(a, PREDICTED, None)]:
            self.cas.remove(earlier)
        names = {feature.name for feature in kind.all_features}
        for start, end, label, score, explanation in _predictions(taggings, layer.anchoring == "singleToken"):
            values: dict[str, Any] = {layer.feature: label, PREDICTED: True}
            more = {f"{layer.feature}_score": score, f"{layer.feature}_score_explanation": explanation}
            values |= {name: value for name, value in more.items() if name in names}
            self.cas.add(kind(begin=start, end=end, **values))
        return str(self.cas.to_xmi())


def labelled_sentences(document: Document, layer: Layer, task: Task) -> list[Sentence]:
    """Read the sentences of a document that are annotated, with the labels of a layer.

    A sentence without annotations may be one that nobody has looked at, so it is left out. So are, in tasks that label
    every word, sentences with words that have none; and sentences with labels that the task does not have, with
    annotations that overlap, or with one that goes on in the next sentence.
    """
    types = set(types_of(task.labels))
    spans = sorted(TextSpan(a.begin, a.end, str(getattr(a, layer.feature))) for a in document.annotations(layer))
    starts, ends = [span.start for span in spans], list(accumulate((span.end for span in spans), max))
    labelled = []
    for sentence in document.sentences:
        start, end = sentence.offsets[0][0], sentence.offsets[-1][1]
        inside = [s for s in spans[bisect_right(ends, start) : bisect_left(starts, end)] if s.end > start]
        if inside and all(s.label in types and start <= s.start and s.end <= end for s in inside):
            with suppress(DataError):  # overlapping, or without a word
                labelled.append(labelled_sentence(document.text, sentence.offsets, inside, task))
    return [sentence for sentence in labelled if sentence is not None]


def read_types(description: str) -> Any:
    """Read a type system, a `cassis.TypeSystem`; an error if it has other names than UIMA allows."""
    description = _undeclared(description)
    elements(description, "the type system", _MOST_CHARACTERS)
    types = _third_party("a type system in XML", lambda: _cassis().load_typesystem(description))
    for kind in types.get_types():
        names = [(_TYPE, kind.name), *((_FEATURE, feature.name) for feature in kind.all_features)]
        for pattern, name in names:
            if not isinstance(name, str) or not pattern.fullmatch(name):
                raise DataError(f"the type system: expected names of letters and digits, got '{str(name)[:40]}'")
    return types


def _cassis() -> Any:
    try:
        return import_module("cassis")
    except ModuleNotFoundError as error:
        raise ConfigError(missing_package(error.name or "", "inception")) from None


def _undeclared(xml: str) -> str:
    """Remove the declaration of an encoding, in which another parser could read something else."""
    return re.sub(r"\A\s*<\?xml[^>]*\?>", "", xml.removeprefix("\ufeff"))


def _third_party(what: str, read: Any) -> Any:
    try:
        return read()
    except ConfigError:
        raise
    except Exception as error:  # whatever it makes of input that is not what it expects
        raise DataError(f"expected {what}; {type(error).__name__}: {str(error)[:200]}") from None


def _check_offsets(xmi: str) -> None:
    """Refuse a document type, any number of texts but one, and places outside of it."""
    texts, places = [], set()
    for _, name, attributes in elements(xmi, "the document", _MOST_CHARACTERS):
        if name.rpartition(":")[2] == "Sofa":
            texts.append(attributes.get("sofaString", ""))
        places |= {attributes[key] for key in ("begin", "end") if key in attributes}
    if len(texts) != 1:
        raise DataError(f"the document: expected one text (Sofa), got {len(texts)}")
    known = Utf16Places(texts[0])
    for place in places:
        if not re.fullmatch(r"[0-9]{1,9}", place):
            raise DataError(f"the document: expected begin and end as numbers, got '{place[:20]}'")
        known.character(int(place))


def _bounds(cas: Any, name: str) -> list[Bounds]:
    """List where the annotations of a type are, in order; empty if there is no such type."""
    if not cas.typesystem.contains_type(name):
        return []
    return sorted((a.begin, a.end) for a in cas.select(name))


def _split(words: Sequence[Bounds], starts: Sequence[int]) -> Iterator[Sequence[Bounds]]:
    """Split words into those of each sentence, by where sentences start."""
    begins = [start for start, _ in words]
    places = [0, *(bisect_left(begins, start) for start in starts), len(words)]
    for first, end in pairwise(places):
        if first < end:
            yield words[first:end]


def _type(cas: Any, layer: Layer) -> Any:
    if not cas.typesystem.contains_type(layer.name):
        raise DataError(f"expected the layer {layer.name[:100]} in the type system, found none of that name")
    kind = cas.typesystem.get_type(layer.name)
    ranges = {feature.name: feature.rangeType.name for feature in kind.all_features}
    for name in ("begin", layer.feature, PREDICTED):
        if name not in ranges:
            raise DataError(f"expected the feature {name[:100]} in the layer {layer.name[:100]}, found none")
    if ranges[layer.feature] != "uima.cas.String":
        raise DataError(f"expected a feature with text as labels, got {layer.feature}, a {ranges[layer.feature][:100]}")
    return kind


def _predictions(taggings: Sequence[Tagging], single: bool) -> Iterator[tuple[int, int, str, float, str]]:
    """List start, end, label, probability and explanation of each span, or of each word that has a label."""
    for tagging in taggings:
        if tagging.kind is TaskKind.SPANS and not single:
            for span in tagging.spans:
                why = explanation(tagging, range(span.start, span.end))
                yield span.start_char, span.end_char, span.type, span.confidence, why
            continue
        for i, word in enumerate(tagging.words):
            if word.label != tagging.task.absent:
                label = word.label[2:] if tagging.kind is TaskKind.SPANS else word.label
                yield word.start_char, word.end_char, label, word.confidence, explanation(tagging, range(i, i + 1))


def explanation(tagging: Tagging, words: Sequence[int]) -> str:
    """Say which labels words could have, and how much doubt there is, and how much of it more data would remove."""
    if tagging.sets is not None:
        sets, what = [tagging.label_sets[i] for i in words], f"label set ({1 - ALPHA:.0%})"
    else:
        sets, what = [_probable(tagging.distribution(i)) for i in words], f"labels with {1 - ALPHA:.0%} of probability"
    is_spans = tagging.kind is TaskKind.SPANS
    labels = dict.fromkeys(label[2:] or label if is_spans else label for labels in sets for label in labels)
    entropy, epistemic = (
        max(float(values[i]) for i in words) for values in (tagging.entropy, tagging.mutual_information)
    )
    return f"{what}: {', '.join(labels)}; doubt: entropy {entropy:.2f}, epistemic {epistemic:.2f}"


def _probable(distribution: dict[str, float]) -> list[str]:
    labels, total = [], 0.0
    for label, probability in distribution.items():
        labels.append(label)
        total += probability
        if total >= 1 - ALPHA:
            break
    return labels
