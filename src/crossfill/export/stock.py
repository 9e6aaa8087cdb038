"""A stock `AutoModelForTokenClassification` checkpoint: loads in transformers with no crossfill installed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from crossfill.errors import ExportError
from crossfill.export.parts import Log, Parts, take_apart, write_surroundings
from crossfill.files import write_json
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.tagger.tagger import Tagger

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_PROBE = (("Dakar", "mooy", "péeyu", "Senegaal"), ("北京", "是", "首都"), ("القاهرة", "عاصمة", "مصر"))
_TOLERANCE = 1e-3
_USAGE = Path(__file__).with_name("stock.md")


def export_stock(tagger: Tagger, cell: Cell, out: Path, log: Log = lambda _stage: None) -> tuple[str, ...]:
    """Write the tagger of a cell as a stock checkpoint for token classification; returns what differs from it."""
    log("loading the encoder")
    parts = take_apart(tagger, cell, onnx=False)
    log("putting the checkpoint together")
    model = _assemble(parts)
    log("comparing its logits with the model's")
    _verify(parts, model)
    log(f"writing {out}")
    write_surroundings(parts, tagger, out, _USAGE.read_text(encoding="utf-8"))
    model.save_pretrained(out)
    path = out / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    write_json(path, {**settings, "split_special_tokens": True})  # special tokens are read as text
    return parts.notes


def _assemble(parts: Parts) -> "PreTrainedModel":
    from transformers import AutoModelForTokenClassification

    network = parts.words.network.network
    settings = type(network.config).from_dict(network.config.to_dict())
    settings.id2label = dict(enumerate(parts.labels))
    settings.label2id = {label: i for i, label in enumerate(parts.labels)}
    model = AutoModelForTokenClassification.from_config(settings, trust_remote_code=False, dtype=torch.float32)
    weights, base = network.state_dict(), getattr(model, model.base_model_prefix)
    wanted = base.state_dict()
    base.load_state_dict({name: tensor for name, tensor in weights.items() if name in wanted}, strict=False)
    heads = [m for m in (getattr(model, "classifier", None), getattr(model, "score", None)) if isinstance(m, nn.Linear)]
    if not heads or heads[0].weight.shape != parts.weight.shape or heads[0].bias is None:
        raise ExportError(f"{parts.cell}: {type(model).__name__} has no affine classifier; use --onnx")
    with torch.no_grad():
        for parameter, folded in zip((heads[0].weight, heads[0].bias), parts.on_states(), strict=True):
            parameter.copy_(folded)
    return model.eval()


@torch.inference_mode()
def _verify(parts: Parts, model: "PreTrainedModel") -> None:
    """Check that the checkpoint gives this model's logits: some classes add layers between encoder and head."""
    (weight, bias), gaps, scale = parts.on_states(), [0.0], 1.0
    for words in _PROBE:
        inputs = parts.words.cutter.cut(Corpus.from_sentences([Sentence(words)]))
        logits = model(input_ids=inputs.ids[None]).logits[0]
        expected = parts.words(inputs) @ weight.T + bias
        has_piece = inputs.first >= 0
        logits, expected = logits[inputs.first[has_piece]], expected[has_piece]
        if len(expected):
            gaps.append(float((logits - expected).abs().max()))
            scale = max(scale, float(expected.abs().max()))
    if (gap := max(gaps)) > _TOLERANCE * scale:
        raise ExportError(
            f"{parts.cell}: {type(model).__name__} does more than apply a head to the encoder's states "
            f"(logits differ by {gap:.3g}); use --onnx"
        )
