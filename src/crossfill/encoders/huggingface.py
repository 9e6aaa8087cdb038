"""Pretrained encoders: any `AutoModel` with a fast tokenizer, its states pooled to one vector per word.

`FinetunedEncoder` trains it; `crossfill.encoders.frozen` keeps it as it is.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from crossfill.config import EncoderConfig, PretrainedConfig
from crossfill.encoders import hub
from crossfill.encoders.alignment import NO_PIECE
from crossfill.encoders.base import Encoder, EncoderParts, Inputs, expect, ranges
from crossfill.encoders.pieces import ENOUGH_PIECES, Batch, PieceCutter, PieceInputs, batches
from crossfill.errors import EncoderError
from crossfill.grid.sentence import Corpus

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

PIECE_BUDGET = 2048
"""Most pieces that the network processes in one batch, padding included."""
PIECES_AT_ONCE = 2**13
"""Number of pieces whose states are kept in memory at a time while a corpus is encoded."""
FEW_PIECES = 8
"""Pieces whose products oneDNN, which sorts the weights first, computes no faster."""
_SWAPPING = threading.Lock()
_LARGEST_BYTE, _TINY = 127, 1e-30
_FIRST_AFTER_PADDING = frozenset({"camembert", "roberta", "xlm-roberta", "xlm-roberta-xl"})
"""Types of models whose positions start after the padding index."""


class Source(NamedTuple):
    """A pretrained model that was found but not loaded yet, to be loaded with its weights or without."""

    name: str
    folder: Path
    settings: "PreTrainedConfig"
    weights: bool = True

    @classmethod
    def find(cls, name: str, weights: bool = True) -> "Source":
        """Find the model with this hub name or path."""
        folder = hub.find_folder(name, weights)
        return cls(name, folder, hub.load_settings(folder, name), weights)

    @property
    def n_layers(self) -> int:
        return int(self.settings.num_hidden_layers)

    @property
    def size(self) -> int:
        return int(self.settings.hidden_size)

    @property
    def is_causal(self) -> bool:
        """Whether each piece sees only the pieces before it, as in models that generate text."""
        from transformers.models.auto import modeling_auto as auto

        kind = self.settings.model_type
        writes = kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
        return writes and not getattr(self.settings, "use_bidirectional_attention", False)

    @property
    def longest(self) -> int:
        """Most pieces that the network takes at once."""
        limit = getattr(self.settings, "max_position_embeddings", None) or 10**9
        after_padding = self.settings.model_type in _FIRST_AFTER_PADDING
        return int(limit) - (1 + (self.settings.pad_token_id or 0) if after_padding else 0)


def check_settings(source: Source, config: PretrainedConfig) -> None:
    """Refuse settings that are impossible for this model."""
    top, problem = source.n_layers if config.layer is None else config.layer, ""
    if top > source.n_layers:
        problem = f"layer: {source.name} has layers 0 to {source.n_layers}, got {config.layer}"
    elif config.centring != "none" and config.mode != "frozen":
        problem = f"centring: expected none in mode {config.mode}, got {config.centring}: an encoder that trains moves "
        problem += "its features; use mode frozen"
    elif config.mode == "partial" and config.freeze_below > top:
        problem = f"freeze_below: expected at most layer {top}, got {config.freeze_below}"
    elif config.max_pieces > source.longest:
        problem = f"max_pieces: {source.name} takes at most {source.longest} pieces, got {config.max_pieces}"
    if problem:
        raise EncoderError(f"encoder.pretrained.{problem}")


class _Tap(nn.Module):
    """Placeholder of a layer, with its settings: records its input, and returns it."""

    reached: Tensor

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.settings = vars(layer)

    def __getattr__(self, name: str) -> Any:
        try:
            return vars(self)["settings"][name]  # networks ask a layer for its kind of attention, say
        except KeyError:
            raise AttributeError(name) from None

    def forward(self, states: Tensor, *_: Any, **__: Any) -> Tensor:
        self.reached = states
        return states


class _ByOneDNN(TorchFunctionMode):
    """Computes affine layers by oneDNN: torch takes MKL, which leaves half of the speed of AMD's AVX-512 unused."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is functional.linear and not kwargs and all(part.dtype == torch.float32 for part in args[:2]):
            return torch.ops.mkldnn._linear_pointwise(*(*args, None)[:3], "none", [], "")
        return func(*args, **(kwargs or {}))


