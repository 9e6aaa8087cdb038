"""The tables of the pages are those of docs/results.json, and a table that is not would be found."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import figures  # noqa: E402

RESULTS: dict[str, Any] = json.loads((ROOT / figures.RESULTS).read_text(encoding="utf-8"))
PAGE = """\
# A page

| method | pos acc. | mean ± sd | command |
|---|---|---|---|
| PF-lr, low rank | 1,089.0 | **80.1** ± 2.0 | `run.py 3` |
| JM | −64.2 | .514 (8e-6) | |
<!-- table: grid.scores -->

| method | mean ± sd |
|---|---|
| JM | .514 (8e-6) |
<!-- part of table: grid.scores -->

| setting | meaning |
|---|---|
| 2.5 | half of `0.5`, or 5 |
"""
SCORES = {
    "pf-lr-low-rank": {"pos-acc": 1089.0, "mean-sd": [80.1, 2.0]},
    "jm": {"pos-acc": -64.2, "mean-sd": [0.514, 8e-6]},
}


def problems(folder: Path, page: str = PAGE, **changes: Any) -> list[str]:
    """Return the problems of a small repository."""
    results = {"grid": {"command": "make", "date": "2026-11-16", "values": {"scores": SCORES}}, **changes}
    for name, text in {"README.md": page, "CONTRIBUTING.md": ""}.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "docs").mkdir(exist_ok=True)
    (folder / figures.RESULTS).write_text(figures.as_json(results), encoding="utf-8")
    return figures.problems(folder)


def test_every_table_of_results_is_that_of_the_file():
    assert figures.problems(ROOT) == []


def test_commands_of_results_are_there():
    for name, group in RESULTS.items():
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", group["date"]), name
        for path in re.findall(r"(?:benchmarks|configs)/[\w.]+", group["command"]):
            assert (ROOT / path).exists(), f"{name}: {path}"


def test_a_page_that_agrees_has_no_problems(tmp_path: Path):
    assert problems(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("1,089.0", "1,089.1", "scores.pf-lr-low-rank.pos-acc: the table has 1089.1, docs/results.json has 1089.0"),
        ("± 2.0", "± 2.1", "pf-lr-low-rank.mean-sd: the table has [80.1, 2.1], docs/results.json has [80.1, 2.0]"),
        ("| JM | −64.2", "| JM | ", "README.md:3: grid.scores.jm.pos-acc: the table has nothing"),
        ("| JM | −64.2", "| NS | −64.2", "grid.scores.ns.pos-acc: the table has -64.2, docs/results.json has nothing"),
        ("| JM | .514", "| JM | .513", "README.md:9: grid.scores.jm.mean-sd: the table has [0.513, 8e-06]"),
        ("| JM | .514", "| LS | .514", "README.md:9: grid.scores.ls.mean-sd: the table has [0.514, 8e-06]"),
        ("half of", "0.7 of", "README.md:14: expected <!-- table: GROUP.NAME --> below the table, got none"),
        ("<!-- table: grid.scores -->\n", "", "docs/results.json: grid.scores is shown nowhere"),
        ("<!-- table: grid.scores", "<!-- table: grid.others", "docs/results.json has nothing"),
    ],
)
def test_what_differs_is_found(tmp_path: Path, old: str, new: str, expected: str):
    assert PAGE.count(old) == 1
    found = problems(tmp_path, PAGE.replace(old, new))
    assert any(expected in problem for problem in found), found


def test_a_group_of_results_has_a_command_and_a_date(tmp_path: Path):
    assert problems(tmp_path, other={"values": {"x": SCORES}}) == [
        "docs/results.json: other: expected command, got none",
        "docs/results.json: other: expected date, got none",
        "docs/results.json: other.x is shown nowhere",
    ]


def test_tables_are_taken_over_and_what_is_shown_nowhere_goes(tmp_path: Path):
    other = {"command": "make", "date": "2026-11-16", "values": {"x": SCORES}}
    assert problems(tmp_path, PAGE.replace(".514", ".515"), other=other) != []
    figures.take(tmp_path)
    assert figures.problems(tmp_path) == []
    results = json.loads((tmp_path / figures.RESULTS).read_text())
    assert list(results) == ["grid"]
    assert results["grid"]["values"]["scores"]["jm"]["mean-sd"] == [0.515, 8e-6]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**80.1** ± 2.0", [80.1, 2.0]),
        ("−0.31 (.10), 3e-6", [-0.31, 0.1, 3e-6]),
        ("+1.2 (-2 %), .643 / .253", [1.2, -2, 0.643, 0.253]),
        ("33,032,916 of `7`", [33032916]),
        ("UTF-8, F1, x2", []),
    ],
)
def test_numbers_are_read_as_they_are_written(text: str, expected: list[float]):
    assert figures.numbers_of(text) == expected


GLOSSARY = (
    "task, language, cell, grid, seen, unseen, head, encoder, features, latent, posterior, plug-in, averaged, entropy, "
    "mutual information, calibration, conformal label set, zero-shot, URIEL"
)
JARGON = r"\b(heads?|latents?|posteriors?|plug-in|entropy|conformal|URIEL|Bayesian)\b"


def test_words_are_explained_before_they_are_used():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    before, _, rest = page.partition("## Words\n")
    glossary, _, _ = rest.partition("\n## ")
    words = {word for row in re.findall(r"^\| ([^|]+) \|", glossary, re.M) for word in row.split(", ")}
    assert set(GLOSSARY.split(", ")) <= words
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first_screen = readme.partition("\n## ")[0]
    assert len(first_screen) < len(readme)
    for text in (before, first_screen):
        assert re.findall(JARGON, text) == []
