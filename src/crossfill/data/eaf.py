"""ELAN's .eaf files (EAF 2.7 to 3.0): annotations in tiers, along the time of a recording.

Words stand in a tier of their own, most often under a tier of sentences, or sentences stand in a tier and are cut into
words. Labels stand in a tier under that of the words, named after the task. Tags are written into new tiers,
`crossfill-pos@words` under the tier `words`, which replace those of an earlier run; a sentence that had to be cut has
its words in a new tier, too. Ids of new annotations follow from those that they refer to, so that no others change.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, repeat
from statistics import median

from crossfill.data import field_files as xml
from crossfill.data.labels import task_name
from crossfill.data.reading import FileNotes
from crossfill.data.segmentation import Segmenter
from crossfill.errors import DataError, listed, unknown
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Unit

OURS = "crossfill-"
"""What the names of tiers begin with that are written here."""
_WORDS = frozenset(re.findall(r"\w+", "word words token tokens tok mot mots palabra palabras wort wörter слово слова"))
_SENTENCES = frozenset(
    re.findall(
        r"\w+",
        "sentence sentences utterance utterances utt phrase phrases tx text transcription transcript orth ort satz",
    )
)
_OTHERS = frozenset(
    re.findall(
        r"\w+",
        "gls gloss glosses ge gl pos ps msa morph morphs morpheme morphemes mb ft translation trans note notes segnum "
        "ref lit comment comments title",
    )
)
_NAMES_OF = {"pos": {"pos", "upos", "ps"}}
"""Tiers with the labels of a task, where they are not named after it."""
_PAUSE = 500
"""Milliseconds without a word that end a sentence, where there is no tier of sentences."""
_LONGEST_WORD = 15
"""Characters: where half of a tier's annotations are longer, they are no words."""
_TYPES = {f"{OURS}tags": "Symbolic_Association", f"{OURS}words": "Symbolic_Subdivision"}
"""The types of new tiers, and what ELAN calls their constraint."""


@dataclass(slots=True)
class _Annotation:
    """An annotation; those with the same id, text and parent are equal."""

    id: str
    text: str
    parent: str
    """The annotation that it refers to; for annotations with times, the one of the tier above that begins before it."""
    previous: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    start: int = field(default=-1, compare=False)
    """In milliseconds; −1 where it is not known, as for all annotations that refer to others."""
    end: int = field(default=-1, compare=False)


@dataclass
class _Tier:
    """A tier of a file, or a new one, which has no element."""

    id: str
    parent: str
    type: str
    speaker: str
    element: xml.Element = field(default_factory=lambda: xml.Element("TIER", {}, 0, 0, 0))
    annotations: list[_Annotation] = field(default_factory=list)

    @cached_property
    def parts(self) -> set[str]:
        """The words that its name and its type are made of, without the speaker's name after an @."""
        names = f"{self.id.partition('@')[0]} {self.type}".casefold()
        return set(re.findall(r"[^\W\d_]+", names))

    @cached_property
    def texts(self) -> list[str]:
        return [annotation.text for annotation in self.annotations if annotation.text]

    @cached_property
    def by_parent(self) -> dict[str, list[_Annotation]]:
        groups: dict[str, list[_Annotation]] = defaultdict(list)
        for annotation in self.annotations:
            groups[annotation.parent].append(annotation)
        return {parent: _in_order(group) for parent, group in groups.items()}

    def is_named(self, names: frozenset[str]) -> bool:
        """Tell whether one of these words is in its name or type, and none that is known for something else."""
        return bool(self.parts & names) and not self.parts & _OTHERS

    def matches(self, name: str) -> bool:
        """Tell whether it has this name, with or without its speaker's, or this type."""
        return _folded(name) in map(_folded, (self.id, self.id.partition("@")[0], self.type))

    def render(self, taken: set[str]) -> str:
        """Write the tier; ids that are taken get an underscore at their end."""
        speaker = {"PARTICIPANT": self.speaker} if self.speaker else {}
        names = {"LINGUISTIC_TYPE_REF": self.type, "PARENT_REF": self.parent, **speaker, "TIER_ID": self.id}
        text = f"\n    {xml.tag('TIER', names, close=False)}"
        for one in self.annotations:
            while one.id in taken:
                one.id += "_"
            previous = {"PREVIOUS_ANNOTATION": one.previous} if one.previous else {}
            names = {"ANNOTATION_ID": one.id, "ANNOTATION_REF": one.parent, **previous}
            text += f"\n        <ANNOTATION>\n            {xml.tag('REF_ANNOTATION', names, close=False)}"
            text += f"\n                {xml.tag('ANNOTATION_VALUE', {}, one.text)}"
            text += "\n            </REF_ANNOTATION>\n        </ANNOTATION>"
        return f"{text}\n    </TIER>"


