"""How close does encoding come to the bare forward pass on the same pieces, what is padding, and what does int8 bring?

    python benchmarks/encode.py [--encoder FOLDER] [--sentences 1200] [--threads 1]

Without --encoder: a random BERT of 6 layers and 384 features. End to end means from words and spaces to float16 word
vectors on disk; bare means the network's forward pass alone, on the same batches, made beforehand.
"""

import argparse
import copy
import json
import tempfile
import time
from pathlib import Path

import torch
from models import random_bert, text

from crossfill.config import EncoderConfig, PretrainedConfig
from crossfill.encoders.frozen import StoredVectors
from crossfill.encoders.huggingface import PIECE_BUDGET, Source, WordEncoder, quantise
from crossfill.encoders.pieces import batches


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", default="")
    parser.add_argument("--sentences", type=int, default=1200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    corpus = text(arguments.sentences)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.encoder or str(
            random_bert(Path(scratch) / "bert", corpus, layers=6, hidden=384, n_labels=17)
        )
        config = PretrainedConfig(mode="frozen", pooling="last")
        words = WordEncoder(Source.find(folder), config).eval()
        inputs = words.cutter.cut(corpus)
        made = list(batches(inputs, PIECE_BUDGET, words.pad))
        padded = sum(batch.mask.numel() for batch in made)
        eight_bits = copy.deepcopy(words)
        quantise(eight_bits.network.layers)
        end_to_end, bare, in_int8 = [], [], []
        for i in range(arguments.repeats):
            stored = StoredVectors(EncoderConfig(name=folder, pretrained=config), Path(scratch) / f"cache{i}")
            stored.network = words  # loading the weights is not timed
            started = time.perf_counter()
            stored.of(corpus)
            end_to_end.append(time.perf_counter() - started)
            stored = StoredVectors(EncoderConfig(name=folder, pretrained=config), Path(scratch) / f"int8-{i}")
            stored.network = eight_bits
            started = time.perf_counter()
            stored.of(corpus)
            in_int8.append(time.perf_counter() - started)
            started = time.perf_counter()
            with torch.inference_mode():
                for batch in made:
                    mask = None if bool(batch.mask.all()) else batch.mask
                    words.network.network(input_ids=batch.ids, attention_mask=mask)
            bare.append(time.perf_counter() - started)
    report = {
        "benchmark": "encode",
        "encoder": Path(arguments.encoder).name or "random BERT, 6 × 384",
        "pieces": len(inputs.ids),
        "pieces_per_second": round(len(inputs.ids) / min(end_to_end)),
        "bare_pieces_per_second": round(len(inputs.ids) / min(bare)),
        "share_of_bare": round(min(bare) / min(end_to_end), 3),
        "int8_ratio": round(min(end_to_end) / min(in_int8), 2),
        "padding": round(1 - len(inputs.ids) / padded, 3),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
