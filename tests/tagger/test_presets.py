"""Settings that nobody named: by encoder and device, fitted to the data; what the user says comes last."""

from pathlib import Path

import pytest
import torch

from crossfill.config import Config, load_run_config
from crossfill.errors import ConfigError
from crossfill.grid.cells import Cell, Grid
from crossfill.tagger import presets
from crossfill.tagger.presets import RunRequest, choose_settings
from tests.encoders.tiny import bert, gemma
from tests.scenarios import small_grid

MADE, PARTITION = small_grid()
CODES = dict(zip(MADE.grid.languages, ("wol", "fin", "tha", "vie"), strict=True))
GRID = Grid({Cell(cell.task, CODES[cell.language]): corpora for cell, corpora in MADE.grid.corpora.items()})


def chosen(**request: object) -> presets.Choice:
    return choose_settings(GRID, GRID.cells, RunRequest(**request))


def test_the_preset_follows_encoder_and_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = str(bert(tmp_path / "bert"))
    laptop = chosen(encoder=folder)
    assert laptop.config.encoder.pretrained.mode == "frozen"
    assert any(reason.startswith("preset laptop: no accelerator") for reason in laptop.reasons)
    demo = chosen(encoder="compact")
    assert any(reason.startswith("preset demo") for reason in demo.reasons)
    assert demo.config.encoder.hidden == 64
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: "cuda")
    gpu = chosen(encoder=folder)
    assert gpu.config.encoder.pretrained.mode == "finetune"
    assert gpu.config.training.encoder_learning_rate == 3e-5
    assert gpu.config.training.steps <= presets.MOST


def test_pooling_follows_attention(tmp_path: Path):
    for make, pooling in ((bert, "first"), (gemma, "last")):
        config = chosen(encoder=str(make(tmp_path / make.__name__))).config
        assert config.encoder.pretrained.pooling == pooling
        assert config.encoder.pretrained.max_pieces == 64


@pytest.mark.parametrize(("capability", "precision"), [("AVX512", "int8"), ("AVX2", "float32"), ("DEFAULT", "float32")])
def test_frozen_encoders_take_eight_bits_where_these_are_fast(
    capability: str, precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    folder = str(bert(tmp_path / "bert"))
    choice = chosen(encoder=folder)
    assert choice.config.encoder.pretrained.precision == precision
    assert any(reason.startswith("precision int8") for reason in choice.reasons) == (precision == "int8")
    assert chosen(encoder=folder, preset="gpu").config.encoder.pretrained.precision == "float32"


def test_without_an_encoder_one_is_chosen_and_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("crossfill.encoders.hub.is_cached", lambda _: False)
    choice = chosen()
    assert choice.config.encoder.name == "compact"
    assert (
        "encoder compact: none was named, and bert-base-multilingual-cased is not on this machine" in choice.reasons[0]
    )
    bert(tmp_path / "bert-base-multilingual-cased")
    choice = chosen()
    assert choice.config.encoder.name == "bert-base-multilingual-cased"
    assert "encoder bert-base-multilingual-cased: none was named" in choice.reasons[0]


def test_steps_follow_the_data():
    """Six passes over the sentences with the compact encoder, within bounds."""
    few = chosen(encoder="compact").config.training
    assert (few.steps, few.validate_every) == (1000, 1000 // presets.VALIDATIONS)
    many = Grid({cell: GRID[cell] * 100 for cell in GRID.cells})
    sentences = sum(len(many.training(cell)) for cell in many.cells)
    steps = choose_settings(many, many.cells, RunRequest(encoder="compact")).config.training.steps
    assert steps == min(presets.MOST, -(-6 * sentences // 32))


def test_the_paper_is_a_preset_and_nothing_else(tmp_path: Path):
    paper = chosen(encoder=str(bert(tmp_path / "bert")), preset="paper").config
    assert (paper.training.steps, paper.training.learning_rate) == (250_000, 5e-6)
    assert paper.encoder.pretrained.mode == "finetune"
    with pytest.raises(ConfigError, match="unknown preset 'papers'; did you mean 'paper'"):
        chosen(encoder="compact", preset="papers")


def test_what_the_user_says_comes_last(tmp_path: Path):
    config = chosen(encoder="compact", method="jm", changes={"training.steps": 7}).config
    assert (config.method, config.training.steps) == ("jm", 7)


def test_with_a_config_nothing_is_chosen(tmp_path: Path):
    config = Config().change({"training.steps": 3})
    assert chosen(config=config) == (config, ())
    path = tmp_path / "own.yaml"
    path.write_text("preset: demo\ntraining: {steps: 9}\n")
    for given in (path, str(path)):
        assert chosen(config=given) == (load_run_config(path), ())
    assert chosen(config=path).config.training.steps == 9
    assert chosen(config=path).config.encoder.hidden == 64
    assert chosen(config="configs/demo.yaml", method="jm").config.method == "jm"
    with pytest.raises(ConfigError, match="expected a preset or a config, got both"):
        chosen(config=path, preset="demo")
