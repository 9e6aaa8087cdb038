"""Windows of any length in one row, one behind the other: no padding, and attention that stays within each window.

A network's other parts look at one piece at a time, so that only its attention and its positions have to know.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Int
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

NAME = "crossfill_packed"
"""Name of the attention, among those of transformers."""
_FIRST_AFTER_PADDING = frozenset({"camembert", "roberta", "xlm-roberta", "xlm-roberta-xl"})
"""Types of models whose positions start after the padding index."""
_TYPES = frozenset({"bert", "camembert", "electra", "gemma3_text", "roberta", "xlm-roberta"})
"""Types of models that were compared with their padded selves."""
_current = threading.local()


def first_position(settings: "PreTrainedConfig") -> int:
    """The position of a window's first piece."""
    return 1 + (settings.pad_token_id or 0) if settings.model_type in _FIRST_AFTER_PADDING else 0


def longest_packed(settings: "PreTrainedConfig") -> int:
    """Most pieces of a window that can be packed: none in models of unknown types, else what every layer looks at."""
    if settings.model_type not in _TYPES:
        return 0
    return getattr(settings, "sliding_window", None) or 10**9


def allow_packing(network: "PreTrainedModel") -> None:
    """Give the network an attention that knows packed rows; all other rows it treats as before."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

    def attend(
        module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
    ) -> tuple[Tensor, None]:
        lengths = getattr(_current, "lengths", None)
        if lengths is None:
            return sdpa_attention_forward(module, query, key, value, mask, **options)[0], None
        found, start = [], 0
        for length, alike in groupby(lengths):
            end = start + length * len(list(alike))
            parts = (part[0, :, start:end].unflatten(1, (-1, length)).transpose(0, 1) for part in (query, key, value))
            found.append(sdpa_attention_forward(module, *parts, None, **options)[0].flatten(0, 1))
            start = end
        return torch.cat(found).unsqueeze(0), None

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    network.set_attn_implementation(NAME)


@contextmanager
def packed(lengths: Sequence[int]) -> Iterator[None]:
    """Within it, this thread's rows are windows of these lengths, one behind the other."""
    _current.lengths = lengths
    try:
        yield
    finally:
        _current.lengths = None


def positions(lengths: Sequence[int], first: int) -> Int[Tensor, "1 pieces"]:
    """The position of every piece of such a row."""
    return torch.cat([torch.arange(first, first + length) for length in lengths]).unsqueeze(0)
