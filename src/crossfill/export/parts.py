"""The parts of an exported tagger: a network, how its states are centred, a head, labels, and a model card."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossfill.adaptation.cell import adapt_cell
from crossfill.adaptation.heads import generated_prior
from crossfill.encoders import hub
from crossfill.encoders.base import EncoderParts
from crossfill.encoders.huggingface import WordEncoder
from crossfill.errors import ExportError
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell
from crossfill.grid.task import TaskKind, Unit
from crossfill.model import Classifier, Head
from crossfill.tagger.tagger import Tagger
from crossfill.tagger.training_run import export_obstacles

Log = Callable[[str], None]
"""Called with each stage of an export as it begins."""


@dataclass(frozen=True)
class Parts:
    """The tagger of a cell: logits = W x + b, with x what hidden layers make of the encoder's vectors."""

    cell: Cell
    encoder: EncoderParts
    hidden: nn.Module
    weight: Float[Tensor, "labels width"]
    bias: Float[Tensor, "labels"]
    labels: tuple[str, ...]
    unit: Unit
    query: Float[Tensor, "features"] | None
    """What attention looks for in a sentence."""
    folder: Path
    """The folder of the encoder's settings and tokenizer."""
    notes: tuple[str, ...]
    """What differs from the model."""

    @property
    def words(self) -> WordEncoder:
        """The network, and the pooling of its states."""
        return self.encoder.words

    def on_states(self) -> tuple[Float[Tensor, "labels states"], Float[Tensor, "labels"]]:
        """Fold the centring into W and b: W (s − m) / d + b = (W / d) s + b − (W / d) m."""
        weight = self.weight / self.encoder.scale
        return weight, self.bias - weight @ self.encoder.mean


@torch.inference_mode()
def take_apart(tagger: Tagger, cell: Cell, onnx: bool = True) -> Parts:
    """Take the tagger of a cell apart, posterior means plugged in; ExportError with all that a format cannot carry."""
    encoder, task = tagger.model.encoder, tagger.model.inventory.task(cell.task)
    obstacles = export_obstacles(tagger.config, encoder, [task.unit], onnx)
    head = None if obstacles else _affine_head(tagger, cell)
    if not obstacles and not (isinstance(head, Head) and head.n_samples == 1):
        obstacles.append(f"the heads of method {tagger.config.method} are of another kind than affine ones")
    if obstacles or encoder.source is None or not isinstance(head, Head):
        kind = "an ONNX graph" if onnx else "a transformers token-classification checkpoint"
        remedy = "" if export_obstacles(tagger.config, encoder, [task.unit], onnx=True) else "; --onnx carries it"
        raise ExportError(f"{cell}: {kind} cannot carry this model: {'; '.join(obstacles)}{remedy}")
    weight, bias = head.parameters[0, :, :-1].float(), head.parameters[0, :, -1].float()
    precision = tagger.config.encoder.pretrained.precision
    differs = {
        f"the encoder computes in float32, and in {precision} in the model": encoder.stored and precision != "float32",
        "the head was fitted again without the cues of adapted cells (words, endings)": cell in tagger.adapted,
        "labels are the most probable ones, without crossfill's rules for spans": task.kind is TaskKind.SPANS,
    }
    notes = tuple(note for note, holds in differs.items() if holds)
    hidden, parts = tagger.model.hidden_of(cell.task), encoder.parts(cell.language)
    return Parts(cell, parts, hidden, weight, bias, task.labels, task.unit, encoder.query, encoder.source.folder, notes)


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
    notes = "\n".join([*["## How it differs from the model\n"][: len(parts.notes)], *(f"- {n}" for n in parts.notes)])
    card = (
        f"---\npipeline_tag: {what}-classification\nlanguage:\n- {parts.cell.language}\n---\n\n"
        f"# {parts.cell.task} in {parts.cell.language}\n\nA {what} classifier exported from a crossfill model "
        f"(method `{tagger.config.method}`, posterior means plugged in); {seen}. Averaged prediction, and with it the "
        f"model's doubt about its own parameters, needs crossfill itself.\n\n{usage.strip()}\n\n{notes}\n\n"
        f"## Scores\n\n{measured or 'Not measured.'}\n\nLabels: {', '.join(parts.labels)}\n"
    )
    write_atomically(out / "README.md", card.encode())
