"""Does an exported tagger give the same labels as crossfill's plug-in prediction?

    python benchmarks/export.py MODEL --text FILE --text FILE … --cell ner/fin [--encoder PATH] [--stock]

Tags the sentences of all files (one sentence a line or CoNLL-U, BIO) in one cell, with crossfill and with ONNX Runtime
over the exported graph, or with `--stock` with the exported transformers checkpoint, and counts words that agree.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from crossfill.data.segmentation import Segmenter
from crossfill.data.streams import format_of, read_items
from crossfill.encoders.pieces import PieceInputs
from crossfill.encoders.surface import surface_of
from crossfill.export.onnx import GRAPH, export_onnx
from crossfill.export.parts import take_apart
from crossfill.export.stock import export_stock
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.tagger.tagger import load


def run_onnx(
    session: onnxruntime.InferenceSession, inputs: PieceInputs, texts: list[Sentence], pad: int = 0
) -> np.ndarray:
    """The logits of all words from an exported graph, window by window."""
    reads_surface = any(one.name == "forms" for one in session.get_inputs())
    surface = [surface_of([text.words]) for text in texts if text.words] if reads_surface else []
    by_word = {name: np.concatenate([one[name][0] for one in surface]) for name in (surface[0] if surface else ())}
    first, last = inputs.first.numpy(), inputs.last.numpy()
    window_ends = inputs.pieces_per_window.cumsum(0).numpy()
    window_starts = window_ends - inputs.pieces_per_window.numpy()
    sentence_starts = (inputs.pieces_per_sentence.cumsum(0) - inputs.pieces_per_sentence).numpy()
    offsets = np.repeat(sentence_starts, inputs.lengths.numpy())
    places = np.where(first >= 0, first + offsets, -1)
    homes = np.searchsorted(window_ends, np.maximum(places, offsets), side="right")
    found: np.ndarray | None = None
    for window in np.unique(homes).tolist():
        words = np.flatnonzero(homes == window)
        start, end = int(window_starts[window]), int(window_ends[window])
        ids = inputs.ids[start:end].numpy()[None] if end > start else np.array([[pad]])
        ends = np.where(first[words] >= 0, last[words] + offsets[words] - start, -1)
        begins = np.where(first[words] >= 0, places[words] - start, -1)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        feed |= {"first_piece": begins[None], "last_piece": ends[None]}
        feed |= {name: values[words][None] for name, values in by_word.items()}
        logits = np.asarray(session.run(None, feed)[0])[0]
        if found is None:
            found = np.zeros((len(first), logits.shape[1]), dtype=logits.dtype)
        found[words] = logits
    return np.zeros((0, 0), dtype=np.float32) if found is None else found


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
            items = read_items(file, str(path), format_of(path, None), Segmenter(cell.language), "lines")
            sentences += [item.sentence for item in items][: arguments.sentences // len(arguments.text)]
    ours = [t.task.labels[i] for t in tagger.tag_many(sentences, cell, 0) for i in t.probabilities.argmax(-1).tolist()]
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
            export_onnx(tagger, cell, out)
            chosen = run_onnx(onnxruntime.InferenceSession(str(out / GRAPH)), inputs, sentences).argmax(-1).tolist()
    theirs = [parts.labels[i] for i in chosen]
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    report = {"benchmark": "export", "format": "stock" if arguments.stock else "onnx", "cell": str(cell)}
    report |= {"sentences": len(sentences), "words": len(ours), "agreement": same / len(ours), "labels": len(set(ours))}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