def _affine_layers(ids: Int[Tensor, "windows longest"]) -> AbstractContextManager[Any]:
    """How the affine layers of these pieces are computed fastest."""
    slow = torch.is_grad_enabled() or ids.device.type != "cpu" or ids.numel() < FEW_PIECES
    suits = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"
    return nullcontext() if slow or not suits else _ByOneDNN()


class QuantisedLinear(nn.Module):
    """Computes what an affine layer does with products of whole numbers, on processors several times as fast.

        y ≈ s (q Q)ᵀ S + b        q = round(x / s), s = max |x| / 127        Q = round(W / S), S = max |W| / 127

    Every row of the input has a scale s of its own, which is computed as it comes, and every output a scale S.
    """

    weight: Tensor
    scale: Tensor

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        weight = layer.weight.detach().float()
        scale = (weight.abs().amax(1) / _LARGEST_BYTE).clamp(min=_TINY)
        self.register_buffer("weight", (weight / scale.unsqueeze(1)).round().to(torch.int8).T.contiguous())
        self.register_buffer("scale", scale)
        self.bias = layer.bias

    def forward(self, values: Float[Tensor, "*batch given"]) -> Float[Tensor, "*batch outputs"]:
        rows = values.flatten(0, -2)
        scale = (rows.abs().amax(1, keepdim=True) / _LARGEST_BYTE).clamp(min=_TINY)
        products = torch._int_mm(  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
            (rows / scale).round().to(torch.int8), self.weight
        )
        outputs = (products * scale * self.scale).unflatten(0, values.shape[:-1])
        return outputs if self.bias is None else outputs + self.bias


def quantise(network: nn.Module) -> None:
    """Replace the affine layers of a network."""
    for name, module in network.named_children():
        if isinstance(module, nn.Linear):
            setattr(network, name, QuantisedLinear(module))
        else:
            quantise(module)


class LayeredNetwork(nn.Module):
    """Gives the states of any layer of a pretrained network, numbered as in `hidden_states`: 0 is the embeddings."""

    def __init__(self, network: "PreTrainedModel", name: str) -> None:
        super().__init__()
        self.network = network
        settings = network.config.get_text_config()
        self.n_layers, self.size = int(settings.num_hidden_layers), int(settings.hidden_size)
        lists = [m for m in network.modules() if isinstance(m, nn.ModuleList) and len(m) == self.n_layers]
        if not lists:
            raise EncoderError(f"encoder '{name}': expected a stack of {self.n_layers} layers in {settings.model_type}")
        self._layers = [lists[0]]  # in a list, so that the layers are not registered twice
        # the cache of keys and values is only for generation; encoders that have none refuse the option
        has_cache = getattr(network.config, "use_cache", None) is not None
        self._options: dict[str, Any] = {"use_cache": False} if has_cache else {}

    @property
    def layers(self) -> nn.ModuleList:
        return self._layers[0]

    def forward(
        self, ids: Int[Tensor, "windows longest"], mask: Int[Tensor, "windows longest"], stop: int
    ) -> Float[Tensor, "windows longest features"]:
        """Compute the states of layer `stop`."""
        with self._cut(stop) as tap, _affine_layers(ids):
            needed = None if bool(mask.all()) else mask  # attention is faster without one
            output = self.network(input_ids=ids, attention_mask=needed, **self._options)
            return output.last_hidden_state if tap is None else tap.reached

    @contextmanager
    def _cut(self, stop: int) -> Iterator[_Tap | None]:
        """Replace the layers from `stop` up by taps; they are restored afterwards."""
        if stop == self.n_layers:
            yield None
            return
        with _SWAPPING:  # layers are replaced for all threads
            layers, taps = list(self.layers), [_Tap(layer) for layer in self.layers[stop:]]
            try:
                for i, tap in enumerate(taps, start=stop):
                    self.layers[i] = tap
                yield taps[0]
            finally:
                for i, layer in enumerate(layers):
                    self.layers[i] = layer


