"""Files of settings from strangers: refused with a short message."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossfill.config import Config, load_run_config
from crossfill.errors import ConfigError
from crossfill.settings import parse_assignments, read_settings
from crossfill.studies.plan import check_study
from crossfill.studies.study import StudyConfig

HOSTILE = {
    "alias": "a: &a 1\ntraining: {seed: *a}\n",
    "itself": "training: &t {steps: *t}\n",
    "itself as a list": "methods: &m [*m]\n",
    "digits": f"training: {{steps: {'9' * 5000}}}\n",
    "date": "training: {steps: 2026-13-45}\n",
    "long text": f"method: {'x' * 100_000}\ntraining: {{steps: {'y' * 100_000}}}\n",
    "not text": "\x00\x01",
    "object": "training: !!python/object/apply:os.system [exit]\n",
    "seed": "training: {seed: -1}\n",
    "large seed": "training: {seed: 1.0e+30}\n",
    "not a number": "latents: {rho_range: [.nan, 1.0]}\n",
    "infinite range": "latents: {factor_range: [0, .inf]}\n",
    "falling range": "latents: {factor_range: [1, 0]}\n",
    "infinite rate": "training: {learning_rate: .inf}\n",
    "layers": "encoder: {layers: 1000000000}\n",
    "batch": "training: {batch_sentences: 1000000000}\n",
    "keys": "? [1, 2]\n: 3\n",
    "list": "[1, 2]\n",
    "wrong groups": "methods: [jm]\nconfig: [3]\ndata: 7\npartitions: no\n",
    "wrong settings of a preset": "preset: demo\nmethods: {jm: {}}\nconfig: [3]\n",
    "wrong settings of a study": "methods: {jm: [1]}\nconfig: {}\n",
    "wrong preset": "preset: {a: b}\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_few_words(name: str, tmp_path: Path):
    path = tmp_path / "hostile.yaml"
    path.write_text(HOSTILE[name])
    with pytest.raises(ConfigError) as caught:
        load_run_config(path)
    assert len(str(caught.value)) < 20_000
    with pytest.raises(ConfigError) as caught:
        check_study(read_settings(path), str(path))
    assert len(str(caught.value)) < 20_000


@pytest.mark.parametrize("value", ["&a [*a]", ".nan", "2026-13-45", "-1", ".inf"])
def test_hostile_values_on_the_command_line(value: str):
    with pytest.raises(ConfigError) as caught:
        Config().change(parse_assignments([f"training.steps={value}"]))
    assert len(str(caught.value)) < 1000


def numbers(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every number in a JSON schema, with the place it stands in."""
    if isinstance(schema, dict):
        if schema.get("type") in ("integer", "number"):
            yield place, schema
        for key, value in schema.items():
            yield from numbers(value, f"{place}.{key}")
    elif isinstance(schema, list):
        for value in schema:
            yield from numbers(value, place)


@pytest.mark.parametrize("model", [Config, StudyConfig])
def test_every_number_has_a_range(model: type[Config | StudyConfig]):
    found = dict(numbers(model.model_json_schema()))
    assert len(found) > 10
    for place, number in found.items():
        assert {"minimum", "exclusiveMinimum"} & number.keys(), place
        assert {"maximum", "exclusiveMaximum"} & number.keys(), place
