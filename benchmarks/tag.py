"""Tagging throughput against the transformers token-classification pipeline: same model, same text, one run.

    python benchmarks/tag.py [--sentences 300] [--layers 6] [--hidden 384] [--threads 1]

The pipeline is timed at several batch sizes and its best one counts. Both sides go from text to a label per word.
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
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
            started = time.perf_counter()
            inputs = words.cutter.cut(corpus)
            labels = [classify([Run(vectors, head)]).labels for _, vectors in words.encode(inputs)]
            ours = min(ours, time.perf_counter() - started)
            for size in (1, 4, 8, 16, 32, 64):
                started = time.perf_counter()
                tagger(texts, batch_size=size)
                seconds[size] = min(seconds.get(size, float("inf")), time.perf_counter() - started)
    best = min(seconds, key=seconds.__getitem__)
    report = {
        "benchmark": "tag",
        "encoder": f"random BERT, {arguments.layers} × {arguments.hidden}",
        "words": sum(map(len, labels)),
        "words_per_second": round(corpus.n_words / ours),
        "pipeline_words_per_second": round(corpus.n_words / seconds[best]),
        "pipeline_batch_size": best,
        "speedup": round(seconds[best] / ours, 2),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
