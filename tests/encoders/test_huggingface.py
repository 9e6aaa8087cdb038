"""Word vectors of every tokenizer family against a naive reference: one sentence, one window, one word at a time."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from crossfill.config import PretrainedConfig
from crossfill.encoders import huggingface
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.encoders.pieces import batches
from crossfill.errors import EncoderError
from crossfill.grid.sentence import Corpus, Sentence
from tests.encoders.tiny import FAMILIES

MAX_PIECES, OVERLAP = 24, 8
SENTENCES = [
    Sentence(("Dakar", "mooy", "péeyu", "Senegaal", ",", "te", ".")),
    Sentence(("Dakar", ",", "mooy", "."), (), (False, True, False, False)),
    Sentence(("我", "是", "学生", "。", "我们", "在", "北京"), (), (False,) * 7),
    Sentence(("ฉัน", "เป็น", "นักเรียน"), (), (False,) * 3),
    Sentence(("", "fox", "", ""), (), ()),
    Sentence(("",)),
    Sentence(()),
    Sentence((" ", "fox", "\u200b", "\u0001", "▁", "[CLS]")),
    Sentence(("👨‍👩‍👧", "🇸🇳", "fox👍🏽", "ok")),
    Sentence(("e\u0301te\u0301", "a\u0323\u0302", "péeyu", "\u0301")),
    Sentence(("New York", "quick  brown", "dog")),
    Sentence(("quick" * 30, "fox", "supercalifragilistic" * 5)),
    Sentence(("jumps",) * 40),
    Sentence(tuple("abcdefgh" * 9), (), (False,) * 72),
    Sentence(("the", "quick" * 4, "brown" * 3) * 8),
]
CORPUS = Corpus.from_sentences(SENTENCES)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: build(tmp_path_factory.mktemp(name)) for name, build in FAMILIES.items()}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several batches from few sentences."""
    monkeypatch.setattr(huggingface, "PIECE_BUDGET", 200)


def settings(**changes: Any) -> PretrainedConfig:
    return PretrainedConfig(**({"max_pieces": MAX_PIECES, "overlap": OVERLAP} | changes))


def naive_windows(n: int, capacity: int) -> list[tuple[int, int]]:
    """Starts a fixed stride apart, the last one flush with the end."""
    if n <= capacity:
        return [(0, n)]
    starts = []
    while not starts or starts[-1] + capacity < n:
        starts.append(min(len(starts) * (capacity - OVERLAP), n - capacity))
    return [(start, start + capacity) for start in starts]


@cache
def load(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()


def naive(folder: Path, sentence: Sentence, layer: int, pooling: str) -> Tensor:
    tokenizer, model = load(folder)
    spaces = sentence.spaces or (True,) * len(sentence)
    text, spans = "", []
    for word, space in zip(sentence.words, spaces, strict=True):
        spans.append((len(text), len(text) + len(word)))
        text += word + (" " if space else "")
    both = [tokenizer("x", add_special_tokens=special)["input_ids"] for special in (True, False)]
    where = next(i for i in range(len(both[0])) if both[0][i : i + len(both[1])] == both[1])
    before, after = both[0][:where], both[0][where + len(both[1]) :]
    coded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, split_special_tokens=True)
    pieces, covers = coded["input_ids"], coded["offset_mapping"]
    blank = [not tokenizer.convert_ids_to_tokens(piece).strip("▁Ġ ") for piece in pieces]
    capacity = MAX_PIECES - len(before) - len(after)
    vectors = []
    for start, end in spans:
        touching = [i for i, (a, b) in enumerate(covers) if max(a, start) < min(b, end)]
        mine = [i for i in touching if not blank[i]] or touching
        if not mine:
            vectors.append(torch.zeros(16))
            continue
        first, last = min(mine), min(max(mine), min(mine) + capacity - 1)
        choices = [(s, e) for s, e in naive_windows(len(pieces), capacity) if s <= first and last < e]

        def context(window: tuple[int, int], first: int = first, last: int = last) -> int:
            left = 10**6 if window[0] == 0 else first - window[0]
            return min(left, 10**6 if window[1] == len(pieces) else window[1] - 1 - last)

        if max(mine) > last or not choices:  # longer than a window, or on a seam: a window of its own
            begin = max(0, first - (capacity - (last - first + 1)) // 2)
            choices = [(min(begin, len(pieces) - capacity),) * 1 + (min(begin, len(pieces) - capacity) + capacity,)]
        low, high = max(choices, key=context)
        with torch.no_grad():
            ids = torch.tensor([[*before, *pieces[low:high], *after]])
            states = model(input_ids=ids, output_hidden_states=True).hidden_states[layer][0, len(before) :]
        found = states[first - low : last - low + 1]
        vectors.append({"first": found[0], "last": found[-1], "mean": found.mean(0)}[pooling])
    return torch.stack(vectors) if vectors else torch.zeros(0, 16)


def encoded(encoder: WordEncoder, corpus: Corpus) -> Tensor:
    inputs = encoder.cutter.cut(corpus)
    found = torch.full((corpus.n_words, encoder.n_features), torch.nan)
    for sentences, vectors in encoder.encode(inputs):
        words = [w for s in sentences.tolist() for w in range(corpus.offsets[s], corpus.offsets[s + 1])]
        found[words] = vectors
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("layer", "pooling"), [(None, "first"), (2, "last"), (0, "mean"), (3, "mean")])
def test_word_vectors_are_those_of_a_naive_reference(
    folders: dict[str, Path], family: str, layer: int | None, pooling: str
):
    encoder = WordEncoder(Source.find(str(folders[family])), settings(layer=layer, pooling=pooling)).eval()
    wanted = torch.cat([naive(folders[family], s, 3 if layer is None else layer, pooling) for s in SENTENCES])
    torch.testing.assert_close(encoded(encoder, CORPUS), wanted, atol=1e-5, rtol=1e-5)
    with torch.no_grad():  # in one go, as training does it
        torch.testing.assert_close(encoder(encoder.cutter.cut(CORPUS)), wanted, atol=1e-5, rtol=1e-5)


