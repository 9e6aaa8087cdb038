"""Config: the paper's defaults, errors that name every problem, and overrides."""

import pytest
from pydantic import ValidationError

from crossfill.config import Config, load_config, override, parse_config
from crossfill.errors import ConfigError


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
    config = override(Config(), ["training.steps=7", "method=jm", "generator.hidden=[3, 4]"])
    assert (config.training.steps, config.method, config.generator.hidden) == (7, "jm", (3, 4))
    assert config.training.patience == 10
    for wrong, message in (("training.steps", "key=value"), ("training.steps.x=1", "not a group"), ("x=1", "unknown")):
        with pytest.raises(ConfigError, match=message):
            override(Config(), [wrong])


def test_config_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Config().training.steps = 3


def test_files(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("method: pf-d\ntraining:\n  steps: 9\n")
    settings = load_config(path, ["training.seed=4"]).training
    assert (settings.steps, settings.seed) == (9, 4)
    path.write_text("- a\n- b\n")
    with pytest.raises(ConfigError, match="expected settings as key: value, got list"):
        load_config(path)
    path.write_text("a: [")
    with pytest.raises(ConfigError, match="expected a YAML file"):
        load_config(path)
    with pytest.raises(ConfigError, match="expected a YAML file"):
        load_config(tmp_path / "none.yaml")
