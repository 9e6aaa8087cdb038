"""Windows that stand in one row against the same windows padded, for every type of model that packs."""

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel

from crossfill.encoders.packing import _TYPES
from crossfill.encoders.pieces import PACKED_PIECES, PieceInputs, packs
from crossfill.encoders.transformer import LayeredNetwork
from tests.encoders.tiny import SIZES

LENGTHS = (9, 9, 7, 7, 7, 3, 1)
OWN: dict[str, dict[str, Any]] = {
    "electra": {"embedding_size": 12},
    "gemma3_text": {
        "num_key_value_heads": 1,
        "head_dim": 8,
        "sliding_window": 9,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
}


def network(kind: str) -> LayeredNetwork:
    sizes = SIZES | {"vocab_size": 50, "max_position_embeddings": 64, "pad_token_id": 1}
    torch.manual_seed(0)
    made = AutoModel.from_config(AutoConfig.for_model(kind, **(sizes | OWN.get(kind, {}))))
    for parameter in made.parameters():  # larger than usual, so that neighbours and positions matter
        parameter.data.add_(torch.randn_like(parameter) * 0.2)
    return LayeredNetwork(made.eval(), kind)


@pytest.mark.parametrize("kind", sorted(_TYPES))
@torch.no_grad()
def test_a_row_of_windows_has_the_states_of_padded_ones(kind: str) -> None:
    made = network(kind)
    ids = torch.randint(2, 50, (len(LENGTHS), max(LENGTHS)))
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)).long()
    ids[mask == 0] = 1
    row = ids[mask.bool()].unsqueeze(0)
    ones = torch.ones_like(row)
    for stop in (2, 3):
        padded = made(ids, mask, stop)[mask.bool()]
        torch.testing.assert_close(made(row, ones, stop, lengths=LENGTHS)[0], padded, rtol=1e-4, atol=1e-4)
        below = made(row, ones, 1, lengths=LENGTHS)
        torch.testing.assert_close(made(row, ones, stop, 1, below, LENGTHS)[0], padded, rtol=1e-4, atol=1e-4)
    every = made.all_states(row, ones, LENGTHS)[0]
    torch.testing.assert_close(every, made.all_states(ids, mask)[mask.bool()], rtol=1e-4, atol=1e-4)
    together = made(row, ones, 3)[0]  # without their lengths, they are one window
    assert not torch.allclose(together, padded, atol=1e-2)


def test_only_windows_that_every_layer_sees_whole_are_packed() -> None:
    assert network("gemma3_text").longest_packed == 9
    assert network("bert").longest_packed > 10**6
    assert network("distilbert").longest_packed == 0


@pytest.mark.parametrize("budget", [1, 10, 20, 10**6])
def test_packs_hold_every_piece_once_and_keep_to_the_budget(budget: int) -> None:
    lengths = torch.randint(0, 12, (40,))
    ids = torch.arange(int(lengths.sum()))
    inputs = PieceInputs(ids, lengths, torch.ones_like(lengths), lengths, lengths * 0, lengths * 0, lengths * 0)
    made = list(packs(inputs, budget))
    assert torch.cat([pack.pieces for pack in made]).sort().values.equal(ids)
    for pack in made:
        assert pack.lengths is not None
        assert sum(pack.lengths) == pack.ids.numel()
        assert sum(pack.lengths) <= min(budget, PACKED_PIECES) or len(pack.lengths) == 1
        assert pack.ids[0].equal(pack.pieces)
    assert len(made) <= 2 * len(ids) / min(budget, PACKED_PIECES) + 1 or budget < 12
