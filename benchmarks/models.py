"""A BERT of any size with random weights, and text for it, for benchmarks that are run without a model."""

from collections import Counter
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

from crossfill.data.synthetic import SyntheticConfig, synthetic_grid
from crossfill.grid.sentence import Corpus

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def text(n_sentences: int) -> Corpus:
    """Artificial sentences in 30 languages."""
    grid = synthetic_grid(SyntheticConfig(train_sentences=-(-n_sentences // 30), roots=1500), seed=0).grid
    sentences = [s for cell in grid.cells if cell.task == "pos" for s in grid.training(cell)]
    return Corpus.from_sentences(sentences[:n_sentences])


def random_bert(folder: Path, corpus: Corpus, layers: int, hidden: int, n_labels: int) -> Path:
    """A token classifier over a random BERT, with a WordPiece tokenizer that cuts rarer words into pieces."""
    counts = Counter(corpus.words)
    letters = sorted({letter for word in counts for letter in word})
    ends = sorted({word[-3:] for word in counts if len(word) > 3})
    whole = [word for word, _ in counts.most_common(3000)]
    pieces = dict.fromkeys([*SPECIAL, *letters, *whole, *(f"##{end}" for end in (*letters, *ends))])
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces),
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
        num_labels=n_labels,
    )
    BertForTokenClassification(config).save_pretrained(folder)
    return folder
