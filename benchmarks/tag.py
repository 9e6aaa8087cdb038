"""Tagging throughput against the transformers token-classification pipeline: same model, same text, one run.

    python benchmarks/tag.py [--data FOLDER] [--sentences 300] [--layers 6] [--hidden 384] [--repeats 2]

The pipeline is timed at several batch sizes and its best one counts. Both sides go from text to a label per word, and
take turns. `int8` is ours with affine layers in eight bits, `short` both sides with a sentence at a time. Time is the
processor time of one thread, as cores are shared. `limit` is the speedup of a tagger that does
nothing but the network's matrix products, without padding and at the speed of one large product. Text is artificial,
with sentences of 3 to 19 words, or drawn from the corpora of a data folder, with lengths as people write them.
"""

import argparse
import copy
import json
import random
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch
from models import random_bert, text
from torch.nn import functional
from transformers import AutoModelForTokenClassification, AutoTokenizer, logging, pipeline

from crossfill import Corpus, load_grid
from crossfill.config import PretrainedConfig
from crossfill.encoders.huggingface import Source, WordEncoder, _affine_layers, quantise
from crossfill.model import Head
from crossfill.prediction.predict import CellWords, classify


def real_text(folder: Path, n_sentences: int) -> Corpus:
    """As many sentences of each language, in random order."""
    grid = load_grid(folder)
    corpora = {cell.language: grid.training(cell) for cell in grid.cells}
    each = -(-n_sentences // len(corpora))
    sentences = [sentence for corpus in corpora.values() for sentence in islice(corpus, each)]
    random.Random(0).shuffle(sentences)
    return Corpus.from_text(sentences[:n_sentences])


def product_seconds() -> float:
    """Seconds for an operation within a large product, as encoders compute it, on one thread."""
    a, b = torch.randn(512, 1024), torch.randn(1024, 1024)
    with torch.inference_mode(), _affine_layers(torch.ones(1, 512, dtype=torch.long)):
        seconds = [seconds_of(lambda: functional.linear(a, b)) for _ in range(20)]
    return min(seconds) / (2 * 512 * 1024 * 1024)


def seconds_of(tag: Callable[[], object]) -> float:
    """Processor time of one thread."""
    started = time.process_time()
    tag()
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    corpus = text(arguments.sentences) if arguments.data is None else real_text(arguments.data, arguments.sentences)
    texts = [sentence.text for sentence in corpus]
    with tempfile.TemporaryDirectory() as scratch:
        folder = random_bert(Path(scratch), corpus, arguments.layers, arguments.hidden, n_labels=17)
        model = AutoModelForTokenClassification.from_pretrained(folder).eval()
        head = Head(torch.cat([model.classifier.weight, model.classifier.bias.unsqueeze(1)], 1).unsqueeze(0).detach())
        tagger = pipeline("token-classification", model=model, tokenizer=AutoTokenizer.from_pretrained(folder))
        words = WordEncoder(Source.find(str(folder)), PretrainedConfig()).eval()
        eight_bits = copy.deepcopy(words)
        quantise(eight_bits.network.layers)
        inputs, few = words.cutter.cut(corpus), [corpus[i : i + 1] for i in range(min(100, len(corpus)))]

        def tag(encoder: WordEncoder, corpus: Corpus) -> int:
            vectors = encoder.encode(encoder.cutter.cut(corpus))
            return sum(len(classify([CellWords(part, head)]).labels) for _, part in vectors)

        contestants = {
            "ours": lambda: tag(words, corpus),
            "int8": lambda: tag(eight_bits, corpus),
            "short": lambda: [tag(words, one) for one in few],
            "pipeline_short": lambda: [tagger(text) for text in texts[: len(few)]],
            "cutting": lambda: words.cutter.cut(corpus),
            **{size: (lambda size=size: tagger(texts, batch_size=size)) for size in (1, 4, 8, 16, 32, 64)},
        }
        took = {name: float("inf") for name in contestants}
        speed = float("inf")
        for _ in range(arguments.repeats):
            took = {name: min(took[name], seconds_of(contestant)) for name, contestant in contestants.items()}
            speed = min(speed, product_seconds())
    best = min((name for name in took if isinstance(name, int)), key=took.__getitem__)
    products = speed * 2 * 12 * arguments.layers * arguments.hidden**2 * len(inputs.ids)
    report = {
        "benchmark": "tag",
        "encoder": f"random BERT, {arguments.layers} × {arguments.hidden}",
        "words": corpus.n_words,
        "words_per_second": round(corpus.n_words / took["ours"]),
        "pipeline_words_per_second": round(corpus.n_words / took[best]),
        "pipeline_batch_size": best,
        "speedup": round(took[best] / took["ours"], 2),
        "int8_speedup": round(took[best] / took["int8"], 2),
        "short_speedup": round(took["pipeline_short"] / took["short"], 2),
        "limit": round(took[best] / products, 2),
        "seconds": {"products": round(products, 3)} | {str(name): round(value, 3) for name, value in took.items()},
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
