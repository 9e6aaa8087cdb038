"""Tiny pretrained models of every tokenizer family: random weights, and tokenizers made from a few lines of text."""

from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertModel,
    EuroBertConfig,
    EuroBertModel,
    Gemma3TextConfig,
    Gemma3TextModel,
    GPT2Config,
    GPT2Model,
    ModernBertConfig,
    ModernBertModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    XLMRobertaConfig,
    XLMRobertaModel,
)

TEXTS = [
    "Dakar mooy péeyu Senegaal , te dëkk bu mag la .",
    "Helsinki on Suomen pääkaupunki ja suurin kaupunki .",
    "我是学生 我们在北京学习中文",
    "ฉันเป็นนักเรียนและอยู่ที่กรุงเทพ",
    "القاهرة هي عاصمة مصر",
    "the quick brown fox jumps over the lazy dog 0123456789",
] * 3
SIZES = {"num_hidden_layers": 3, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}


def bert(folder: Path, **settings: object) -> Path:
    """WordPiece, [CLS] and [SEP]."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted({letter for text in TEXTS for letter in text if letter != " "})
    pairs = sorted({word[i : i + 2] for text in TEXTS[:2] for word in text.split() for i in range(len(word) - 1)})
    pieces = [*special, *letters, *(f"##{piece}" for piece in (*letters, *pairs)), "fox", "quick", "Dakar", "mooy"]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(t, special.index(t)) for t in ("[CLS]", "[SEP]")]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    usual = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 64}
    return _save(folder, fast, lambda n: BertModel(BertConfig(vocab_size=n, **(SIZES | usual | settings))))


def xlm_roberta(folder: Path) -> Path:
    """SentencePiece's Unigram with a space before the text, <s> and </s>; positions start after the padding index."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>")
    sizes = SIZES | {"max_position_embeddings": 66, "pad_token_id": 1, "type_vocab_size": 1}
    return _save(folder, fast, lambda n: XLMRobertaModel(XLMRobertaConfig(vocab_size=n, **sizes)))


def gpt2(folder: Path) -> Path:
    """Byte BPE, causal, no special tokens at all."""
    fast = PreTrainedTokenizerFast(tokenizer_object=_byte_tokenizer([]))
    config = {"n_layer": 3, "n_head": 2, "n_embd": 16, "n_positions": 64, "bos_token_id": 0, "eos_token_id": 0}
    return _save(folder, fast, lambda n: GPT2Model(GPT2Config(vocab_size=n, **config)))


def gemma(folder: Path, **settings: object) -> Path:
    """BPE over a text whose spaces are ▁, with bytes for what is unknown; causal, <bos>."""
    sizes = SIZES | {"num_key_value_heads": 1, "head_dim": 8, "sliding_window": 8, "max_position_embeddings": 64}
    layers = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "pad_token_id": 0}
    tokenizer = _gemma_tokenizer("<bos> $A")
    config = sizes | layers | settings
    return _save(folder, tokenizer, lambda n: Gemma3TextModel(Gemma3TextConfig(vocab_size=n, **config)))


def modernbert(folder: Path) -> Path:
    """Gemma's tokenizer with <bos> and <eos>, as in mmBERT; pieces see both sides, in some layers the nearest only."""
    ids = {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 1, "sep_token_id": 1}
    sizes = SIZES | {"local_attention": 8, "global_attn_every_n_layers": 2, "max_position_embeddings": 64} | ids
    tokenizer = _gemma_tokenizer("<bos> $A <eos>")
    return _save(folder, tokenizer, lambda n: ModernBertModel(ModernBertConfig(vocab_size=n, **sizes)))


def eurobert(folder: Path) -> Path:
    """Byte BPE with a token before and one after the text; pieces see both sides."""
    tokenizer = _byte_tokenizer(["<|begin|>", "<|end|>", "<|pad|>"])
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|begin|> $A <|end|>", special_tokens=[("<|begin|>", 0), ("<|end|>", 1)]
            ),
        ]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<|pad|>", bos_token="<|begin|>")
    ids = {"pad_token_id": 2, "bos_token_id": 0, "eos_token_id": 1, "mask_token_id": 2}
    sizes = SIZES | {"num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 64} | ids
    return _save(folder, fast, lambda n: EuroBertModel(EuroBertConfig(vocab_size=n, **sizes)))


FAMILIES: dict[str, Callable[[Path], Path]] = {
    "bert": bert,
    "xlm_roberta": xlm_roberta,
    "gpt2": gpt2,
    "gemma": gemma,
    "modernbert": modernbert,
    "eurobert": eurobert,
}


def _byte_tokenizer(special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def _gemma_tokenizer(single: str) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_previous")
    special = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{i:02X}>" for i in range(256))]
    tokenizer.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=420, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("<eos>", 1), ("<bos>", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<bos>", unk_token="<unk>")


def _save(folder: Path, tokenizer: PreTrainedTokenizerFast, build: Callable[[int], PreTrainedModel]) -> Path:
    torch.manual_seed(0)
    model = build(len(tokenizer))
    for parameter in model.parameters():  # larger than usual, so that neighbours and positions matter
        parameter.data.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
