"""Tagging throughput against the transformers token-classification pipeline: same model, same text, one run.

    python benchmarks/tag.py [--data FOLDER] [--sentences 300] [--layers 6] [--hidden 384] [--repeats 2]

The pipeline is timed at several batch sizes and its best one counts. Both sides go from text to a label per word, and
take turns. Time is the processor time of one thread, as cores are shared. `limit` is the speedup of a tagger that does
nothing but the network's matrix products, without padding and at the speed of one large product. Text is artificial,
with sentences of 3 to 19 words, or drawn from the corpora of a data folder, with lengths as people write them.
"""

import argparse
import json
import random
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch
from models import random_bert, text
from transformers import AutoModelForTokenClassification, AutoTokenizer, logging, pipeline

from crossfill import Corpus, load_grid
from crossfill.config import PretrainedConfig
from crossfill.encoders.huggingface import Source, WordEncoder
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
    """Seconds for an operation within a large product of torch, on one thread."""
    a, b = torch.randn(512, 1024), torch.randn(1024, 1024)
    rounds = []
    for _ in range(20):
        started = time.process_time()
        a @ b
        rounds.append(time.process_time() - started)
    return min(rounds) / (2 * 512 * 1024 * 1024)


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
        seconds: dict[int, float] = {}
        ours = cutting = speed = float("inf")
        for _ in range(arguments.repeats):
            started = time.process_time()
            inputs = words.cutter.cut(corpus)
            cut = time.process_time() - started
            labels = [classify([CellWords(vectors, head)]).labels for _, vectors in words.encode(inputs)]
            ours, cutting = min(ours, time.process_time() - started), min(cutting, cut)
            speed = min(speed, product_seconds())
            for size in (1, 4, 8, 16, 32, 64):
                started = time.process_time()
                tagger(texts, batch_size=size)
                seconds[size] = min(seconds.get(size, float("inf")), time.process_time() - started)
    best = min(seconds, key=seconds.__getitem__)
    products = speed * 2 * 12 * arguments.layers * arguments.hidden**2 * len(inputs.ids)
    report = {
        "benchmark": "tag",
        "encoder": f"random BERT, {arguments.layers} × {arguments.hidden}",
        "words": sum(map(len, labels)),
        "words_per_second": round(corpus.n_words / ours),
        "pipeline_words_per_second": round(corpus.n_words / seconds[best]),
        "pipeline_batch_size": best,
        "speedup": round(seconds[best] / ours, 2),
        "limit": round(seconds[best] / products, 2),
        "seconds": {"ours": round(ours, 3), "cutting": round(cutting, 3), "products": round(products, 3)},
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
