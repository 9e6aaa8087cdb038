"""Tagging throughput against the transformers token-classification pipeline: same model, same text, one run.

    python benchmarks/tag.py [--sentences 300] [--layers 6] [--hidden 384] [--repeats 2]

The pipeline is timed at several batch sizes and its best one counts. Both sides go from text to a label per word, and
take turns. Time is the processor time of one thread, as cores are shared; `of_matrix_product` is the share of it that
a core needs for the network's products alone, at the speed of one large product: what is left to win.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch
from models import random_bert, text
from transformers import AutoModelForTokenClassification, AutoTokenizer, logging, pipeline

from crossfill.config import PretrainedConfig
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.model import Head
from crossfill.prediction.predict import Run, classify


def matrix_speed() -> float:
    """Operations per second of a large product of torch, on one thread."""
    a, b = torch.randn(512, 1024), torch.randn(1024, 1024)
    rounds = []
    for _ in range(20):
        started = time.process_time()
        a @ b
        rounds.append(time.process_time() - started)
    return 2 * 512 * 1024 * 1024 / min(rounds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    corpus = text(arguments.sentences)
    texts = [sentence.text for sentence in corpus]
    with tempfile.TemporaryDirectory() as scratch:
        folder = random_bert(Path(scratch), corpus, arguments.layers, arguments.hidden, n_labels=17)
        model = AutoModelForTokenClassification.from_pretrained(folder).eval()
        head = Head(torch.cat([model.classifier.weight, model.classifier.bias.unsqueeze(1)], 1).unsqueeze(0).detach())
        tagger = pipeline("token-classification", model=model, tokenizer=AutoTokenizer.from_pretrained(folder))
        words = WordEncoder(Source.find(str(folder)), PretrainedConfig()).eval()
        seconds: dict[int, float] = {}
        ours = float("inf")
        for _ in range(arguments.repeats):
            started = time.process_time()
            inputs = words.cutter.cut(corpus)
            labels = [classify([Run(vectors, head)]).labels for _, vectors in words.encode(inputs)]
            ours = min(ours, time.process_time() - started)
            for size in (1, 4, 8, 16, 32, 64):
                started = time.process_time()
                tagger(texts, batch_size=size)
                seconds[size] = min(seconds.get(size, float("inf")), time.process_time() - started)
    best = min(seconds, key=seconds.__getitem__)
    operations = 2 * 12 * arguments.layers * arguments.hidden**2 * len(inputs.ids)
    report = {
        "benchmark": "tag",
        "encoder": f"random BERT, {arguments.layers} × {arguments.hidden}",
        "words": sum(map(len, labels)),
        "words_per_second": round(corpus.n_words / ours),
        "pipeline_words_per_second": round(corpus.n_words / seconds[best]),
        "pipeline_batch_size": best,
        "speedup": round(seconds[best] / ours, 2),
        "of_matrix_product": round(operations / matrix_speed() / ours, 2),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
