"""FLEx's .flextext files: interlinear text, in which a phrase is a sentence, and its words have items.

A word has its form (`txt`, or `punct` for punctuation) in one writing system or several, and glosses, parts of speech
and the analysis of its morphemes as further items. Labels are the items of the task's name (`pos`; else the `msa` of
the word's only root or stem). Tags are written as items that say that a statistical analysis guessed them, which FLEx
itself never does: they replace those of an earlier run, and are not read as labels.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from crossfill.data import field_files as xml
from crossfill.data.reading import FileNotes
from crossfill.data.segmentation import Segmenter
from crossfill.errors import DataError, unknown
from crossfill.grid.task import Unit

GUESSED = "guessByStatisticalAnalysis"
_FORMS = ("txt", "punct")


class FlexText(xml.FieldText):
    """A .flextext file."""

    def __init__(self, data: bytes, where: str, language: str, tier: str = "", task: str = "", label: str = "") -> None:
        """Read the words of the writing system named `tier`, else of the one that most words are written in.

        Labels are items of the type `label`, else of that of the `task`.
        """
        self.data, self.where, self.label = data, where, label or task
        root = xml.parse_elements(data, where, "document")
        phrases = list(root.every("interlinear-text", "paragraphs", "paragraph", "phrases", "phrase"))
        forms = Counter(
            item["lang"]
            for phrase in phrases
            for holder in (phrase, *phrase.every("words", "word"))
            for item in holder.every("item")
            if item["type"] in _FORMS
        )
        if tier and tier not in forms:
            raise DataError(f"{where}: {unknown('writing system', tier, forms)}")
        if not forms:
            raise DataError(f'{where}: expected words as <item type="txt">, got none; export the baseline, too')
        self.writing = tier or forms.most_common(1)[0][0]
        self.how = f"words in writing system '{self.writing}'" + (f", labels in items '{self.label}'" if task else "")
        analysis = {language["lang"] for language in root.every("interlinear-text", "languages", "language")}
        self.glosses_in = min(analysis - forms.keys(), default="en")
        self.sentences = [one for phrase in phrases if (one := self._sentence(phrase, language)) is not None]

    def _sentence(self, phrase: xml.Element, language: str) -> xml.FieldSentence | None:
        names = {"segment": _item(phrase, "segnum"), "guid": phrase["guid"], "speaker": phrase["speaker"]}
        names |= {"start": phrase["begin-time-offset"], "end": phrase["end-time-offset"]}
        fields = {name: value for name, value in names.items() if value}
        text = _item(phrase, "txt", self.writing)
        words = [word for word in phrase.every("words", "word") if self._form(word)]
        if words:
            return xml.FieldSentence(
                xml.sentence_of(list(map(self._form, words)), text), phrase.line, fields, phrase, words
            )
        return (
            xml.FieldSentence(Segmenter(language).split_words(text), phrase.line, fields, phrase, ()) if text else None
        )

    def _form(self, word: xml.Element) -> str:
        return next(filter(None, (_item(word, kind, self.writing) for kind in _FORMS)), "")

    def labels(self, notes: FileNotes) -> list[list[str]]:  # noqa: ARG002
        return [list(map(self._label, one.words)) or [""] * len(one.sentence) for one in self.sentences]

    def _label(self, word: xml.Element) -> str:
        label = _item(word, self.label)
        if label or self.label != "pos":
            return label
        if not _item(word, "txt", self.writing):
            return "PUNCT"
        morphs = list(word.every("morphemes", "morph"))
        stems = [morph for morph in morphs if morph["type"] in ("stem", "root", "bound stem", "bound root")] or morphs
        return _item(stems[0], "msa") if len(stems) == 1 else ""

    def tagged(self, columns: Sequence[Mapping[str, Sequence[str]]], unit: Unit) -> bytes:
        edits: list[xml.Edit] = []
        for sentence, of_sentence in zip(self.sentences, columns, strict=True):
            if unit is Unit.WORD and not sentence.words:
                place = f"{self.where}:{sentence.line}"
                raise DataError(f"{place}: expected words in the phrase, got text alone; let FLEx cut it into words")
            holders = sentence.words if unit is Unit.WORD else [sentence.whole]
            for i, holder in enumerate(holders):
                edits += self._items(holder, {name: values[i] for name, values in of_sentence.items()})
        return xml.edited(self.data, edits)

    def _items(self, holder: xml.Element, items: Mapping[str, str]) -> Iterator[xml.Edit]:
        """Write items behind the others of a word or a phrase, in place of those of an earlier run."""
        content = [child for child in holder.content if isinstance(child, xml.Element)]
        old = [child for child in content if child["analysisStatus"] == GUESSED and child["type"] in items]
        yield from (xml.removal(self.data, item) for item in old)
        last = next(child for child in reversed(content) if child not in old)
        indent = xml.space_before(self.data, last).decode().replace("\r\n", "\n")
        for name, value in items.items():
            names = {"type": name, "lang": self.glosses_in, "analysisStatus": GUESSED}
            yield last.end, last.end, indent + xml.tag("item", names, value)


def _item(holder: xml.Element, kind: str, language: str = "") -> str:
    """Return the first item of a type, in a writing system if one is named, that a person wrote or approved."""
    items = (item for item in holder.every("item") if item["type"] == kind and item["analysisStatus"] != GUESSED)
    return next((item.text for item in items if not language or item["lang"] == language), "")
