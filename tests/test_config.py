"""Config: the paper's defaults, errors that name every problem, and overrides."""

import pytest
from pydantic import ValidationError

from crossfill.config import Config, parse_config
from crossfill.errors import ConfigError
from crossfill.settings import parse_assignments, read_settings


def test_defaults_are_the_papers():
    config = Config()
    assert (config.latents.size, config.latents.rank) == (100, 10)
    assert config.generator.hidden == (400, 768, 768, 768, 768)
    assert (config.objective.samples, config.prediction.samples) == (3, 100)
    assert (config.training.batch_sentences, config.training.learning_rate) == (8, 5e-6)
    assert (config.training.validate_every, config.training.patience) == (2500, 10)


def test_all_problems_are_named_at_once():
    with pytest.raises(ConfigError) as caught:
        parse_config({"method": 3, "trainin": {}, "training": {"step": 3, "clip": -1}}, "run.yaml")
    message = str(caught.value)
    assert "run.yaml: method: input should be a valid string; got 3" in message
    assert "unknown setting 'trainin'; did you mean 'training'?" in message
    assert "training.step: unknown setting 'step'; did you mean 'steps'?" in message
    assert "training.clip: input should be greater than 0; got -1" in message


def test_overrides_change_one_setting():
    config = Config().change({"training.steps": 7, "method": "jm", "generator.hidden": [3, 4]})
    assert (config.training.steps, config.method, config.generator.hidden) == (7, "jm", (3, 4))
    assert config.training.patience == 10
    for wrong, message in (("training.steps", "key=value"), ("training.steps.x=1", "not a group"), ("x=1", "unknown")):
        with pytest.raises(ConfigError, match=message):
            Config().change(parse_assignments([wrong]))


def test_config_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Config().training.steps = 3


def test_files(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("method: pf-d\ntraining:\n  steps: 9\n")
    settings = parse_config(read_settings(path)).training
    assert settings.steps == 9
    path.write_text("- a\n- b\n")
    with pytest.raises(ConfigError, match="expected settings as key: value, got list"):
        read_settings(path)
    path.write_text("a: [")
    with pytest.raises(ConfigError, match="expected a YAML file"):
        read_settings(path)
    with pytest.raises(ConfigError, match="expected a YAML file"):
        read_settings(tmp_path / "none.yaml")


def test_values_are_kept_as_they_are():
    """A path is a path, whatever YAML would make of it."""
    for text in ("a folder #1/typology", "yes", "1e3", "{x}", "no: really", "[1"):
        assert Config().change({"sources.vectors": text}).sources.vectors == text


def test_a_value_that_is_no_yaml_is_an_error_with_its_name():
    for text in ("training.steps=[1", "training.steps={a", "training.steps=2026-13-45"):
        with pytest.raises(ConfigError, match=r"training\.steps: expected a value in YAML, such as 500"):
            parse_assignments([text])


def test_a_file_stands_on_its_base(tmp_path):
    (tmp_path / "base.yaml").write_text(
        "data: {path: here, seed: 3}\nconfig: {training: {steps: 9, seed: 1}}\n"
        "methods: {jm: {}, ns: {}}\nseeds: [0, 1]\n"
    )
    own = tmp_path / "own.yaml"
    own.write_text("base: base.yaml\ndata: {seed: 4}\nconfig: {training: {steps: 5}}\nmethods: {ls: {}}\nseeds: [2]\n")
    assert read_settings(own) == {
        "data": {"path": "here", "seed": 4},
        "config": {"training": {"steps": 5, "seed": 1}},
        "methods": {"ls": {}},  # a study runs the methods it lists
        "seeds": [2],
    }
    with (tmp_path / "base.yaml").open("a") as base:
        base.write(
            "ablations: [{name: wide, methods: [jm], variants: {}}]\nchosen: {date: '2026-01-01', languages: [wol]}\n"
        )
    assert not {"ablations", "chosen"} & read_settings(own).keys()  # they are of other methods and settings
    own.write_text("base: base.yaml\nseeds: [2]\n")
    assert {"ablations", "chosen"} <= read_settings(own).keys()
    (tmp_path / "base.yaml").write_text("base: own.yaml\n")
    with pytest.raises(ConfigError, match="base: expected a file that is not based on this one"):
        read_settings(own)
    own.write_text("base: none.yaml\n")
    with pytest.raises(ConfigError, match=r"none\.yaml: expected a YAML file"):
        read_settings(own)