class EafText(xml.FieldText):
    """An .eaf file."""

    def __init__(self, data: bytes, where: str, language: str, tier: str = "", task: str = "", label: str = "") -> None:
        """Find the tier of the text: the one named `tier`, or what looks like it; and that of a task's labels.

        With a `task`, the labels are those of the tier named `label`, else of the one named after the task.
        """
        self.data, self.where, self.language = data, where, language
        self.root = xml.parse_elements(data, where, "ANNOTATION_DOCUMENT")
        names = ("TIER_ID", "PARENT_REF", "LINGUISTIC_TYPE_REF", "PARTICIPANT")
        tiers = (_Tier(*(one[name] for name in names), element=one) for one in self.root.every("TIER"))
        self.tiers = {tier.id: tier for tier in tiers}
        self._read_annotations()
        self.labels_in = self._label_tiers(task, label) if task else []
        self.text_in = self._text_tiers(tier)
        self.has_words = _have_words(self.text_in)
        self.unit = Unit.WORD if self.has_words else Unit.SENTENCE
        kind = "words" if self.has_words else "sentences"
        self.how = f"{kind} in tier {_listed(self.text_in)}"
        if self.labels_in:
            self.how += f", labels in tier {_listed(self.labels_in)}"
        self.sentences = list(self._sentences())

    def _read_annotations(self) -> None:
        """Read the annotations of all tiers, with the ones above them."""
        slots = [(slot["TIME_SLOT_ID"], slot["TIME_VALUE"]) for slot in self.root.every("TIME_ORDER", "TIME_SLOT")]
        values = (int(value) if value.isascii() and value.isdigit() else -1 for _, value in slots)
        # a place in time that is not aligned lies after the one before it
        times = dict(zip((slot for slot, _ in slots), accumulate(values, lambda a, b: a if b < 0 else b), strict=True))
        for tier in self.tiers.values():
            for holder in tier.element.every("ANNOTATION"):
                for one in (part for part in holder.content if isinstance(part, xml.Element)):
                    text = next((value.text for value in one.every("ANNOTATION_VALUE")), "")
                    links = one["ANNOTATION_REF"], one["PREVIOUS_ANNOTATION"]
                    start, end = (times.get(one[f"TIME_SLOT_REF{n}"], -1) for n in (1, 2))
                    tier.annotations.append(_Annotation(one["ANNOTATION_ID"], text, *links, one.line, start, end))
        for tier in self.tiers.values():
            above = self.tiers.get(tier.parent)
            timed = sorted((a for a in above.annotations if a.start >= 0), key=lambda a: a.start) if above else []
            starts = [annotation.start for annotation in timed]
            for annotation in tier.annotations:
                if not annotation.parent and annotation.start >= 0 and (i := bisect_right(starts, annotation.start)):
                    annotation.parent = timed[i - 1].id

    def _label_tiers(self, task: str, label: str) -> list[_Tier]:
        if label:
            return self._named(label)
        wanted = _NAMES_OF.get(task_name(task), {task.casefold()})
        tiers = [tier for tier in self.tiers.values() if not tier.id.startswith(OURS)]
        exact = [tier for tier in tiers if any(map(tier.matches, wanted))]
        if not (chosen := exact or [tier for tier in tiers if tier.parts & wanted]):
            known = _listed(self.tiers.values()) or "no tier"
            raise DataError(f"{self.where}: expected a tier named '{task}' under the tier of the words, got {known}")
        return chosen

    def _named(self, name: str) -> list[_Tier]:
        if not (chosen := [tier for tier in self.tiers.values() if tier.matches(name)]):
            raise DataError(f"{self.where}: {unknown('tier', name, self.tiers)}")
        return chosen

    def _text_tiers(self, named: str) -> list[_Tier]:
        """Find the tiers of the text: of every speaker, where each has one."""
        if named:
            return self._named(named)
        if self.labels_in:
            chosen: dict[str, _Tier] = {}
            for tier in self.labels_in:
                if not (above := list(self._above(tier))):
                    raise DataError(f"{self.where}: expected tier '{tier.id[:40]}' under that of the words; move it")
                words = next((upper for upper in above if upper.is_named(_WORDS)), None)
                nearest = words or next((upper for upper in above if not upper.parts & _OTHERS), above[0])
                chosen[nearest.id] = nearest
            return list(chosen.values())
        tiers = [tier for tier in self.tiers.values() if tier.texts and not tier.id.startswith(OURS)]
        text = [tier for tier in tiers if not tier.parts & _OTHERS]
        candidates = (
            [tier for tier in text if tier.parts & _WORDS],
            [tier for tier in text if self._spells_parent(tier)],
            [tier for tier in text if tier.parts & _SENTENCES],
            [tier for tier in text if not tier.parent],
            tiers,
        )
        if not (first := next(filter(None, candidates), [])):
            raise DataError(f"{self.where}: expected a tier with words or sentences, got none; choose another file")
        return [tier for tier in first if tier.type == first[0].type]

    def _above(self, tier: _Tier) -> Iterator[_Tier]:
        """Yield the tiers above a tier, the nearest first."""
        while (above := self.tiers.get(tier.parent)) is not None:
            yield (tier := above)

    def _spells_parent(self, tier: _Tier) -> bool:
        """Tell whether annotations of a tier together spell those above them, as words do; morphemes lie deeper."""
        above = self.tiers.get(tier.parent)
        texts = {annotation.id: annotation.text for annotation in above.annotations} if above else {}
        spelt = [
            _letters("".join(part.text for part in group)) == _letters(texts.get(parent, ""))
            for parent, group in tier.by_parent.items()
            if len(group) > 1
        ]
        return bool(above and not above.parts & _WORDS) and sum(spelt) > len(spelt) / 2

    def _sentences(self) -> Iterator[xml.FieldSentence]:
        for tier in self.text_in:
            if not self.has_words:
                for one in (one for one in _in_order(tier.annotations) if one.text):
                    yield self._sentence(tier, one, [], Segmenter(self.language).split_words(one.text))
                continue
            groups: list[tuple[_Annotation | None, list[_Annotation]]]
            if (above := self.tiers.get(tier.parent)) is not None:
                groups = [(one, tier.by_parent.get(one.id, [])) for one in _in_order(above.annotations)]
            else:
                groups = [(None, words) for words in _by_pauses(_in_order(tier.annotations))]
            for whole, group in groups:
                if words := [word for word in group if word.text]:
                    sentence = xml.sentence_of([word.text for word in words], whole.text if whole else "")
                    yield self._sentence(tier, whole, words, sentence)

    def _sentence(
        self, tier: _Tier, whole: _Annotation | None, words: list[_Annotation], sentence: Sentence
    ) -> xml.FieldSentence:
        parts = [whole] if whole else words
        fields = {"tier": tier.id, "annotation": parts[0].id}
        times = {"start": parts[0].start, "end": parts[-1].end}
        fields |= {name: value for name, value in times.items() if value >= 0}
        return xml.FieldSentence(sentence, (words or parts)[0].line, fields, (tier, whole), words)

    def labels(self, notes: FileNotes) -> list[list[str]]:
        of_text = {annotation.id for tier in self.text_in for annotation in tier.annotations}
        by_id = {annotation.id: annotation for tier in self.tiers.values() for annotation in tier.annotations}
        given: dict[str, dict[str, None]] = defaultdict(dict)
        for tier in self.labels_in:
            for annotation in tier.annotations:
                owner = by_id.get(annotation.parent)
                while owner and owner.id not in of_text:
                    owner = by_id.get(owner.parent)
                if owner and annotation.text:
                    given[owner.id][annotation.text] = None
        labels = []
        for sentence in self.sentences:
            owners = sentence.words or [sentence.whole[1]]
            if several := next((owner for owner in owners if len(given[owner.id]) > 1), None):
                shown = ", ".join(given[several.id])
                notes(several.line, f"expected one label for '{several.text[:40]}', got {shown[:80]}; keep one of them")
                labels.append([])
            else:
                labels.append(["".join(given[owner.id]) for owner in owners])
        return labels

    def tagged(self, columns: Sequence[Mapping[str, Sequence[str]]], unit: Unit) -> bytes:
        new: dict[str, _Tier] = {}

        def add(name: str, parent: str, kind: str, annotations: Iterable[_Annotation], speaker: str) -> None:
            new.setdefault(name, _Tier(name, parent, OURS + kind, speaker)).annotations.extend(annotations)

        for sentence, of_sentence in zip(self.sentences, columns, strict=True):
            tier, whole = sentence.whole
            owners, parent = sentence.words or [whole], tier.id
            if unit is not Unit.WORD:
                owners, parent = [whole], tier.parent if sentence.words else tier.id
                if whole is None:
                    raise DataError(f"{self.where}: expected a tier of sentences; name it with --tier")
            elif not sentence.words:
                parent, ids = f"{OURS}words@{tier.id}", f"{OURS}words-{whole.id}-"
                owners = [
                    _Annotation(f"{ids}{i}", word, whole.id, f"{ids}{i - 1}" if i > 1 else "")
                    for i, word in enumerate(sentence.sentence.words, start=1)
                ]
                add(parent, tier.id, "words", owners, tier.speaker)
            for name, values in of_sentence.items():
                start = OURS + re.sub(r"[^A-Za-z0-9_.-]", "_", name)
                pairs = zip(owners, values, strict=True)
                tags = [_Annotation(f"{start}-{owner.id}", value, owner.id) for owner, value in pairs]
                add(f"{OURS}{name}@{tier.id}", parent, "tags", tags, tier.speaker)
        # words that are still the same stay, with the tags of other tasks
        old = {name: tier.annotations for name, tier in self.tiers.items()}
        added = [tier for tier in new.values() if tier.type == f"{OURS}tags" or old.get(tier.id) != tier.annotations]
        replaced = {tier.id for tier in added}
        gone = {tier.id for tier in self.tiers.values() if tier.id in replaced or tier.parent in replaced}
        kept = [tier for tier in self.tiers.values() if tier.id not in gone]
        edits: list[xml.Edit] = [xml.removal(self.data, self.tiers[name].element) for name in gone]
        taken = {annotation.id for tier in kept for annotation in tier.annotations}
        place = max(tier.element.end for tier in kept)
        edits += [
            (place, place, tier.render(taken)) for tier in sorted(added, key=lambda tier: tier.type, reverse=True)
        ]
        types = {element["LINGUISTIC_TYPE_ID"]: element.end for element in self.root.every("LINGUISTIC_TYPE")}
        place = max([place, *types.values()])
        for kind in sorted({tier.type for tier in added} - types.keys()):
            names = {"CONSTRAINTS": _TYPES[kind], "GRAPHIC_REFERENCES": "false"}
            names |= {"LINGUISTIC_TYPE_ID": kind, "TIME_ALIGNABLE": "false"}
            edits.append((place, place, f"\n    {xml.tag('LINGUISTIC_TYPE', names)}"))
        return xml.edited(self.data, edits)


