"""A pretrained network that can stop at a layer, or start from the states of a lower one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.errors import EncoderError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class LayerMix(nn.Module):
    """γ Σₖ softmax(w)ₖ hₖ over layers k, as ELMo mixes them; starts as the plain mean."""

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(n_layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, states: Float[Tensor, "words layers features"]) -> Float[Tensor, "words features"]:
        return self.gamma * torch.einsum("k,wkf->wf", self.weights.softmax(0), states)


_SWAPPING = threading.Lock()


class _Tap(nn.Module):
    """Placeholder layer: records its input, and returns it or other states in its place."""

    def __init__(self, instead: Tensor | None = None) -> None:
        super().__init__()
        self.instead = instead
        self.reached: Tensor | None = None

    def forward(self, states: Tensor, *_: Any, **__: Any) -> Tensor:
        self.reached = states
        return states if self.instead is None else self.instead


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
        self,
        ids: Int[Tensor, "windows longest"],
        mask: Int[Tensor, "windows longest"],
        stop: int,
        start: int = 0,
        states: Float[Tensor, "windows longest features"] | None = None,
    ) -> Float[Tensor, "windows longest features"]:
        """The states of layer `stop`; layers up to `start` are skipped if their `states` are given."""
        with self._cut(start, stop, states) as tap:
            last = self.network(input_ids=ids, attention_mask=_needed(mask), **self._options).last_hidden_state
            return last if tap is None or tap.reached is None else tap.reached

    def all_states(
        self, ids: Int[Tensor, "windows longest"], mask: Int[Tensor, "windows longest"]
    ) -> Float[Tensor, "windows longest layers features"]:
        """The states of all layers."""
        output = self.network(input_ids=ids, attention_mask=_needed(mask), output_hidden_states=True, **self._options)
        return torch.stack(output.hidden_states, dim=2)

    @contextmanager
    def _cut(self, start: int, stop: int, states: Tensor | None) -> Iterator[_Tap | None]:
        """Replace the layers that should not run by taps; they are restored afterwards."""
        tap = _Tap() if stop < self.n_layers else None
        swaps = tap is not None or states is not None
        with _SWAPPING if swaps else nullcontext():  # layers are replaced for all threads
            layers = list(self.layers)
            try:
                for i in range(start if states is not None else 0):
                    self.layers[i] = _Tap(states if i == start - 1 else None)
                for i in range(stop, self.n_layers):
                    self.layers[i] = tap if i == stop and tap is not None else _Tap()
                yield tap
            finally:
                for i, layer in enumerate(layers):
                    self.layers[i] = layer


def _needed(mask: Tensor) -> Tensor | None:
    """The mask, or none if nothing is padded: attention is faster without one."""
    return None if bool(mask.all()) else mask
