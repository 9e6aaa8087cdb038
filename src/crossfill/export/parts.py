"""The parts of an exported tagger: a network, a head with centring folded in, labels, and a model card."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from crossfill.adaptation.cell import adapt_cell
from crossfill.adaptation.heads import generated_prior, without_adapted
from crossfill.encoders import hub
from crossfill.encoders.huggingface import WordEncoder
from crossfill.errors import ExportError
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell
from crossfill.grid.task import Unit
from crossfill.model import Classifier, Head
from crossfill.tagger.tagger import Tagger
from crossfill.tagger.training_run import export_obstacles

Log = Callable[[str], None]
"""Called with each stage of an export as it begins."""


@dataclass(frozen=True)
class Parts:
    """The tagger of a cell: logits = W s + b, with s the states of one layer, pooled."""

    cell: Cell
    words: WordEncoder
    folder: Path
    """The folder of the encoder's settings and tokenizer."""
    weight: Float[Tensor, "labels states"]
    bias: Float[Tensor, "labels"]
    labels: tuple[str, ...]
    unit: Unit = Unit.WORD
    query: Float[Tensor, "features"] | None = None
    """What attention looks for in the states of the encoder."""


@torch.inference_mode()
def take_apart(tagger: Tagger, cell: Cell, onnx: bool = True) -> Parts:
    """Take the tagger of a cell apart, posterior means plugged in; ExportError with all that a format cannot carry.

    A frozen encoder's centring x = (v − m) / s is affine: W and b include it.
    """
    encoder, unit = without_adapted(tagger.model).encoder, tagger.model.inventory.task(cell.task).unit
    obstacles = export_obstacles(tagger.config, encoder, onnx)
    if unit is Unit.PAIR:
        obstacles.append("it labels pairs, and its head reads |u − v| and u ⊙ v (serve it with crossfill serve)")
    elif unit is Unit.SENTENCE and not onnx:
        obstacles.append("it labels sentences (--onnx)")
    head = _affine_head(tagger, cell) if tagger.model.heads.vote is None else None
    if not isinstance(head, Head) or head.n_samples != 1:
        obstacles.append(f"method {tagger.config.method} has several heads, or another kind than an affine one")
    if obstacles or encoder.source is None or not isinstance(head, Head):
        kind = "an ONNX graph" if onnx else "a transformers token-classification checkpoint"
        raise ExportError(f"{cell}: {kind} cannot carry this model: {'; '.join(obstacles)}")
    weight, bias = head.parameters[0, :, :-1].float(), head.parameters[0, :, -1].float()
    if encoder.query is not None:  # read as one more row of the head, what it reads of the encoder's states is the same
        weight, bias = torch.cat([weight, encoder.query.detach().float()[None]]), functional.pad(bias, (0, 1))
    words, weight, bias = encoder.on_states(weight, bias, cell.language)
    labels = tagger.model.inventory.task(cell.task).labels
    query = None if encoder.query is None else weight[-1]  # its constant cancels in the softmax
    weight, bias = weight[: len(labels)], bias[: len(labels)]
    return Parts(cell, words, encoder.source.folder, weight, bias, labels, unit, query)


def _affine_head(tagger: Tagger, cell: Cell) -> Classifier:
    """Return the head at the posterior means; that of an adapted cell is fitted again without cues."""
    adapted = tagger.adapted.get(cell)
    if adapted is None:
        return tagger.model.heads.plug_in([cell])[0]
    prior, variances = generated_prior(tagger.model, cell), adapted.variances.without_cues()
    plain = adapt_cell(
        prior, adapted.examples, cell, adapted.task, variances=variances, calibration=adapted.calibration
    )
    return Head(plain.posterior.mean.unsqueeze(0).to(next(tagger.model.heads.parameters())))


def write_surroundings(parts: Parts, tagger: Tagger, out: Path, usage: str) -> None:
    """Write the encoder's settings and tokenizer, and a model card."""
    out.mkdir(parents=True, exist_ok=True)
    hub.carry(parts.folder, out, weights=False)
    seen = "trained on data of this cell" if parts.cell in tagger.seen else "zero-shot: it had no data of this cell"
    measured = "\n".join(
        f"- {r.corpus}: score {100 * r.score:.1f}, NLL {r.plug_in['nll']:.3f}, ECE {r.plug_in['ece']:.3f}"
        for r in tagger.results
        if r.cell == parts.cell
    )
    what = "token" if parts.unit is Unit.WORD else "text"
    card = (
        f"---\npipeline_tag: {what}-classification\nlanguage:\n- {parts.cell.language}\n---\n\n"
        f"# {parts.cell.task} in {parts.cell.language}\n\nA {what} classifier exported from a crossfill model "
        f"(method `{tagger.config.method}`, posterior means plugged in); {seen}. Averaged prediction, and with it the "
        f"model's doubt about its own parameters, needs crossfill itself.\n\n{usage.strip()}\n\n"
        f"## Scores\n\n{measured or 'Not measured.'}\n\nLabels: {', '.join(parts.labels)}\n"
    )
    write_atomically(out / "README.md", card.encode())