def test_words_without_a_piece_are_counted_and_zero(folders: dict[str, Path]):
    encoder = WordEncoder(Source.find(str(folders["bert"])), settings()).eval()
    corpus = Corpus.from_sentences([Sentence(("fox", "", "\u0001", "dog"))])
    inputs = encoder.cutter.cut(corpus)
    assert int((inputs.first < 0).sum()) == 2
    assert encoded(encoder, corpus).abs().sum(1).gt(0).tolist() == [True, False, False, True]


def test_sentences_in_any_order_give_the_same_vectors(folders: dict[str, Path]):
    encoder = WordEncoder(Source.find(str(folders["xlm_roberta"])), settings()).eval()
    inputs = encoder.cutter.cut(CORPUS)
    order = torch.randperm(len(CORPUS), generator=torch.Generator().manual_seed(0))
    shuffled = inputs.take(order[:9]).followed_by([inputs.take(order[9:])])
    with torch.no_grad():
        whole = encoder(inputs).split(inputs.lengths.tolist())
        torch.testing.assert_close(encoder(shuffled), torch.cat([whole[i] for i in order]), atol=1e-5, rtol=1e-5)


def test_batches_hold_every_window_once_and_little_padding(folders: dict[str, Path]):
    encoder = WordEncoder(Source.find(str(folders["bert"])), settings()).eval()
    inputs = encoder.cutter.cut(Corpus.from_sentences([Sentence(("fox",) * n) for n in range(1, 40) for _ in range(9)]))
    made = list(batches(inputs, budget=200, pad=0))
    assert sorted(torch.cat([batch.pieces for batch in made]).tolist()) == list(range(len(inputs.ids)))
    assert all(batch.mask.numel() <= 200 for batch in made)
    assert 1 - len(inputs.ids) / sum(batch.mask.numel() for batch in made) < 0.1
    exact = list(batches(inputs, budget=10**6, pad=0, enough=1))
    assert sorted(torch.cat([batch.pieces for batch in exact]).tolist()) == list(range(len(inputs.ids)))
    assert sorted(batch.ids.shape[1] for batch in exact) == sorted(set(inputs.pieces_per_window.tolist()))
    assert all(bool(batch.mask.all()) for batch in exact)
    some = list(batches(inputs, budget=10**6, pad=0, enough=100))
    assert len(exact) > len(some) > len(list(batches(inputs, budget=10**6, pad=0)))


def test_settings_that_the_model_cannot_follow_are_refused(folders: dict[str, Path]):
    source = Source.find(str(folders["bert"]))
    for changes, message in (
        ({"layer": 4}, "has layers 0 to 3, got 4"),
        ({"max_pieces": 65}, "takes at most 64 pieces, got 65"),
        ({"max_pieces": 10, "overlap": 8}, "expected more than 10"),
        ({"mode": "finetune", "centring": "mean"}, "use mode frozen"),
        ({"mode": "partial", "freeze_below": 4}, "expected at most layer 3, got 4"),
    ):
        with pytest.raises(EncoderError, match=message):
            WordEncoder(source, settings(**changes))
    with pytest.raises(EncoderError, match="at most 64 pieces, got 65"):
        WordEncoder(Source.find(str(folders["xlm_roberta"])), settings(max_pieces=65))


def test_affine_layers_without_gradients_are_those_with_them(folders: dict[str, Path]):
    """oneDNN computes the former where the processor has AVX-512."""
    encoder = WordEncoder(Source.find(str(folders["bert"])), settings()).eval()
    inputs = encoder.cutter.cut(CORPUS)
    with_gradients = encoder(inputs)
    assert with_gradients.requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(encoder(inputs), with_gradients.detach(), atol=1e-5, rtol=1e-5)
        with huggingface._affine_layers(torch.ones(4, 8, dtype=torch.long)) as mode:
            expected = torch.backends.cpu.get_cpu_capability() == "AVX512"
            assert (mode is not None) == expected
            for shape in ((40, 6), (2, 20, 6), (0, 6)):
                values, weight = torch.randn(shape), torch.randn(5, 6)
                torch.testing.assert_close(torch.nn.functional.linear(values, weight), values @ weight.T)
    assert not isinstance(
        huggingface._affine_layers(torch.ones(4, 8, dtype=torch.long)), torch.overrides.TorchFunctionMode
    )
