"""A pretrained encoder that is fine-tuned, completely or from a layer up."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossfill.config import EncoderConfig
from crossfill.encoders import hub
from crossfill.encoders.base import Encoder, Inputs, expect
from crossfill.encoders.cache import FeatureCache
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.encoders.pieces import PieceInputs
from crossfill.grid.sentence import Corpus
from crossfill.progress import ProgressBar


class FinetunedEncoder(Encoder):
    """The whole network trains (`finetune`), or the layers from `freeze_below` up (`partial`).

    The frozen part of `partial` runs without dropout. Its states are therefore always the same: they are computed once
    per corpus and cached on disk in float32.
    """

    source: Source

    def __init__(
        self, config: EncoderConfig, cache: Path | bool = True, quiet: bool = True, weights: bool = True
    ) -> None:
        """`weights`: whether to load pretrained weights; not needed if those of a trained model are loaded later."""
        super().__init__()
        self.config, self.quiet = config.pretrained, quiet
        self.source = Source.find(config.name, weights)  # pyright: ignore[reportIncompatibleVariableOverride]
        self.words = WordEncoder(self.source, self.config)
        self.cache = FeatureCache(cache if weights else False)  # the cache identifies encoders by their weights
        self.n_features = self.source.size
        self.dropout = nn.Dropout(config.dropout)
        self.n_frozen = self.config.freeze_below - 1 if self.config.mode == "partial" else 0
        """Number of frozen layers, not counting the embeddings."""
        if self.config.mode == "partial":
            self._freeze()
        self.identity = hub.identity(self.source.folder)
        if self.config.checkpoint_gradients:
            network = self.words.network.network
            network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def prepare(self, corpus: Corpus, language: str = "") -> PieceInputs:  # noqa: ARG002
        inputs = self.words.cutter.cut(corpus)
        if not self.n_frozen:
            return inputs
        settings = {"pieces_of_layer": self.n_frozen} | {n: getattr(self.config, n) for n in ("max_pieces", "overlap")}
        states = self.cache.fetch(
            {"encoder": self.identity.hex(), **settings, "text": corpus.text_hash},
            (len(inputs.ids), self.source.size),
            "<f4",
            lambda: self._run_frozen(inputs),
            label=self.source.name,
        )
        return replace(inputs, states=torch.from_numpy(states))

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        inputs = expect(inputs, PieceInputs)
        if self.config.mode == "partial":  # no dropout below the layers that train
            self.words.network.eval()
            for layer in list(self.words.network.layers)[self.n_frozen :]:
                layer.train(self.training)
        return self.dropout(self.words(inputs, self.n_frozen))

    def on_states(
        self,
        weight: Float[Tensor, "labels features"],
        bias: Float[Tensor, "labels"],
        language: str,  # noqa: ARG002
    ) -> tuple[WordEncoder, Float[Tensor, "labels states"], Float[Tensor, "labels"]]:
        return self.words.eval(), weight, bias

    def _freeze(self) -> None:
        """Freeze all parameters but those of layers from `freeze_below` up and of a final norm."""
        network = self.words.network
        lower = {id(p) for layer in list(network.layers)[: self.n_frozen] for p in layer.parameters()}
        trained = {id(p) for layer in list(network.layers)[self.n_frozen :] for p in layer.parameters()}
        for name, module in network.named_modules():
            if "norm" in type(module).__name__.lower() and "embed" not in name.lower():
                trained |= {id(p) for p in module.parameters()} - lower
        for parameter in network.parameters():
            parameter.requires_grad_(id(parameter) in trained)

    def _run_frozen(self, inputs: PieceInputs) -> Iterator[np.ndarray]:
        """Compute the states of all pieces after the frozen layers."""
        training = self.training
        self.eval()
        done = 0
        with ProgressBar(self.quiet) as bars:
            update = bars.add(f"Encoding {len(inputs.lengths):,} sentences", len(inputs.ids))
            update(0, "pieces")
            for part in torch.arange(len(inputs.lengths)).split(1024):
                with torch.inference_mode():
                    states = self.words.piece_states(inputs.take(part), self.n_frozen)
                yield states.cpu().numpy()
                done += len(states)
                update(done, "pieces")
        self.train(training)
