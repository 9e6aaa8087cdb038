"""How many words a second does bulk tagging take, with one worker and with two, on local processes and on Ray?

    python benchmarks/bulk.py [--sizes 2x128 6x384 12x384] [--words 20000] [--executors local ray] [--out FILE]

A joint model over a frozen BERT with random weights tags artificial text; commands take turns, and the fastest of each
kind counts. `words_per_second` is from the first shard's start to the last one's end, so that loading a model, which
takes as long for one worker as for two, is left out; `word_seconds` is processor time, which other work on the machine
changes little. One JSON line; `--out` keeps it for benchmarks/scale_bulk.py.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from models import random_bert, text
from speed import machine_speed

import crossfill
from crossfill.config import PretrainedConfig
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence

FILE_KILOBYTES = 20


def make_model(folder: Path, corpus: Corpus, layers: int, hidden: int) -> tuple[Path, float]:
    """A model over a frozen random BERT, trained for a moment, and its pieces per word."""
    encoder = random_bert(folder / "encoder", corpus, layers, hidden, n_labels=2)
    some = Corpus.from_sentences(Sentence(s.words, ("NOUN",) * len(s), s.spaces) for s in corpus[:8])
    grid = Grid({Cell("pos", "wol"): (Splits("made", some, some, some),)})
    changes = {"training.steps": 1, "training.validate_every": 1, "encoder.pretrained.mode": "frozen"}
    config = crossfill.Config().change({**changes, "encoder.pretrained.max_pieces": 128})
    crossfill.train(grid, "jm", str(encoder), folder / "model", config, cache=False)
    words = WordEncoder(Source.find(str(encoder)), PretrainedConfig())
    return folder / "model", len(words.cutter.cut(corpus).ids) / corpus.n_words


def measure(model: Path, source: Path, out: Path, executor: str, jobs: int) -> dict[str, float]:
    """What the records of a run tell of its speed."""
    given = [
        "--quiet",
        "predict-files",
        str(model),
        str(source),
        "--from",
        "words",
        "--cell",
        "pos/wol",
        "--samples",
        "0",
    ]
    given += ["--executor", executor, "--jobs", str(jobs), "--out", str(out)]
    started = time.time()
    subprocess.run([sys.executable, "-m", "crossfill", *given], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    seconds = time.time() - started
    records = [(path.stat().st_mtime, json.loads(path.read_text())) for path in (out / "records").iterdir()]
    total = {name: sum(record[name] for _, record in records) for name in ("words", "bytes", "cpu_seconds")}
    begun = sorted((then - record["seconds"], record) for then, record in records)
    loading = {id(record) for _, record in begun[:jobs]}  # a worker's first shard loads the model
    warm = [record for _, record in records if id(record) not in loading]
    span = max(then for then, _ in records) - begun[jobs][0]
    return {
        "command_seconds": round(seconds, 1),
        "words_per_second": round(sum(record["words"] for record in warm) / span, 1),
        "word_seconds": sum(r["cpu_seconds"] for r in warm) / sum(r["words"] for r in warm),
        "bytes_per_word": round(total["bytes"] / total["words"], 1),
        "shards": len(records),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["2x128", "6x384", "12x384"], help="layers x width")
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--executors", nargs="+", choices=["local", "ray"], default=["local"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    corpus, points = text(600), []
    lines = [" ".join(sentence.words) + "\n" for sentence in corpus]
    for size in arguments.sizes:
        layers, hidden = map(int, size.split("x"))
        best: dict[tuple[str, int], dict[str, float]] = {}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            model, pieces = make_model(folder, corpus, layers, hidden)
            source = folder / "in"
            source.mkdir()
            made = lines * -(-arguments.words // corpus.n_words)
            step = max(1, len(made) * 1000 * FILE_KILOBYTES // len("".join(made).encode()))
            for start in range(0, len(made), step):
                part = "".join(made[start : start + step])
                (source / f"{start:08}.txt").write_text(part, encoding="utf-8")
            for turn in range(arguments.rounds):
                for executor in arguments.executors:
                    for jobs in (1, 2):
                        found = measure(model, source, folder / f"{executor}{jobs}{turn}", executor, jobs)
                        known = best.setdefault((executor, jobs), found)
                        if found["words_per_second"] > known["words_per_second"]:
                            best[executor, jobs] = found
        shared = {"layers": layers, "hidden": hidden, "pieces_per_word": round(pieces, 3)}
        points += [{**shared, "executor": e, "workers": n, **found} for (e, n), found in best.items()]
    report = {"benchmark": "bulk", "load": round(os.getloadavg()[0], 1), "operations_per_second": machine_speed()}
    report |= {"cores": os.cpu_count(), "points": points}
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
