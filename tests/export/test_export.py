"""Exported taggers against crossfill's own plug-in labels: transformers' pipeline and ONNX Runtime."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from transformers import AutoTokenizer, pipeline

from crossfill.config import Config
from crossfill.encoders.base import build_encoder
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.errors import ExportError
from crossfill.export.onnx import GRAPH, export_onnx
from crossfill.export.parts import take_apart, write_surroundings
from crossfill.export.stock import export_stock
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.methods.registry import build_model
from crossfill.settings import parse_assignments
from crossfill.tagger.tagger import Tagger
from tests.encoders.tiny import FAMILIES, TEXTS, bert, gemma
from tests.own_cache import own_cache as own_cache
from tests.scenarios import SMALL

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from export import run_onnx

INVENTORY = Inventory.of({"ner": ("B-LOC", "I-LOC", "O"), "pos": ("ADJ", "NOUN", "VERB")}, ("tha", "wol"))
CELL = Cell("ner", "wol")
RNG = np.random.default_rng(0)
WORDS = [word for text in TEXTS[:6] for word in text.split()]


def sentences(n: int) -> list[Sentence]:
    """Random sentences in Latin, Chinese, Thai and Arabic script."""
    return [Sentence(tuple(RNG.choice(WORDS, size=RNG.integers(1, 8)).tolist())) for _ in range(n)]


def tagger(folder: Path, *changes: str) -> Tagger:
    settings = [f"encoder.name={folder}", "encoder.pretrained.max_pieces=60", "encoder.pretrained.overlap=20"]
    config = SMALL.change({"generator.deviation": 20, **parse_assignments(settings), **parse_assignments(changes)})
    base = build_encoder(config, INVENTORY.languages, cache=False)  # as `crossfill.load` makes it: float32
    model = build_model(config, INVENTORY, [Cell("pos", "wol"), Cell("ner", "tha")], base)
    encoder = model.encoder
    if isinstance(encoder, FrozenEncoder) and encoder.config.centring != "none":
        encoder.mean.normal_()
        if encoder.config.centring == "standard":
            encoder.scale.uniform_(0.5, 2.0)
    if isinstance(encoder, FrozenEncoder) and encoder.surface is not None:
        for row in range(len(INVENTORY.languages)):
            encoder.surface.fit(row, [Corpus.from_sentences(sentences(30))])
    return Tagger(model, config)


def own_labels(made: Tagger, texts: list[Sentence]) -> list[str]:
    """The most probable label of each word, without the rules of IOB2."""
    taggings = made.tag_many(texts, CELL, samples=0)
    return [t.task.labels[i] for t in taggings for i in t.probabilities.argmax(-1).tolist()]


@pytest.mark.parametrize("family", ["bert", "xlm_roberta", "gpt2"])
def test_the_pipeline_gives_the_same_labels(family: str, tmp_path: Path):
    made = tagger(FAMILIES[family](tmp_path / "encoder"))
    export_stock(made, CELL, tmp_path / "out")
    AutoTokenizer.from_pretrained(tmp_path / "out")
    tag = pipeline("token-classification", model=str(tmp_path / "out"), ignore_labels=[], device="cpu")
    cutter = WordEncoder(Source.find(str(tmp_path / "encoder")), made.config.encoder.pretrained).cutter
    drawn = sentences(60)  # pipelines know no windows: what needs several is left out
    one_window = (cutter.cut(Corpus.from_sentences(drawn)).windows_per_sentence == 1).tolist()
    texts = [sentence for sentence, fits in zip(drawn, one_window, strict=True) if fits]
    found = []
    for sentence in texts:
        pieces = [piece for piece in tag(sentence.text) if piece["word"].strip("▁Ġ ")]  # a lone space is no word
        kept = [(piece["start"], piece["end"], piece["entity"]) for piece in pieces]
        start = 0
        for word in sentence.words:
            found.append(next(e for a, b, e in kept if a < start + len(word) and b > start))
            start += len(word) + 1
    assert found == own_labels(made, texts)
    assert len(set(found)) > 1
    if family != "xlm_roberta":  # the card says so
        special = cutter.special.nonzero()[0].tolist()
        spelt = AutoTokenizer.from_pretrained(tmp_path / "out")("fox [SEP] <pad> fox", add_special_tokens=False)
        assert not set(spelt["input_ids"]) & set(special)
    assert "zero-shot" in (tmp_path / "out" / "README.md").read_text()


FROZEN = ["encoder.pretrained.mode=frozen"]
LAPTOP = [*FROZEN, "encoder.pretrained.centring=mean", "encoder.pretrained.pooling=last", "encoder.surface=true",
          "heads.hidden=[24]"]  # fmt: skip
ONNX = {
    "bert-standard": [*FROZEN, "encoder.pretrained.centring=standard", "encoder.pretrained.layer=2"],
    "gemma-laptop": LAPTOP,
}
SLOW_ONNX = {
    "gemma-last": [*FROZEN, "encoder.pretrained.centring=mean", "encoder.pretrained.pooling=last"],
    "bert-mean": ["encoder.pretrained.pooling=mean"],
    "xlm_roberta-first": ["encoder.pretrained.pooling=first"],
    "gpt2-last": ["encoder.pretrained.pooling=last"],
    "gemma-layer": ["encoder.pretrained.layer=2", "encoder.pretrained.pooling=last"],
}


@pytest.mark.parametrize("name", [*ONNX, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_ONNX)])
def test_onnx_gives_the_same_labels(name: str, tmp_path: Path):
    made = tagger(FAMILIES[name.split("-")[0]](tmp_path / "encoder"), *(ONNX | SLOW_ONNX)[name])
    export_onnx(made, CELL, tmp_path / "out")
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / GRAPH))
    texts = [*sentences(40), Sentence(("fox",) * 150)]  # the last one needs several windows
    words = WordEncoder(Source.find(str(tmp_path / "encoder")), made.config.encoder.pretrained)
    logits = run_onnx(session, words.cutter.cut(Corpus.from_sentences(texts)), texts)
    names = list(json.loads((tmp_path / "out" / "config.json").read_text())["id2label"].values())
    assert [names[i] for i in logits.argmax(-1).tolist()] == own_labels(made, texts)
    expected = np.concatenate([t.probabilities for t in made.tag_many(texts, CELL, samples=0)])
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    np.testing.assert_allclose(weights / weights.sum(-1, keepdims=True), expected, atol=1e-4)


def test_what_differs_from_the_model_is_told(tmp_path: Path):
    made = tagger(bert(tmp_path / "bert"), *LAPTOP)
    assert take_apart(made, CELL).notes == ("labels are the most probable ones, without crossfill's rules for spans",)
    made = tagger(tmp_path / "bert", *LAPTOP, "encoder.pretrained.precision=int8")
    made.adapt([Sentence(("Dakar", "mooy"), ("B-LOC", "O"))], CELL)
    precision, cues, _ = (parts := take_apart(made, CELL)).notes
    assert "in float32, and in int8 in the model" in precision
    assert "without the cues of adapted cells" in cues
    write_surroundings(parts, made, tmp_path / "out", "how to call it")
    assert f"## How it differs from the model\n\n- {precision}\n- {cues}\n" in (tmp_path / "out/README.md").read_text()


@pytest.mark.parametrize("family", ["bert", pytest.param("xlm_roberta", marks=pytest.mark.slow)])
def test_the_card_shows_how_to_run_it(family: str, tmp_path: Path):
    made = tagger(FAMILIES[family](tmp_path / "encoder"), *(LAPTOP if family == "bert" else ()))
    export_onnx(made, CELL, tmp_path / "out")
    code = re.findall(r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text(), re.DOTALL)[0]
    for words in (("Dakar", "mooy", "péeyu", "Senegaal"), ("Dakar", "[SEP]", "</s>", "<pad>", "mooy", "2,5", "%")):
        shown = code.replace('["Dakar", "mooy", "péeyu", "Senegaal"]', str(list(words)))
        run = subprocess.run(
            [sys.executable, "-c", shown], cwd=tmp_path / "out", capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == str(own_labels(made, [Sentence(words)]))


def test_what_cannot_be_carried_is_refused(tmp_path: Path):
    last = tagger(gemma(tmp_path / "gemma"), "encoder.pretrained.pooling=last", "encoder.pretrained.layer=2")
    with pytest.raises(ExportError, match=r"no token.*last piece.*layer 2 of 3.*--onnx carries it"):
        export_stock(last, CELL, tmp_path / "out")
    every = ["mode=frozen", "pooling=last", "layer=2"]
    beside = ["encoder.surface=true", "heads.hidden=[24]"]
    surface = tagger(bert(tmp_path / "s"), *beside, *(f"encoder.pretrained.{one}" for one in every))
    obstacles = r"surface of words.*; it has hidden layers.*; it reads the last piece.*; it reads layer 2"
    with pytest.raises(ExportError, match=obstacles):
        export_stock(surface, CELL, tmp_path / "out")
    with pytest.raises(ExportError, match="hashed n-grams"):
        export_stock(Tagger(build_model(SMALL, INVENTORY, [CELL]), SMALL), CELL, tmp_path / "out")
    vote = Config().change({"method": "bea"})
    made = tagger(bert(tmp_path / "bert"))
    three = replace(INVENTORY, languages=("fin", "tha", "wol"))
    seen = [Cell("ner", "tha"), Cell("ner", "wol"), Cell("pos", "tha")]
    with pytest.raises(ExportError, match="method bea vote"):
        export_stock(
            Tagger(build_model(vote, three, seen, made.model.encoder), vote), Cell("ner", "fin"), tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()
