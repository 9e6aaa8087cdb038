"""Exported sentence tasks against crossfill's own probabilities, in four scripts; what cannot be carried is refused."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from crossfill.encoders.base import build_encoder
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.errors import ExportError
from crossfill.export.onnx import GRAPH, export_onnx
from crossfill.export.parts import take_apart
from crossfill.export.stock import export_stock
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit
from crossfill.methods.registry import build_model
from crossfill.settings import parse_assignments
from crossfill.tagger.tagger import Tagger
from tests.encoders.tiny import FAMILIES
from tests.own_cache import own_cache as own_cache
from tests.scenarios import SMALL

INVENTORY = Inventory.of(
    {"nli": ("no", "yes"), "topic": ("politics", "sports", "travel")},
    ("tha", "wol"),
    units={"nli": Unit.PAIR, "topic": Unit.SENTENCE},
)
TOPIC, NLI = Cell("topic", "wol"), Cell("nli", "wol")
TEXTS = ["Dakar mooy péeyu Senegaal", "北京 是 首都", "القاهرة عاصمة مصر", "กรุงเทพ เป็น เมืองหลวง", "one"]


def tagger(folder: Path, *changes: str) -> Tagger:
    settings = [f"encoder.name={folder}", "encoder.pretrained.max_pieces=60", "encoder.pretrained.overlap=20"]
    config = SMALL.change({"generator.deviation": 20, **parse_assignments(settings), **parse_assignments(changes)})
    base = build_encoder(config, INVENTORY.languages, cache=False)
    if isinstance(base, FrozenEncoder):
        base.mean.normal_()
    return Tagger(build_model(config, INVENTORY, [TOPIC, NLI], base), config)


@pytest.mark.parametrize("pooling", [pytest.param("mean", marks=pytest.mark.slow), "attention"])
def test_onnx_gives_the_same_probabilities_of_sentences(pooling: str, tmp_path: Path):
    frozen = ["encoder.pretrained.mode=frozen", "encoder.pretrained.centring=mean", f"encoder.sentences={pooling}"]
    made = tagger(FAMILIES["bert"](tmp_path / "encoder"), *frozen)
    if made.model.encoder.query is not None:
        made.model.encoder.query.data.normal_()
    export_onnx(made, TOPIC, tmp_path / "out")
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / GRAPH))
    cutter = take_apart(made, TOPIC).words.cutter
    sentences = [Sentence(tuple(text.split())) for text in TEXTS]
    cut = [cutter.cut(Corpus.from_sentences([sentence])) for sentence in sentences]
    feed = {
        "input_ids": padded([one.ids.tolist() for one in cut], 0),
        "attention_mask": padded([[1] * len(one.ids) for one in cut], 0),
        "first_piece": padded([one.first.tolist() for one in cut], -2),
        "last_piece": padded([one.last.tolist() for one in cut], -2),
    }
    logits = np.asarray(session.run(None, feed)[0])
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    own = np.stack([t.probabilities[0] for t in made.tag_many(sentences, TOPIC, samples=0)])
    np.testing.assert_allclose(shares / shares.sum(-1, keepdims=True), own, atol=1e-4)
    assert np.ptp(own, axis=0).max() > 1e-3
    assert "sentences × labels" in (tmp_path / "out" / "README.md").read_text()


def padded(rows: list[list[int]], value: int) -> np.ndarray:
    longest = max(map(len, rows))
    return np.array([row + [value] * (longest - len(row)) for row in rows], dtype=np.int64)


def test_what_no_stock_checkpoint_can_carry_is_refused(tmp_path: Path):
    made = tagger(FAMILIES["bert"](tmp_path / "encoder"))
    with pytest.raises(
        ExportError, match=r"topic/wol: a transformers token-classification .* it labels sentences; --onnx carries it"
    ):
        export_stock(made, TOPIC, tmp_path / "out")
    for write in (export_stock, export_onnx):
        with pytest.raises(ExportError, match=r"nli/wol: .* heads of pairs"):
            write(made, NLI, tmp_path / "out")
    assert not (tmp_path / "out").exists()
