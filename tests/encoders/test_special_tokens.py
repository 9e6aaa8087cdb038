"""Words that spell special tokens are text: no family of tokenizers lets them become the token."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from crossfill.config import PretrainedConfig
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.encoders.pieces import PieceCutter, special_tokens
from crossfill.grid.sentence import Corpus, Sentence
from tests.encoders.tiny import FAMILIES

SPELT = (
    "[SEP]",
    "[CLS]",
    "[MASK]",
    "[PAD]",
    "[UNK]",
    "<s>",
    "</s>",
    "<pad>",
    "<unk>",
    "<mask>",
    "<bos>",
    "<eos>",
    "<|end|>",
)
EXTRA = {"bert": "[MASK]", "gpt2": "<|end|>", "eurobert": "<|mask|>"}
"""A special token that the tokenizer lacks, else `<mask>`; added as real ones have it: with the space before it."""


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FAMILIES[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture
def tokenizer(folder: Path) -> Any:
    """The family's tokenizer, with a special token in its vocabulary and one outside of it."""
    from tokenizers import AddedToken

    found = AutoTokenizer.from_pretrained(folder)
    found.add_special_tokens(
        {"mask_token": AddedToken(EXTRA.get(folder.name[:-1], "<mask>"), lstrip=True, special=True)}
    )
    return found


def pieces(tokenizer: Any, *words: str, spaces: tuple[bool, ...] = ()) -> list[int]:
    cutter = PieceCutter(tokenizer, 250, 10)
    inputs = cutter.cut(Corpus.from_sentences([Sentence(words, (), spaces)]))
    assert (inputs.first >= 0).all()
    ids = inputs.ids.tolist()
    return ids[len(cutter.before) : len(ids) - len(cutter.after)]


def test_no_word_becomes_a_special_token(tokenizer: Any):
    special = special_tokens(tokenizer)
    assert special
    unknown = special.get(tokenizer.unk_token)
    for word in (*special, *SPELT):
        for words in ((word,), ("fox", word, "fox"), ("fox" + word + word,)):
            found = pieces(tokenizer, *words)
            assert not set(found) & set(special.values()) - {unknown}, (word, found)
            assert len(found) > 1 or found == [unknown], (word, found)


def test_words_that_spell_one_together_do_not_become_it(tokenizer: Any):
    special = special_tokens(tokenizer)
    for word in special:
        found = pieces(tokenizer, word[0], word[1:-1], word[-1], spaces=(False, False, False))
        assert not set(found) & set(special.values()) - {special.get(tokenizer.unk_token)}


def test_every_word_has_its_own_pieces(folder: Path):
    encoder = WordEncoder(Source.find(str(folder)), PretrainedConfig(max_pieces=60)).eval()
    words = ("fox", *special_tokens(encoder.cutter.tokenizer), "dog")[:8]
    inputs = encoder.cutter.cut(Corpus.from_sentences([Sentence(words)]))
    assert (inputs.first[1:] > inputs.last[:-1]).all()
    with torch.no_grad():
        assert encoder(inputs).abs().sum(1).gt(0).all()


def test_other_text_has_the_pieces_it_had(tokenizer: Any):
    text = "Dakar mooy péeyu 北京 ☃ <fox> [sic] fox"
    wanted = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert pieces(tokenizer, *text.split()) == wanted
    assert "_plain" not in vars(PieceCutter(tokenizer, 250, 10))  # what reads all as text is made on demand
    beside = Corpus.from_sentences([Sentence(tuple(text.split())), Sentence(("<pad>", "[SEP]", "<bos>", "<|end|>"))])
    both = PieceCutter(tokenizer, 250, 10).cut(beside)
    alone = PieceCutter(tokenizer, 250, 10).cut(beside[:1])
    assert both.take(torch.tensor([0])).ids.tolist() == alone.ids.tolist()


def test_whole_words_of_a_vocabulary_are_unknown_rather_than_special():
    vocabulary = {"[UNK]": 0, "[SEP]": 1, "fox": 2}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", sep_token="[SEP]")
    assert pieces(fast, "fox", "[SEP]", "fox") == [2, 0, 2]
