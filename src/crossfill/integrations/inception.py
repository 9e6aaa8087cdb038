"""INCEpTION: documents as UIMA CAS in XMI, which its external recommenders get and learn from, through dkpro-cassis.

Their type system names the layers of a project. dkpro-cassis makes Python classes of it, with the names of features in
the code: so all names are checked before it may. Offsets count UTF-16 units in XMI, and characters in what it reads.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any

from crossfill.data.segmentation import Bounds, Segmenter, SpanIndex, TextSpan
from crossfill.errors import ConfigError, DataError, missing_package
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind
from crossfill.integrations.annotation_tools import Utf16Places, labelled_sentence, parse_xml, regions, types_of
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
    single_words: bool = False
    """Whether each annotation is of one word."""


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
        cas = _cassis("load_cas_from_xmi", "a document in XMI", xmi, types)
        text = cas.sofa_string or ""
        words = [bounds for bounds in _bounds(cas, TOKEN) if text[bounds[0] : bounds[1]].strip()]
        if not words:
            return cls(cas, text, tuple(Segmenter(language).split_text(text)))
        begins = [start for start, _ in words]
        edges = [0, *(bisect_left(begins, start) for start, _ in _bounds(cas, SENTENCE)), len(words)]
        parts = [words[first:end] for first, end in pairwise(edges) if first < end]
        return cls(cas, text, tuple(Sentence.cut(text, part) for part in parts))

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
        for tagging in taggings:
            for region in regions(tagging, layer.single_words):
                values = {
                    layer.feature: region.label,
                    PREDICTED: True,
                    f"{layer.feature}_score": region.probability,
                    f"{layer.feature}_score_explanation": explanation(tagging, region.words),
                }
                known = {name: value for name, value in values.items() if name in names}
                self.cas.add(kind(begin=region.start, end=region.end, **known))
        return str(self.cas.to_xmi())


def labelled_sentences(document: Document, layer: Layer, task: Task, partial: bool = False) -> list[Sentence]:
    """Read the sentences of a document that are annotated, with the labels of a layer.

    A sentence without annotations may be one that nobody has looked at, so it is left out. So are sentences with labels
    that the task does not have, with annotations that overlap, or with one that goes on in the next sentence. In tasks
    that label every word, and where annotations are `partial`, those without one stay open.
    """
    types = set(types_of(task.labels))
    annotations = document.annotations(layer)
    spans = SpanIndex(TextSpan(a.begin, a.end, str(getattr(a, layer.feature))) for a in annotations)
    labelled = []
    for sentence in document.sentences:
        start, end = sentence.offsets[0][0], sentence.offsets[-1][1]
        inside = spans.between(start, end)
        if inside and all(s.label in types and start <= s.start and s.end <= end for s in inside):
            with suppress(DataError):  # overlapping, or without a word
                labelled.append(labelled_sentence(document.text, sentence.offsets, inside, task, partial))
    return [sentence for sentence in labelled if sentence is not None]


def read_types(description: str) -> Any:
    """Read a type system, a `cassis.TypeSystem`; an error if it has other names than UIMA allows."""
    description = _undeclared(description)
    parse_xml(description, "the type system", _MOST_CHARACTERS)
    types = _cassis("load_typesystem", "a type system in XML", description)
    for kind in types.get_types():
        names = [(_TYPE, kind.name), *((_FEATURE, feature.name) for feature in kind.all_features)]
        for pattern, name in names:
            if not isinstance(name, str) or not pattern.fullmatch(name):
                raise DataError(f"the type system: expected names of letters and digits, got '{str(name)[:40]}'")
    return types


def explanation(tagging: Tagging, words: Sequence[int]) -> str:
    """Say which labels words could have, and how much doubt there is, and how much of it more data would remove."""
    if tagging.sets is not None:
        sets, what = [tagging.label_sets[i] for i in words], f"label set ({1 - ALPHA:.0%})"
    else:
        sets, what = [_probable(tagging.distribution(i)) for i in words], f"labels with {1 - ALPHA:.0%} of probability"
    is_spans = tagging.task.kind is TaskKind.SPANS
    labels = dict.fromkeys(label[2:] or label if is_spans else label for labels in sets for label in labels)
    entropy, epistemic = (
        max(float(values[i]) for i in words) for values in (tagging.entropy, tagging.mutual_information)
    )
    return f"{what}: {', '.join(labels)}; doubt: entropy {entropy:.2f}, epistemic {epistemic:.2f}"


def _probable(distribution: dict[str, float]) -> list[str]:
    """List the most probable labels, as many as reach 1 - `ALPHA` together."""
    before = accumulate(distribution.values(), initial=0.0)
    return [label for label, total in zip(distribution, before, strict=False) if total < 1 - ALPHA]


def _cassis(function: str, what: str, *arguments: Any) -> Any:
    """Call a function of dkpro-cassis that reads `what`; its errors may be of any kind."""
    try:
        cassis = import_module("cassis")
    except ModuleNotFoundError as error:
        raise ConfigError(missing_package(error.name or "", "inception")) from None
    try:
        return getattr(cassis, function)(*arguments)
    except Exception as error:
        raise DataError(f"expected {what}; {type(error).__name__}: {str(error)[:200]}") from None


def _undeclared(xml: str) -> str:
    """Remove the declaration of an encoding, in which another parser could read something else."""
    return re.sub(r"\A\s*<\?xml[^>]*\?>", "", xml.removeprefix("\ufeff"))


def _check_offsets(xmi: str) -> None:
    """Refuse a document type, any number of texts but one, and places outside of it."""
    elements = list(parse_xml(xmi, "the document", _MOST_CHARACTERS).iter())
    texts = [element.get("sofaString", "") for element in elements if element.tag.rpartition("}")[2] == "Sofa"]
    if len(texts) != 1:
        raise DataError(f"the document: expected one text (Sofa), got {len(texts)}")
    known = Utf16Places(texts[0])
    for place in {element.attrib[key] for element in elements for key in ("begin", "end") if key in element.attrib}:
        if not re.fullmatch(r"[0-9]{1,9}", place):
            raise DataError(f"the document: expected begin and end as numbers, got '{place[:20]}'")
        known.character(int(place))


def _bounds(cas: Any, name: str) -> list[Bounds]:
    """List where the annotations of a type are, in order; empty if there is no such type."""
    if not cas.typesystem.contains_type(name):
        return []
    return sorted((a.begin, a.end) for a in cas.select(name))


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
