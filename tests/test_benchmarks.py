"""What benchmarks measure, against cases computed by hand; and that each of them serves something."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import bridges  # noqa: E402


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
