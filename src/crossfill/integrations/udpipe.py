"""UDPipe 2: the parameters, formats and answers of its REST service."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO

from crossfill.data.codes import find_language, language_name
from crossfill.data.conllu import ConlluSentence, render, with_feature
from crossfill.data.labels import LabelColumn
from crossfill.data.segmentation import split_text, split_words
from crossfill.data.streams import Format, read_items
from crossfill.errors import DataError, unknown
from crossfill.grid.sentence import Sentence
from crossfill.grid.unicode import on_one_line
from crossfill.prediction.relations import relation_to
from crossfill.prediction.tagging import Tagging

INPUTS = ("conllu", "generic_tokenizer", "horizontal", "vertical")
OUTPUTS = ("conllu", "horizontal", "vertical")
_ESCAPES = str.maketrans({" ": "\\s", "\t": "\\t", "\r": "\\r", "\n": "\\n", "|": "\\p", "\\": "\\\\"})
_HEAD = 6


@dataclass(frozen=True)
class Text:
    """Text to process: its sentences, each with its lines in CoNLL-U."""

    sentences: tuple[Sentence, ...]
    rows: tuple[ConlluSentence, ...]


def find_model(name: str, languages: Sequence[str]) -> str:
    """The language that a model's name stands for: `wol`, `wolof`, `wolof-wtb-ud-2.15-241121`."""
    first = name.strip().lower().partition("-")[0]
    names = {language_name(code).lower().replace(" ", "_"): code for code in languages}
    found = next((code for code in (first, names.get(first), find_language(first)) if code in languages), None)
    if found is None:
        raise DataError(unknown("model", name[:100], languages))
    return found


def tasks_for(tasks: Iterable[str], tagger: bool, parser: bool) -> list[str]:
    """The tasks of a model that fill the columns of a tagger (UPOS, XPOS, FEATS) and of a parser (DEPREL)."""
    named = [task for task in tasks if LabelColumn.names(task) and not task.startswith("misc:")]
    return [task for task in named if (parser if task == "deprel" else tagger)]


def read(data: str, language: str, form: str, tokenizer: str | None) -> Text:
    """The sentences of a request's data; `tokenizer` has the options of one, and none if there is to be none."""
    if form not in INPUTS:
        raise DataError(unknown("input format", form[:100], INPUTS))
    if tokenizer is not None or form == "generic_tokenizer":
        return _tokenized(data, language, set((tokenizer or "").split(";")))
    forms: dict[str, Format] = {"conllu": "conllu", "horizontal": "text", "vertical": "bio"}
    file = BytesIO(data.encode("utf-8", "surrogatepass"))
    items = [item for item in read_items(file, "data", forms[form], language, "words") if item.sentence]
    rows = [item.conllu or _rows(item.sentence, number) for number, item in enumerate(items, start=1)]
    return Text(tuple(item.sentence for item in items), tuple(rows))


def write(text: Text, taggings: Sequence[Sequence[Tagging]], form: str) -> str:
    """The answer's text, with the labels of each task in its column; `taggings` are those of all sentences by task."""
    if form == "vertical":
        return "".join("".join(f"{word}\n" for word in _forms(rows)) + "\n" for rows in text.rows)
    if form == "horizontal":
        return "".join(" ".join(word.replace(" ", "\u00a0") for word in _forms(rows)) + "\n" for rows in text.rows)
    if form != "conllu":
        raise DataError(unknown("output format", form[:100], OUTPUTS))
    return render(_filled(rows, [of_task[i] for of_task in taggings]) for i, rows in enumerate(text.rows))


def _tokenized(data: str, language: str, options: set[str]) -> Text:
    """The sentences of raw text, with its spaces as UDPipe notes them; every line is one if it is `presegmented`."""
    if "presegmented" in options:
        sentences, start = [], 0
        for line in data.splitlines(keepends=True):
            sentences.append(split_words(data, language, start, start + len(line)))
            start += len(line)
    else:
        sentences = list(split_text(data, language))
    sentences = [sentence for sentence in sentences if sentence]
    rows, before = [], 0
    for number, sentence in enumerate(sentences, start=1):
        ends = [*sentence.starts[1:], sentences[number].starts[0] if number < len(sentences) else len(data)]
        gap = data[before : sentence.starts[0]]
        paragraph = ["# newdoc"] * (number == 1) + ["# newpar"] * (number == 1 or gap.count("\n") > 1)
        made = _rows(sentence, number, paragraph)
        for row, (start, end), following in zip(made.rows, sentence.offsets, ends, strict=True):
            misc = [f"SpacesBefore={gap.translate(_ESCAPES)}"] * (
                number == 1 and start == sentence.starts[0] and gap != ""
            )
            misc += _spaces(data[end:following]) + [f"TokenRange={start}:{end}"] * ("ranges" in options)
            row[9] = "|".join(misc) or "_"
        before = sentence.offsets[-1][1]
        rows.append(made)
    return Text(tuple(sentences), tuple(rows))


def _spaces(gap: str) -> list[str]:
    if gap == " ":
        return []
    return [f"SpacesAfter={gap.translate(_ESCAPES)}"] if gap else ["SpaceAfter=No"]


def _rows(sentence: Sentence, number: int, comments: Sequence[str] = ()) -> ConlluSentence:
    words = [on_one_line(word).strip() or "_" for word in sentence.words]
    spaces = sentence.spaces or (True,) * len(words)
    last = len(words)
    rows = [
        [str(i), word, *("_" * 7), "_" if space or i == last else "SpaceAfter=No"]
        for i, (word, space) in enumerate(zip(words, spaces, strict=True), start=1)
    ]
    made = ConlluSentence((), rows)
    return ConlluSentence((*comments, f"# sent_id = {number}", f"# text = {made.text}"), rows)


def _filled(source: ConlluSentence, taggings: Sequence[Tagging]) -> ConlluSentence:
    rows, word = [], 0
    for row in source.rows:
        changed = list(row)
        if row[0].isdigit():
            for tagging in taggings:
                column, label = LabelColumn(tagging.cell.task), tagging.labels[word]
                if column.key:
                    changed[column.index] = with_feature(changed[column.index], column.key, label)
                elif tagging.cell.task != "deprel":
                    changed[column.index] = label
                elif row[_HEAD] != "_":
                    changed[column.index] = relation_to(row[_HEAD], tagging, word)
            word += 1
        rows.append(changed)
    return ConlluSentence(source.comments, rows)


def _forms(source: ConlluSentence) -> Iterator[str]:
    return (row[1] for row in source.words)


def models(languages: Iterable[str], tasks: Iterable[str]) -> Mapping[str, list[str]]:
    """The models that there are, by name, with what they can do."""
    kinds = ["tokenizer"] + ["tagger"] * bool(tasks_for(tasks, tagger=True, parser=False))
    return dict.fromkeys(languages, kinds)
