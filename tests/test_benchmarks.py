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
from crossfill.studies.study import load_study_grid, parse_study
from tests.encoders.tiny import gemma
from tests.studies import studies

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


@pytest.mark.parametrize("name", peers.PEERS)
def test_a_peer_is_run_with_its_best_setting_and_does_nothing_twice(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip({"crf": "sklearn_crfsuite", "probe": "sklearn"}.get(name, "spacy"))
    encoder = {"name": str(gemma(tmp_path / "gemma", max_position_embeddings=4096))}
    encoder |= {"pretrained": {"mode": "frozen", "pooling": "last", "centring": "mean"}}
    config = {"encoder": encoder, "heads": {"hidden": [6]}, "training": {"steps": 4}}
    settings = studies.study(data={"tasks": ["pos", "ner"]}, config=config, methods={"jm": {}})
    grid = load_study_grid(parse_study(settings).data).grid
    chosen = {"date": "2026-11-19", "languages": grid.languages[:2]}
    scene = peers.Scene(parse_study(settings | {"chosen": chosen}), grid, tmp_path)
    monkeypatch.setitem(peers.SEARCHED, name, peers.SEARCHED[name][:2])
    monkeypatch.setattr(peers, "SENTENCES_TO_CHOOSE", (2,))
    peers.run_peer(scene, name, 1, (1, 3, 500), choose=True)
    tried = peers.read(tmp_path / f"{name}-choose.jsonl")
    zero = name in peers.FROM_SEEN_CELLS
    assert len(tried) == 4 * 2 * (1 + zero)  # cells, settings, numbers of sentences
    assert {peers.Cell.parse(row["cell"]).language for row in tried} == set(grid.languages[:2])
    best = {task: next(iter(peers.choice(tmp_path, name, task))) for task in ("pos", "ner")}
    for _ in range(2):
        peers.run_peer(scene, name, 2, (1, 3, 500), choose=False)
        rows = peers.read(tmp_path / f"{name}.jsonl")
        assert len(rows) == 4 * (2 * 2 + zero)  # cells, draws and numbers of sentences; none has 500
        assert all(row["setting"] == best[peers.Cell.parse(row["cell"]).task] for row in rows)
        assert all(0 <= row["score"] <= 1 for row in rows)
    assert {peers.Cell.parse(row["cell"]).language for row in rows} == set(grid.languages[2:])
