"""A pretrained encoder that is fine-tuned, completely or from a layer up."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossfill.config import EncoderConfig
from crossfill.encoders.base import Encoder, EncoderParts, Inputs, expect
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.encoders.pieces import PieceInputs
from crossfill.grid.sentence import Corpus


class FinetunedEncoder(Encoder):
    """The whole network trains (`finetune`), or the layers from `freeze_below` up (`partial`)."""

    source: Source

    def __init__(self, config: EncoderConfig, weights: bool = True) -> None:
        """`weights`: whether to load pretrained weights; not needed if those of a trained model are loaded later."""
        super().__init__()
        self.config = config.pretrained
        self.source = Source.find(config.name, weights)  # pyright: ignore[reportIncompatibleVariableOverride]
        self.words = WordEncoder(self.source, self.config)
        self.n_features = self.source.size
        self.dropout = nn.Dropout(config.dropout)
        self.n_frozen = self.config.freeze_below - 1 if self.config.mode == "partial" else 0
        """Number of frozen layers, not counting the embeddings."""
        if self.config.mode == "partial":
            self._freeze()
        if self.config.checkpoint_gradients:
            network = self.words.network.network
            network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def prepare(self, corpus: Corpus, language: str = "") -> PieceInputs:  # noqa: ARG002
        return self.words.cutter.cut(corpus)

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        inputs = expect(inputs, PieceInputs)
        if self.config.mode == "partial":  # no dropout below the layers that train
            self.words.network.eval()
            for layer in list(self.words.network.layers)[self.n_frozen :]:
                layer.train(self.training)
        return self.dropout(self.words(inputs))

    def parts(self, language: str) -> EncoderParts:  # noqa: ARG002
        return EncoderParts(self.words.eval(), torch.zeros(self.n_features), torch.ones(self.n_features))

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
