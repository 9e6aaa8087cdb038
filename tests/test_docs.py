"""Every name that docs/paper.md gives exists; CONTRIBUTING's layout is the code's; every shipped config is valid."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from crossfill.settings import read_settings
from crossfill.studies.study import check_runs, parse_study

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


def test_the_layers_that_contributors_read_of_are_those_of_the_contract():
    shown = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    layers = [re.split(r"\s{2,}", line)[0] for line in shown.splitlines() if not line.startswith(" ")]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    expected = [re.split(r" \| ", layer) for layer in contracts[0]["layers"]]
    assert [name for layer in layers for name in re.split(r" \| |, ", layer)] == [
        n for layer in expected for n in layer
    ][1:]


def test_the_path_of_a_sentence_goes_through_modules_that_there_are():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("**The path of a sentence**")[2]
    rows = re.findall(r"^\| \d \|.*", text.partition("**To add something**")[0], re.M)
    assert len(rows) == 14  # training and tagging, adapting and teaching
    names = {name for row in rows for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)`", row)}
    assert len(names) > 15
    for name in names:
        importlib.import_module(f"crossfill.{name}")


def test_pages_are_short():
    words = {path.name: len(path.read_text(encoding="utf-8").split()) for path in (ROOT / "docs").glob("*.md")}
    assert sum(words.values()) <= 22_000
    assert words["results.md"] <= 3_000
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 10
    assert [link for link in links if not link.startswith("http") and not (ROOT / link).exists()] == []


def test_pages_that_the_code_names_are_there():
    files = [path for room in ("src", "configs", "benchmarks") for path in (ROOT / room).rglob("*.[py]*")]
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".yaml")]
    named = {name for text in texts for name in re.findall(r"docs/[\w-]+\.md", text)}
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_configs_are_valid(path):
    study = parse_study(read_settings(path), path.name)
    check_runs(study)
    assert study.methods
