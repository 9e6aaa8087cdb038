"""Every name that docs/paper.md gives exists; every shipped config is valid."""

import importlib
import re
from pathlib import Path

import pytest

from crossfill.settings import read_settings
from crossfill.studies.study import parse_study

ROOT = Path(__file__).parents[1]
NAMES = sorted(set(re.findall(r"`(crossfill\.[\w.]+)`", (ROOT / "docs" / "paper.md").read_text())))


@pytest.mark.parametrize("name", NAMES)
def test_names_in_the_paper_page_exist(name):
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[split:]:
            found = getattr(found, attribute)
        assert found is not None
        return
    pytest.fail(f"no such module: {name}")


def test_the_page_names_the_model():
    assert len(NAMES) > 20


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_configs_are_valid(path):
    study, problems = parse_study(read_settings(path), path.name)
    assert problems == []
    assert study is not None
    assert study.methods
