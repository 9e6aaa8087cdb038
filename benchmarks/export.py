"""Whether an exported tagger gives the labels that crossfill's plug-in prediction gives.

    python benchmarks/export.py MODEL --text FILE --text FILE … --cell ner/fin [--encoder PATH] [--stock]

Tags the sentences of all files (one sentence a line or CoNLL-U, BIO) in one cell, with crossfill and with ONNX Runtime
over the exported graph, or with `--stock` with the exported transformers checkpoint, and counts words that agree.
"""

import argparse
import json
import tempfile
from pathlib import Path

import torch

from crossfill.data.streams import format_of, read_items
from crossfill.export.onnx import GRAPH, export_onnx, run_onnx
from crossfill.export.parts import take_apart
from crossfill.export.stock import export_stock
from crossfill.grid.sentence import Corpus
from crossfill.tagger.tagger import load


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", type=Path, action="append", required=True)
    parser.add_argument("--cell", required=True)
    parser.add_argument("--encoder")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--stock", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tagger = load(arguments.model, arguments.encoder)
    cell = tagger.cell(arguments.cell)
    sentences = []
    for path in arguments.text:
        with path.open("rb") as file:
            items = read_items(file, str(path), format_of(path, None), cell.language, "lines")
            sentences += [item.sentence for item in items][: arguments.sentences // len(arguments.text)]
    ours = [t.label_names[i] for t in tagger.tag_many(sentences, cell, 0) for i in t.probabilities.argmax(-1).tolist()]
    parts = take_apart(tagger, cell)
    inputs = parts.words.cutter.cut(Corpus.from_sentences(sentences))
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        if arguments.stock:
            from transformers import AutoModelForTokenClassification

            export_stock(tagger, cell, out)
            model = AutoModelForTokenClassification.from_pretrained(out).eval()
            found, places = [], []
            with torch.inference_mode():
                for batch in parts.words.batches(inputs):
                    logits = model(input_ids=batch.ids, attention_mask=batch.mask).logits
                    found.append(logits[batch.mask.bool()])
                    places.append(batch.pieces)
            pieces = torch.cat(found)[torch.cat(places).argsort()]
            chosen = pieces[inputs.word_pieces()[0]].argmax(-1).tolist()
        else:
            import onnxruntime

            export_onnx(tagger, cell, out)
            chosen = run_onnx(onnxruntime.InferenceSession(str(out / GRAPH)), inputs).argmax(-1).tolist()
    theirs = [parts.labels[i] for i in chosen]
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    report = {"benchmark": "export", "format": "stock" if arguments.stock else "onnx", "cell": str(cell)}
    report |= {"sentences": len(sentences), "words": len(ours), "agreement": same / len(ours), "labels": len(set(ours))}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
