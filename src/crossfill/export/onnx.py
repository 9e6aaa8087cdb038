"""ONNX: pieces in, one row of logits per word out; layer choice, pooling and head are all in the graph."""

import inspect
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from crossfill.encoders import surface
from crossfill.encoders.pieces import reading_all_as_text
from crossfill.errors import ExportError, missing_package
from crossfill.export.parts import Log, Parts, take_apart, write_surroundings
from crossfill.files import write_atomically, write_json
from crossfill.grid.cells import Cell
from crossfill.grid.task import Unit
from crossfill.tagger.tagger import Tagger

GRAPH = "model.onnx"
_INPUTS = ("input_ids", "attention_mask", "first_piece", "last_piece", "forms", "buckets")
_USAGE, _OF_SENTENCES = (Path(__file__).with_name(name) for name in ("onnx.md", "onnx_sentences.md"))
_SURFACE_INPUTS = (
    " Two more, `forms` (sentences × words × numbers, float32) and `buckets`, say how a word is written: `surface.py` "
    "makes them with NumPy alone."
)


class TaggingGraph(nn.Module):
    """The network, the vectors of words or sentences, hidden layers and the head, as one module over tensors."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.network, self.surface, self.hidden = parts.words.network.network, parts.encoder.surface, parts.hidden
        self.unit, self.pooling = parts.unit, parts.words.config.pooling
        self.layer = None if parts.words.layer == parts.words.network.n_layers else parts.words.layer
        self.query = None if parts.query is None else nn.Parameter(parts.query, requires_grad=False)
        fixed = (parts.encoder.mean, parts.encoder.scale, parts.weight, parts.bias)
        self.mean, self.scale, self.weight, self.bias = (nn.Parameter(one, requires_grad=False) for one in fixed)

    def forward(
        self,
        input_ids: Int[Tensor, "sentences pieces"],
        attention_mask: Int[Tensor, "sentences pieces"],
        first_piece: Int[Tensor, "sentences words"],
        last_piece: Int[Tensor, "sentences words"],
        forms: Float[Tensor, "sentences words forms"] | None = None,
        buckets: Int[Tensor, "sentences words"] | None = None,
    ) -> Float[Tensor, "sentences words labels"] | Float[Tensor, "sentences labels"]:
        """Compute the logits of each word, or of each sentence."""
        every = self.layer is not None
        outputs = self.network(input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=every)
        states = outputs.last_hidden_state if self.layer is None else outputs.hidden_states[self.layer]
        # pooling weight of each piece in each word: sentences × words × pieces
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        first, last = first_piece.unsqueeze(-1), last_piece.unsqueeze(-1)
        if self.pooling == "mean":
            inside = ((places >= first) & (places <= last) & (first >= 0)).to(states.dtype)
            shares = inside / inside.sum(-1, keepdim=True).clamp(min=1.0)
        else:
            shares = (places == (first if self.pooling == "first" else last)).to(states.dtype)
        vectors = (shares @ states - self.mean) / self.scale
        if self.surface is not None and forms is not None and buckets is not None:
            flat, places = forms.flatten(0, 1), buckets.flatten()
            vectors = torch.cat([vectors, self.surface(flat, places, 0 * places).reshape(*buckets.shape, -1)], -1)
        if self.unit is Unit.SENTENCE:
            # share of each word in its sentence
            inside = first_piece >= -1
            weights = (inside / inside.sum(-1, keepdim=True).clamp(min=1)).to(states.dtype)
            if self.query is not None:
                weights = (vectors @ self.query).masked_fill(~inside, -torch.inf).softmax(-1).nan_to_num()
            vectors = (weights.unsqueeze(1) @ vectors).squeeze(1)
        return functional.linear(self.hidden(vectors), self.weight, self.bias)


def export_onnx(tagger: Tagger, cell: Cell, out: Path, log: Log = lambda _stage: None) -> tuple[str, ...]:
    """Write the tagger of a cell as an ONNX graph with the encoder's tokenizer; returns what differs from it."""
    try:
        import onnxscript as _  # noqa: F401
    except ImportError:
        raise ExportError(missing_package("onnxscript and onnxruntime", "onnx")) from None
    log("loading the encoder")
    parts = take_apart(tagger, cell)
    has_surface = parts.encoder.surface is not None
    usage = _USAGE.read_text(encoding="utf-8").format(
        most=parts.words.config.max_pieces,
        inputs=_SURFACE_INPUTS if has_surface else "",
        imported="from surface import surface_of\n" if has_surface else "",
        fed="feed |= surface_of([words])\n" if has_surface else "",
    )
    if parts.unit is Unit.SENTENCE:
        usage += "\n" + _OF_SENTENCES.read_text(encoding="utf-8").format(
            weighted=", weighted by attention" if parts.query is not None else ""
        )
    write_surroundings(parts, tagger, out, usage)
    settings = json.loads((out / "config.json").read_text(encoding="utf-8"))
    settings |= {"id2label": dict(enumerate(parts.labels)), "label2id": {v: i for i, v in enumerate(parts.labels)}}
    write_json(out / "config.json", settings)
    write_atomically(out / "tokenizer.json", reading_all_as_text(parts.words.cutter.tokenizer).to_str().encode())
    graph = TaggingGraph(parts).eval()
    ids = torch.ones(2, 7, dtype=torch.long)
    example = (ids, torch.ones_like(ids), torch.tensor([[1, 2, 4]] * 2), torch.tensor([[1, 3, 5]] * 2))
    if has_surface:
        write_atomically(out / "surface.py", _surface_script().encode())
        example = (*example, *map(torch.from_numpy, surface.surface_of([("a", "B", "c")] * 2).values()))
    sentences, pieces, words = (torch.export.Dim(name, min=1) for name in ("sentences", "pieces", "words"))
    by_piece, by_word = {0: sentences, 1: pieces}, {0: sentences, 1: words}
    log(f"tracing the graph, and writing {out / GRAPH}")
    with _quiet(), torch.no_grad():
        torch.onnx.export(
            graph,
            example,
            out / GRAPH,
            input_names=_INPUTS[: len(example)],
            output_names=["logits"],
            dynamic_shapes=(by_piece, by_piece, *[by_word] * (len(example) - 2)),
            dynamo=True,
            external_data=True,
            verbose=False,
        )
    return parts.notes


def _surface_script() -> str:
    """Write the functions that make the inputs `forms` and `buckets` as a module that needs NumPy alone."""
    head = (
        '"""How words are written, as the graph takes it: surface_of([["Dakar", "mooy"]])."""\n\nimport unicodedata\n'
        "import zlib\nfrom collections.abc import Sequence\nfrom functools import lru_cache\n\nimport numpy as np\n\n"
        f"BUCKETS = {surface.BUCKETS}\nFORM = {surface.FORM}\nPLACE = {surface.PLACE}\n"
    )
    functions = map(inspect.getsource, (surface.surface_of, surface.with_places, surface.bucket, surface.form))
    return "\n\n".join([head, *functions])


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's warnings about its internals."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)
