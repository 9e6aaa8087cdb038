"""Relations agree with heads."""

from dataclasses import replace

import numpy as np

from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task
from crossfill.tagger.render import relation_to
from tests.integrations.taggings import tagging


def test_only_roots_have_no_head():
    made = replace(
        tagging(Sentence(("a", "b")), "pos/wol", ["NOUN", "VERB"]),
        cell=Cell.parse("deprel/wol"),
        labels=("root", "obj"),
        task=Task("deprel", ("nsubj", "obj", "root")),
        probabilities=np.array([[0.1, 0.3, 0.6], [0.2, 0.7, 0.1]]),
    )
    assert [relation_to(head, made, word) for word in (0, 1) for head in ("0", "2")] == ["root", "obj", "root", "obj"]
    without = replace(made, task=Task("deprel", ("nsubj", "obj", "dep")), labels=("dep", "obj"))
    assert [relation_to("0", without, word) for word in (0, 1)] == ["dep", "obj"]
