"""What averaging costs end to end, and whether memory stays flat on long input.

    python benchmarks/predict.py [--model MODEL --encoder PATH --cell ner/fin --text FILE] [--sentences 2000]

Without a model, a random BERT (6 × 384) with untrained heads of a pf-lr model tags artificial sentences. Plug-in and
averaged prediction of the same sentences alternate; the ratio is of CPU time, which depends little on other load on the
machine. Memory is the peak of two separate processes that tag 1,000 and 100,000 short sentences from a generator with
a small random BERT.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

import torch
from models import random_bert, text

from crossfill.config import Config
from crossfill.data.streams import format_of, read_items
from crossfill.encoders.base import build_encoder
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.registry import build_model
from crossfill.settings import parse_assignments
from crossfill.tagger.tagger import Tagger, load

LABELS = {"ner": ("B-LOC", "B-PER", "I-LOC", "I-PER", "O"), "pos": tuple(f"P{i:02}" for i in range(17))}


def random_tagger(folder: Path, layers: int, hidden: int, n_words: int) -> Tagger:
    random_bert(folder, text(n_words), layers, hidden, n_labels=2)
    settings = [f"encoder.name={folder}", "encoder.pretrained.mode=frozen", "encoder.pretrained.centring=mean"]
    config = Config().change(
        {**parse_assignments(settings), "latents.size": 8, "latents.rank": 2, "generator.hidden": [64]}
    )
    inventory, cells = Inventory.of(LABELS, ("fin", "wol")), [Cell("ner", "fin"), Cell("pos", "fin")]
    return Tagger(
        build_model(config, inventory, cells, build_encoder(config, inventory.languages, cache=False)), config
    )


def seconds(tagger: Tagger, sentences: list, cell: str, samples: int) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    n = sum(1 for _ in tagger.tag_many(sentences, cell, samples))
    assert n == len(sentences)
    return time.perf_counter() - wall, time.process_time() - processor


def peak_megabytes(n_sentences: int) -> float:
    """Tag `n_sentences` in this process; returns its peak memory."""
    with tempfile.TemporaryDirectory() as scratch:
        tagger = random_tagger(Path(scratch), layers=1, hidden=64, n_words=300)
        pool = [sentence.words[:6] for sentence in text(300)]
        for _ in tagger.tag_many(islice(cycle(pool), n_sentences), "ner/fin", samples=10):
            pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--encoder")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--cell", default="pos/fin")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--memory", type=int, nargs="*", default=[1000, 100_000])
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.peak:
        print(peak_megabytes(arguments.peak))
        return
    report: dict[str, object] = {"benchmark": "predict", "sentences": arguments.sentences, "samples": arguments.samples}
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.model:
            tagger = load(arguments.model, arguments.encoder)
            with arguments.text.open("rb") as file:
                language = tagger.cell(arguments.cell).language
                items = read_items(
                    file, str(arguments.text), format_of(arguments.text, None), Segmenter(language), "lines"
                )
                found = [item.sentence for item in items]
            sentences = list(islice(cycle(found), arguments.sentences))
        else:
            tagger = random_tagger(Path(scratch), layers=6, hidden=384, n_words=arguments.sentences)
            sentences = list(text(arguments.sentences))
        seconds(tagger, sentences[:64], arguments.cell, arguments.samples)  # warm up: loads what is loaded lazily
        best: dict[int, tuple[float, float]] = {}
        for _ in range(arguments.repeats):
            for samples in (0, arguments.samples):
                took = seconds(tagger, sentences, arguments.cell, samples)
                best[samples] = min(best.get(samples, took), took, key=lambda pair: pair[1])
    plug_in, averaged = best[0], best[arguments.samples]
    report |= {"words": sum(map(len, sentences)), "plug_in_seconds": round(plug_in[0], 1)}
    report |= {"ratio": round(averaged[1] / plug_in[1], 3), "wall_ratio": round(averaged[0] / plug_in[0], 3)}
    peaks = {}
    for n in arguments.memory:
        run = subprocess.run([sys.executable, __file__, "--peak", str(n)], capture_output=True, check=True)
        peaks[n] = round(float(run.stdout))
    report["peak_megabytes"] = peaks
    print(json.dumps(report))


if __name__ == "__main__":
    main()
