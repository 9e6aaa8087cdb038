"""A tagging as a document of spaCy, as the component would have written it."""

from typing import TYPE_CHECKING

from spacy.tokens import Doc
from spacy.vocab import Vocab

from crossfill.grid.task import Unit
from crossfill.integrations.spacy import extensions
from crossfill.integrations.spacy.annotations import RECORD, Column, Part, write

if TYPE_CHECKING:
    from crossfill.prediction.tagging import Tagging


def tagged_doc(tagging: "Tagging", vocab: Vocab | None = None) -> Doc:
    """A document of the tagged sentence, with its labels, spans and doubt; `vocab` is that of a pipeline, if given.

    Where a task labels sentences or pairs, `doc.cats` has the probability of every label.
    """
    extensions.register()
    sentence = tagging.sentence
    doc = Doc(vocab or Vocab(), list(sentence.words), list(sentence.spaces or (True,) * len(sentence)))
    if tagging.unit is not Unit.WORD:
        doc.cats = tagging.distribution(0)
        return doc
    column = Column.of(doc, [Part(sentence, list(range(len(doc))))], [tagging])
    write(doc, [column] if column else [], spans_key=RECORD, overwrite=True)
    return doc
