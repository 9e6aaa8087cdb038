"""What spaCy costs: `nlp.pipe` against `tagger.tag_many` on the same tokens, interleaved in one run.

    python benchmarks/spacy_pipe.py [--model MODEL] [--sentences 500] [--repeats 5]

Without a model folder, a random BERT of 6 layers × 384, frozen, over the parallel corpus. Documents are made before.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path

import spacy
import torch
from models import random_bert
from spacy.tokens import Doc

import crossfill
from crossfill.config import Config
from crossfill.data.parallel_corpus import parallel_grid, parallel_sentences
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.integrations.spacy import component as component
from crossfill.tagger.tagger import Tagger

CELLS = ("ner/eng", "pos/eng")


def trained(folder: Path, layers: int, hidden: int) -> Path:
    """A model over a random encoder, trained for a few steps."""
    grid = parallel_grid().where(lambda cell: cell.language in ("eng", "rus"))
    text = Corpus.from_sentences(Sentence(s.words, (), s.spaces) for s in parallel_sentences("pos", "eng"))
    encoder = random_bert(folder / "encoder", text, layers, hidden, n_labels=2)
    settings = {"training.steps": 5, "training.validate_every": 5, "encoder.pretrained.mode": "frozen"}
    config = Config().change(settings | {"generator.hidden": [16], "latents.size": 8, "latents.rank": 2})
    return crossfill.train(grid, encoder=str(encoder), config=config, cache=False, expect=False).save(folder / "model")


def seconds(tagged: Iterable[object]) -> float:
    """Seconds of processor time to go through a stream, in one thread: other processes do not count."""
    started = time.process_time()
    for _ in tagged:
        pass
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=384)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    own = [Sentence(s.words, (), s.spaces) for s in parallel_sentences("pos", "eng")]
    # no sentence twice in a chunk: what is the same is encoded once
    sentences = [
        Sentence((*s.words, str(i)), (), (*s.spaces[:-1], True, False))
        for i, s in enumerate(islice(cycle(own), arguments.sentences))
    ]
    with tempfile.TemporaryDirectory() as scratch:
        model = arguments.model or str(trained(Path(scratch), arguments.layers, arguments.hidden))
        tagger: Tagger = crossfill.load(model)
        report = {"benchmark": "spacy_pipe", "words": sum(map(len, sentences))}
        for cells in (CELLS[:1], CELLS[1:]):
            nlp = spacy.blank("xx")
            nlp.add_pipe("crossfill", config={"model": model, "cells": list(cells)})
            nlp("Warm.")
            pairs = []
            for _ in range(arguments.repeats):
                docs = [Doc(nlp.vocab, list(s.words), list(s.spaces)) for s in sentences]
                plain = seconds(tagger.tag_many(sentences, cells[0]))
                piped = seconds(nlp.pipe(docs, batch_size=256))
                pairs.append((plain, piped))
            best = [min(column) for column in zip(*pairs, strict=True)]
            report[cells[0]] = {
                "tag_many_words_per_second": round(report["words"] / best[0]),
                "pipe_words_per_second": round(report["words"] / best[1]),
                "ratio": round(best[0] / best[1], 3),
                "ratios": sorted(round(plain / piped, 3) for plain, piped in pairs),
            }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
