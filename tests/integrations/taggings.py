"""Taggings with given labels, as a tagger would make them."""

from collections.abc import Sequence

import numpy as np

from crossfill.data.segmentation import Segmenter
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task
from crossfill.prediction.tagging import Span, Tagging

NER = Task("ner", ("B-LOC", "B-PER", "I-LOC", "I-PER", "O"))
POS = Task("pos", ("NOUN", "PUNCT", "VERB", "X"))
ADLAM = "𞤀𞤣𞤤𞤢𞤥 𞤋𞤯𞤢𞤤"
TEXTS = ["Dakar mooy péeyu Senegaal.", f"🦁🦁 Awa dem na {ADLAM} 👩‍👩‍👧. Dakar!", "", "ไปกรุงเทพ 🇸🇳 Dakar"]


def tagging(sentence: Sentence, cell: str, labels: Sequence[str], doubt: float = 0.3) -> Tagging:
    """A tagging in which every word has its label with the same probability, and so has every span."""
    task = NER if cell.startswith("ner") else POS
    n, k = len(sentence), len(task.labels)
    rows = np.full((n, k), doubt / (k - 1))
    rows[np.arange(n), [task.labels.index(label) for label in labels]] = 1 - doubt
    entropy = -(rows * np.log(rows)).sum(1)
    spans, offsets = [], sentence.offsets
    for i, label in enumerate(labels):
        if label.startswith("B-"):
            end = next((j for j in range(i + 1, n) if not labels[j].startswith("I-")), n)
            start_char, end_char = offsets[i][0], offsets[end - 1][1]
            text = sentence.original[start_char:end_char]
            spans.append(Span(i, end, label[2:], text, 0.25, start_char, end_char))
    return Tagging(
        Cell.parse(cell), sentence, tuple(labels), rows, task, rows.max(1), entropy, entropy / 2, tuple(spans)
    )


def places_found(text: str, cell: str = "ner/wol") -> list[Tagging]:
    """Dakar, Senegaal and both Adlam words tagged in a text; with `pos`, every word as a noun."""
    found = []
    for sentence in Segmenter("wol").split_text(text):
        labels = []
        for word in sentence.words:
            place = word in ("Dakar", "Senegaal", *ADLAM.split())
            inside = place and labels and labels[-1] != "O" and word in ADLAM
            labels.append("NOUN" if cell.startswith("pos") else "I-LOC" if inside else "B-LOC" if place else "O")
        found.append(tagging(sentence, cell, labels))
    return found
