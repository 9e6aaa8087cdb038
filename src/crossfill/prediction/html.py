"""Tagged sentences as HTML, for notebooks, which keep inline styles only: colours and doubt as on the web page."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from crossfill.grid.task import TaskKind, Unit

if TYPE_CHECKING:
    from crossfill.prediction.tagging import TaggedWord, Tagging

HUES = {
    **{"NOUN": 250, "PROPN": 225, "PRON": 275, "NUM": 200, "VERB": 25, "AUX": 45, "ADJ": 145, "ADV": 120, "DET": 300},
    **{"ADP": 330, "CCONJ": 80, "SCONJ": 95, "PART": 355, "INTJ": 60, "X": 10, "SYM": 180, "PUNCT": 165},
    **{"PER": 25, "LOC": 250, "ORG": 145, "MISC": 300},
}
"""Hues of word classes and of spans, as in `web/static/colours.js`."""
LITTLE_DOUBT, MUCH_DOUBT = 0.9, 0.6
"""Confidence below which words are underlined with dots, and with a wave."""
_DOUBT, _INK = "#c0392f", "#1c2126"
_BOX = "display:inline-flex;flex-direction:column;align-items:center;vertical-align:top;gap:.1em;margin:0 1px .4em;"
_LABEL = "font-size:.7em;font-weight:600;line-height:1.1;direction:ltr"


def tagging_html(tagging: "Tagging") -> str:
    """A tagged sentence: each word over its label, coloured by its label and underlined where the model doubts."""
    spaces = (tagging.sentence.spaces if tagging.task.unit is Unit.WORD else ()) or (True,) * len(tagging)
    words = "".join(
        _word(tagging, i) + (" " if space else "") for i, space in zip(range(len(tagging)), spaces, strict=True)
    )
    n, summary = len(tagging), "no words"
    if n:
        doubt = f"mean confidence {tagging.confidence.mean():.0%}, entropy {tagging.entropy.mean():.3f} nats"
        summary = f"{n} {tagging.task.unit}{'s' if n > 1 else ''}, {doubt}"
    return (
        f'<div style="max-width:60em"><div style="font-size:.85em;opacity:.75"><b>{escape(str(tagging.cell))}</b>, '
        f'{summary}</div><div dir="auto" style="line-height:1;margin-top:.5em">{words}</div></div>'
    )


def hue(label: str, labels: Sequence[str]) -> float | None:
    """The hue of a label from 0 to 360, none for those that say that there is nothing; a span has that of its type."""
    if label in ("O", "_"):
        return None
    if (kind := _kind(label)) in HUES:
        return HUES[kind]
    kinds = list(dict.fromkeys(map(_kind, labels)))
    return (20 + 137.508 * (kinds.index(kind) if kind in kinds else -1)) % 360


def _word(tagging: "Tagging", i: int) -> str:
    word, colour = tagging.words[i], hue(tagging.labels[i], tagging.task.labels)
    in_spans = tagging.task.kind is TaskKind.SPANS
    shown = word.label if not in_spans else word.label[2:] if word.label.startswith("B-") else "\u00a0"
    if colour is None:
        box, label = "padding:.3em .35em .25em;", f"{_LABEL};opacity:.6"
    else:
        share = round(100 * (0.12 + 0.7 * word.confidence**2))
        background = f"color-mix(in oklab,oklch(.86 .09 {colour:g}) {share}%,white)"
        goes_on = in_spans and word.label.startswith("I-")
        box = f"padding:.3em .45em .25em;border-radius:{0 if goes_on else '7px'};color:{_INK};background:{background};"
        label = f"{_LABEL};color:oklch(.36 .1 {colour:g})"
    line = f"wavy {_DOUBT} 1.5px" if word.confidence < MUCH_DOUBT else f"dotted {_DOUBT} 2px"
    doubt = f";text-decoration:underline {line};text-underline-offset:.22em" if word.confidence < LITTLE_DOUBT else ""
    form = f'<span style="line-height:1.45{doubt}">{escape(word.text)}</span>'
    under = f'<span style="{label}">{escape(shown)}</span>'
    return f'<span title="{escape(_title(word))}" style="{_BOX}{box}">{form}{under}</span>'


def _title(word: "TaggedWord") -> str:
    label_set = f"one of {', '.join(word.label_set)}" if word.label_set else ""
    parts = [f"{word.text}: {word.label}, {word.confidence:.0%}; entropy {word.entropy:.3f} nats", label_set]
    return "; ".join(filter(None, [*parts, "doubtful" if word.doubtful else ""]))


def _kind(label: str) -> str:
    return label[2:] if label.startswith(("B-", "I-")) else label