def _have_words(tiers: Sequence[_Tier]) -> bool:
    """Tell whether annotations of these tiers are words, by the name of the first, or as they look."""
    named_words = tiers[0].is_named(_WORDS)
    if named_words or (tiers[0].is_named(_SENTENCES) and not tiers[0].parent):
        return named_words
    texts = [text for tier in tiers for text in tier.texts]
    return (
        bool(texts)
        and median(map(len, texts)) <= _LONGEST_WORD
        and sum(map(str.count, texts, repeat(" "))) < len(texts)
    )


def _in_order(annotations: Sequence[_Annotation]) -> list[_Annotation]:
    """Order annotations by time, or by the one before each, or leave them as they stand in their file."""
    if all(annotation.start >= 0 for annotation in annotations):
        return sorted(annotations, key=lambda annotation: annotation.start)
    after = {annotation.previous: annotation for annotation in annotations}
    ordered, last = [], ""
    while last in after and len(ordered) < len(annotations):
        ordered.append(after[last])
        last = after[last].id
    return ordered if len(ordered) == len(annotations) else list(annotations)


def _by_pauses(words: Iterable[_Annotation]) -> list[list[_Annotation]]:
    groups: list[list[_Annotation]] = []
    for word in words:
        if not groups or (word.start >= 0 and word.start - groups[-1][-1].end >= _PAUSE):
            groups.append([])
        groups[-1].append(word)
    return groups


def _folded(name: str) -> str:
    return re.sub(r"[\s_]+", "_", name.casefold())


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _listed(tiers: Iterable[_Tier]) -> str:
    return listed((f"'{tier.id[:40]}'" for tier in tiers), 6)
