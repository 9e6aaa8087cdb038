"""What benchmarks measure, against cases computed by hand; and that each of them serves something."""

import re
import sys
from pathlib import Path

import pytest
import torch

from crossfill.config import PretrainedConfig
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Task
from tests.encoders.tiny import gemma

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import bridges  # noqa: E402
import peers  # noqa: E402


def test_bridges_are_compared_on_the_cells_that_are_always_unseen():
    found = {
        bridges.Job("jm", 0, 1, 1): {"ner/a": 0.2, "pos/b": 0.5, "pos/c": 0.9},
        bridges.Job("jm", 5, 1, 1): {"ner/a": 0.3, "pos/b": 0.6},
        bridges.Job("jm", 0, 2, 1): {"ner/a": 0.4, "pos/b": 0.7},
        bridges.Job("jm", 5, 2, 1): {"ner/a": 0.3, "pos/b": 0.6},
    }
    assert bridges.table(found) == {
        "0": {"jm": {"ner": [30.0, 14.1], "pos": [60.0, 14.1]}},
        "5": {"jm": {"ner": [30.0, 0.0], "pos": [60.0, 0.0]}},
    }


def test_every_benchmark_is_cited_or_imported():
    places = ("docs/*.md", "docs/results.json", "configs/*.yaml", "src/**/*.py", "tests/*.py", "benchmarks/*.py")
    texts = {path: path.read_text(encoding="utf-8") for place in places for path in ROOT.glob(place)}
    for file in (ROOT / "benchmarks").glob("*.py"):
        name = file.stem
        pattern = re.compile(rf"benchmarks/{name}\.py|^(import|from) {name}\b", re.MULTILINE)
        assert any(pattern.search(text) for path, text in texts.items() if path != file), f"{name}: who needs it?"


def test_the_last_layer_over_stored_states_gives_the_vectors_of_the_whole_encoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch, "autocast", lambda *_: torch.autograd.profiler.record_function("float32"))
    source = Source.find(str(gemma(tmp_path / "gemma")))
    corpus = Corpus.from_sentences([Sentence(("Dakar", "fox", "te")), Sentence(("dog",)), Sentence(("the", "quick"))])
    config = {"mode": "frozen", "pooling": "last", "max_pieces": 60}
    whole = WordEncoder(source, PretrainedConfig(**config)).eval()
    lower = WordEncoder(source, PretrainedConfig(**config, layer=source.n_layers - peers.TOP)).eval()
    top = peers.TopLayers(str(source.folder), [Task("pos", ("A", "B"))]).eval()
    torch.nn.init.eye_(top.heads["pos"].weight)
    torch.nn.init.zeros_(top.heads["pos"].bias)
    with torch.no_grad():
        states = peers.States.joined([peers.States.of(lower, corpus)] * 2)
        padded, places, _ = states.batch(torch.tensor([2, 0, 4]))
        vectors = whole(whole.cutter.cut(corpus))
        expected = torch.cat([vectors[4:6], vectors[:3], vectors[3:4]])[:, :2]
        torch.testing.assert_close(top.logits(padded, places, "pos"), expected, atol=2e-2, rtol=2e-2)