class WordEncoder(nn.Module):
    """Encodes pieces and pools them to one vector per word, for frozen and for trainable encoders."""

    def __init__(self, source: Source, config: PretrainedConfig, precision: torch.dtype = torch.float32) -> None:
        super().__init__()
        check_settings(source, config)
        self.config = config
        tokenizer = hub.load_tokenizer(source.folder, source.name, source.settings)
        self.cutter = PieceCutter(tokenizer, config.max_pieces, config.overlap)
        network = (
            hub.load_network(source.folder, source.name, precision)
            if source.weights
            else hub.new_network(source.settings)
        )
        self.network = LayeredNetwork(network, source.name)
        pads = (tokenizer.pad_token_id, source.settings.pad_token_id)
        self.pad = next((pad for pad in pads if isinstance(pad, int)), 0)
        self.layer = self.network.n_layers if config.layer is None else config.layer
        self.n_features = source.size

    def batches(self, inputs: PieceInputs) -> Iterator[Batch]:
        """Cut the inputs into batches for the network."""
        on_cpu = next(self.network.parameters()).device.type == "cpu"  # other devices need all that fits to be busy
        return batches(inputs, PIECE_BUDGET, self.pad, ENOUGH_PIECES if on_cpu else None)

    def forward(self, inputs: PieceInputs) -> Float[Tensor, "words features"]:
        """Compute one vector per word."""
        return self.pool(inputs, self.piece_states(inputs))

    def piece_states(self, inputs: PieceInputs) -> Float[Tensor, "pieces features"]:
        """Compute the states of all pieces, in the order of the inputs."""
        device = next(self.network.parameters()).device
        parts, places = [], []
        for batch in self.batches(inputs):
            ids, mask = batch.ids.to(device), batch.mask.to(device)
            states = self.network(ids, mask, self.layer)
            parts.append(states[mask.bool()].float())
            places.append(batch.pieces)
        if not parts:
            return torch.zeros(0, self.n_features, device=device)
        return torch.cat(parts)[torch.cat(places).argsort().to(device)]

    def pool(self, inputs: PieceInputs, states: Float[Tensor, "pieces features"]) -> Float[Tensor, "words features"]:
        """Make the vector of each word from those of its pieces: first, last or mean; zero where it has none."""
        if not len(states):
            return states.new_zeros(len(inputs.first), self.n_features)
        first, last = (places.to(states.device) for places in inputs.word_pieces())
        if self.config.pooling == "mean":
            vectors = _mean(states, first, last)
        else:
            vectors = states[first if self.config.pooling == "first" else last]
        return vectors * (inputs.first != NO_PIECE).to(states.device).unsqueeze(1)

    def encode(self, inputs: PieceInputs) -> Iterator[tuple[Int[Tensor, "chosen"], Float[Tensor, "words features"]]]:
        """Compute word vectors for groups of sentences, longest first, so that batches contain little padding."""
        order = inputs.pieces_per_sentence.argsort(descending=True, stable=True)
        group = inputs.pieces_per_sentence[order].cumsum(0) // PIECES_AT_ONCE
        for sentences in order.split(torch.unique_consecutive(group, return_counts=True)[1].tolist()):
            with torch.inference_mode():
                vectors = self(inputs.take(sentences))
            yield sentences, vectors


def _mean(
    states: Float[Tensor, "pieces features"], first: Int[Tensor, "words"], last: Int[Tensor, "words"]
) -> Float[Tensor, "words features"]:
    counts = last - first + 1
    owners = torch.repeat_interleave(torch.arange(len(first), device=states.device), counts)
    pieces = ranges(first.cpu(), counts.cpu()).to(states.device)
    sums = states.new_zeros(len(first), states.shape[1]).index_add(0, owners, states[pieces])
    return sums / counts.unsqueeze(1)


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
