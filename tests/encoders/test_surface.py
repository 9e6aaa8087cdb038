"""The surface of words: what it says, in which scripts, and that a frozen encoder carries it everywhere."""

import math
from pathlib import Path

import pytest
import torch

from crossfill.adaptation.languages import add_language
from crossfill.encoders.base import build_encoder
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.encoders.surface import COUNT, NAMES, SCALE, Surface, bucket, form, word_buckets, word_forms
from crossfill.errors import EncoderError, ExportError
from crossfill.export.parts import take_apart
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.methods.registry import build_model
from crossfill.tagger.model_folder import load_model
from crossfill.tagger.tagger import Tagger
from crossfill.tagger.train import train_model
from tests.encoders.test_modes import GRID, PARTITION, config
from tests.encoders.tiny import bert
from tests.own_cache import own_cache as own_cache

TEXT = Corpus.from_text(
    [Sentence(("Ndax", "Awa", "Ndiaye", "dem", "na", "?")), Sentence(("2,5", "%", "ឣ"))]
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("bert"))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Dakar", {"upper first", "cased", "5–7 characters"}),
        ("UN", {"upper first", "upper all", "cased", "2 characters"}),
        ("iPhone", {"upper within", "cased", "5–7 characters"}),
        ("1990", {"digit", "digits only", "3–4 characters"}),
        ("B2", {"upper first", "cased", "digit", "2 characters"}),
        ("!", {"punctuation", "punctuation only", "1 character"}),
        ("$", {"symbol", "1 character"}),
        ("U.S.", {"upper first", "upper all", "cased", "punctuation", "full stop", "3–4 characters"}),
        ("well-known", {"cased", "punctuation", "hyphen", "8–11 characters"}),
        ("กรุงเทพ", {"mark", "5–7 characters"}),  # marks do not count as characters
        ("北京", {"2 characters"}),
        ("𞤀𞤣𞤤𞤢𞤥", {"upper first", "cased", "5–7 characters"}),  # Adlam has case, too
        ("", set()),
    ],
)
def test_the_form_of_a_word_in_any_script(word: str, expected: set[str]):
    found = dict(zip(NAMES, form(word), strict=False))
    assert {name for name, value in found.items() if value is True or (value == 1 and name != "length")} == expected


def test_place_in_the_sentence():
    rows = word_forms(TEXT)
    said = [{name for name, value in zip(NAMES, row, strict=False) if value == 1} for row in rows]
    assert {"first", "upper first", "before upper, and upper"} <= said[0]
    assert "upper, not first" not in said[0]
    assert {"upper, not first", "after upper, and upper", "before upper, and upper"} <= said[1]
    assert "before punctuation" in said[4]
    assert {"last", "after punctuation"} & said[6] == set()  # the sentence before does not count
    assert rows[1, NAMES.index("position")] == pytest.approx(1 / 5)


def test_frequencies_are_shares_of_unlabelled_text():
    surface = Surface(2).eval()
    words = ["na"] * 90 + ["Awa"] * 9 + ["dem"]
    surface.fit(1, [Corpus.from_text([Sentence(tuple(words))])])
    text = Corpus.from_text([Sentence(("NA", "awa", "Ndar"))])
    inputs = word_forms(text), word_buckets(text)
    found = surface(*inputs, torch.ones(3, dtype=torch.long)) / SCALE + surface.mean[1]
    shares = [0.9, 0.09, 0.0]
    expected = [[math.log10(s + 1e-6) / 3 + 1.5, s == 0, s > 0.005, False] for s in shares]
    expected[2][3] = True  # rare, upper and not first
    torch.testing.assert_close(found[:, -len(COUNT) :], torch.tensor(expected, dtype=torch.float32), atol=1e-5, rtol=0)
    unknown = surface(*inputs, torch.zeros(3, dtype=torch.long))
    assert not unknown[:, -len(COUNT) :].any()
    assert bucket("Awa") == bucket("awa") != bucket("dem")


def test_training_counts_a_word_without_its_own_occurrence():
    text = Corpus.from_text([Sentence(("na", "na", "Awa", "dem"))])
    inputs = word_forms(text), word_buckets(text), torch.zeros(4, dtype=torch.long)
    surface = Surface(1)
    surface.fit(0, [text])
    surface.dropout = torch.nn.Identity()
    frequency = len(NAMES) - len(COUNT)
    expected = [math.log10(share + 1e-6) / 3 + 1.5 for share in (0.25, 0.25, 0.0, 0.0)]
    found = (surface.train()(*inputs) / SCALE + surface.mean[0])[:, frequency]
    torch.testing.assert_close(found, torch.tensor(expected))
    assert surface.mean[0, frequency + 1] == 0.5  # half of the words are never counted elsewhere
    assert not (surface.eval()(*inputs) / SCALE + surface.mean[0])[:, frequency + 1].round(decimals=4).any()


def test_a_frozen_encoder_carries_the_surface(folder: Path, tmp_path: Path):
    chosen = config(folder, "frozen", "encoder.pretrained.centring=mean", "encoder.surface=true", "encoder.dropout=0")
    model = train_model(GRID, PARTITION.seen, chosen, tmp_path / "model").model
    encoder = model.encoder
    assert isinstance(encoder, FrozenEncoder)
    plain = build_encoder(config(folder, "frozen", "encoder.dropout=0"), GRID.languages)
    assert encoder.n_features == plain.n_features + len(NAMES)
    language = GRID.languages[0]
    texts = [GRID.training(cell) for cell in GRID.cells if cell.language == language]
    features = torch.cat([encoder(encoder.prepare(corpus, language)) for corpus in texts])
    uncounted = features.shape[1] - len(COUNT)  # counts have a mean of their own: a word does not count itself
    assert features[:, :uncounted].mean(0).abs().max() < 1e-4  # centred, surface and all
    inputs = encoder.prepare(TEXT, language)
    both = inputs.followed_by([encoder.prepare(TEXT, GRID.languages[1])])
    torch.testing.assert_close(
        encoder(both.take(torch.tensor([1, 3, 0]))), encoder(both)[[6, 7, 8, 15, 16, 17, *range(6)]]
    )
    moved = encoder(encoder.recentred(inputs, GRID.languages[1]))
    torch.testing.assert_close(moved, encoder(encoder.prepare(TEXT, GRID.languages[1])))
    loaded, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(loaded.encoder(inputs), encoder(inputs))
    with pytest.raises(ExportError, match=r"surface of words.*encoder\.surface=false"):
        take_apart(Tagger(loaded, chosen), Cell("pos", language), onnx=False)


def test_a_language_that_joins_has_a_surface_of_its_own(folder: Path):
    chosen = config(folder, "frozen", "encoder.pretrained.centring=mean", "encoder.surface=true", "encoder.dropout=0")
    model = build_model(chosen, GRID.inventory, PARTITION.seen)
    grown = add_language(model, chosen, "wol", TEXT).eval()
    features = grown.encoder(grown.encoder.prepare(TEXT, "wol"))
    assert features[:, -len(NAMES) : -len(COUNT)].mean(0).abs().max() < 1e-5
    assert model.encoder.get_buffer("surface.counts").shape[0] == len(GRID.languages)


def test_an_encoder_that_trains_is_refused(folder: Path):
    with pytest.raises(EncoderError, match=r"encoder\.surface: expected a frozen pretrained encoder"):
        build_encoder(config(folder, "finetune", "encoder.surface=true"), GRID.languages)
