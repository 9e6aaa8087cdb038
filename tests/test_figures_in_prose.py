"""Every figure in README.md, docs/ and docstrings is that of docs/results.json; and what is wrong would be found."""

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

PF-lr has 80.1 there, a shared head 51.4, with a learning rate of 0.001; p = .004.
<!-- results: grid.scores.pf-lr.mean grid.scores.jm.mean -->
<!-- results: grid.gain -->
<!-- not measured: 0.001 -->

| method | pos acc. | mean ± sd |
|---|---|---|
| PF-lr, low rank | 1,089.0 | **80.1** ± 2.0 |
| JM | −64.2 | 51.4 ± 1.7 |
<!-- table: grid.scores -->

`0.5` in code, [links](https://example.org/0.7) and Python 3.11 to 3.13 have none, 2026-11-16 has none:

```console
$ crossfill train --set training.dropout=0.25
```
"""
SCORES = {"pf-lr": {"pos-acc": 1089.0, "mean": [80.1, 2.0]}, "jm": {"pos-acc": -64.2, "mean": [51.4, 1.7]}}
MODULE = '''"""A module that takes a fifth of the time, 2.5 times as fast.

>>> 0.5
0.5
"""
'''
CODE = [{"file": "src/module.py", "text": "a fifth of the time, 2.5 times as fast", "result": "grid.speed"}]


def problems(folder: Path, page: str = PAGE, module: str = MODULE, **changes: Any) -> list[str]:
    """The problems of a small repository."""
    group = {"command": "make", "date": "2026-11-16", "values": {"scores": SCORES, "gain": [28.7, 0.004], "speed": 2.5}}
    results = {"grid": {**group, "values": group["values"] | changes.pop("values", {})}, "code": CODE} | changes
    for name, text in {"README.md": page, "CONTRIBUTING.md": "", "src/module.py": module}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "docs").mkdir(exist_ok=True)
    (folder / figures.RESULTS).write_text(figures.as_json(results), encoding="utf-8")
    return figures.problems(folder)


def test_every_figure_in_prose_and_docstrings_is_in_the_results():
    assert figures.problems(ROOT) == []


def test_commands_of_results_are_there():
    for name, group in RESULTS.items():
        if name != "code":
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", group["date"]), name
            for path in re.findall(r"(?:benchmarks|configs)/[\w.]+", group["command"]):
                assert (ROOT / path).exists(), f"{name}: {path}"


def test_the_demo_of_the_readme_has_the_scores_of_the_results():
    """The block is compared with the demo itself by a slow test."""
    shown = (ROOT / "README.md").read_text()
    rows = re.findall(r"^│ (PF-lr|PF-d|JM) .*?│ +([\d.]+) │ +[\d.]+ │ +(?:\d+|…) │$", shown, re.M)
    assert {name.lower(): float(mean) for name, mean in rows} == figures.find(RESULTS, "demo.scores")


def test_differences_that_prose_states_are_those_of_the_tables():
    def score(key: str) -> float:
        return next(figures.leaves(figures.find(RESULTS, key)))[1][0]

    for stated, one, other in (
        ("synthetic.margins.above-jm", "synthetic.scores.pf-lr.mean", "synthetic.scores.jm.mean"),
        ("synthetic.margins.below-oracle", "synthetic.scores.oracle.mean", "synthetic.scores.pf-lr.mean"),
        ("real.claims.pos-above-best-of-ns-ls-bea", "real.scores.pos.pf-lr", "real.scores.pos.bea"),
        ("real.claims.ner-above-best-of-ns-ls-bea", "real.scores.ner.pf-lr", "real.scores.ner.ls"),
        ("real.claims.pos-above-jm", "real.scores.pos.pf-lr", "real.scores.pos.jm"),
        ("real.depth.ner-above-jm", "real.scores.ner.jm-deep", "real.scores.ner.jm"),
        ("six-tasks.scores.case.pf-lr-jm", "six-tasks.scores.case.pf-lr", "six-tasks.scores.case.jm"),
        ("six-tasks.pf-d.mean-above-jm", "six-tasks.scores.mean.pf-d", "six-tasks.scores.mean.jm"),
        ("fresh.pos.difference", "fresh.pos.pf-lr", "fresh.pos.jm"),
    ):
        assert score(one) - score(other) == pytest.approx(score(stated), abs=0.051), stated


def test_a_figure_that_is_changed_anywhere_is_found():
    """One figure after the other, with another last digit; of large tables, some of them."""
    changed = 0
    for block in figures.pages(ROOT):
        if not (block.named("results") or block.named("table")):
            continue
        found = sorted({n.text for n in figures.numbers(block.text) if n.figure})
        for number in found[:: 1 + len(found) // 20]:
            digits = re.sub(r"e.*", "", number)
            other = f"{digits[:-1]}{(int(digits[-1]) + 5) % 10}{number[len(digits) :]}"
            prose, comments = block.text.split("<!--", 1)
            text = re.sub(rf"(?<![\w.,]){re.escape(number)}(?![\w]|[.,]\d)", other, prose) + "<!--" + comments
            if text != block.text:
                changed += 1
                assert figures.block_problems(figures.Block(block.where, text), RESULTS, set()), (
                    f"{block.where} {number}"
                )
    assert changed > 300


def test_a_page_that_agrees_has_no_problems(tmp_path: Path):
    assert problems(tmp_path, PAGE.replace("; p", " (28.7); p")) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("80.1 there", "80.2 there", "README.md:3: expected 80.1 (grid.scores.pf-lr.mean in docs/results.json)"),
        ("80.1 there", "80.2 there", "README.md:3: 80.2 is of no result that is named here"),
        ("a shared head", "and 12 % more, a shared head", "README.md:3: 12 is of no result that is named here"),
        ("a shared head", "in 3 ms, a shared head", "README.md:3: 3 is of no result that is named here"),
        ("a shared head", "3 to 5 times, a shared head", "README.md:3: 3 is of no result that is named here"),
        ("a shared head", "2,500 words, a shared head", "README.md:3: 2,500 is of no result that is named here"),
        ("measured: 0.001", "measured: 0.001 0.002", "README.md:3: 0.002 is said to be not measured, but is not there"),
        ("grid.gain", "grid.loss", "README.md:3: expected a key of docs/results.json, got 'grid.loss'"),
        ("grid.gain", "grid.scores.jm.pos-acc", "docs/results.json: grid.gain is shown nowhere"),
        ("1,089.0", "1,089.1", "grid.scores.pf-lr.pos-acc: the table has [1089.1], docs/results.json has [1089.0]"),
        ("± 2.0", "± 2.1", "grid.scores.pf-lr.mean: the table has [80.1, 2.1], docs/results.json has [80.1, 2.0]"),
        ("| JM | −64.2", "| JM | ", "grid.scores.jm.pos-acc: the table has nothing"),
        ("| JM |", "| JM, 0.3 |", "README.md:8: 0.3 is of no result that is named here"),
        ("| JM |", "| NS |", "grid.scores.ns.mean: the table has [51.4, 1.7], docs/results.json has nothing"),
        ("have none, 2026", "have 0.7, 2026", "README.md:14: 0.7 is of no result that is named here"),
    ],
)
def test_what_differs_is_found(tmp_path: Path, old: str, new: str, expected: str):
    page = PAGE.replace("; p", " (28.7); p")
    assert page.count(old) == 1
    found = problems(tmp_path, page.replace(old, new))
    assert any(expected in problem for problem in found), found


def test_docstrings_are_held_to_what_is_listed(tmp_path: Path):
    page = PAGE.replace("; p", " (28.7); p")
    (found,) = problems(tmp_path, page, MODULE.replace("as fast", "as fast, in 90 MB"))
    assert found.startswith("src/module.py:1: 90 is not listed under code in docs/results.json")
    missing, unlisted = problems(tmp_path, page, MODULE.replace("2.5 times", "2.6 times"))
    assert missing == f"docs/results.json: code: '{CODE[0]['text']}' is not in src/module.py"
    assert unlisted.startswith("src/module.py:1: 2.6 is not listed")
    without = [{key: value for key, value in CODE[0].items() if key != "result"}]
    assert problems(tmp_path, page, values={"speed": 80.1}, code=without) == [
        f"docs/results.json: code: expected result or why, got neither for '{CODE[0]['text']}'",
        "docs/results.json: grid.speed is shown nowhere",
    ]


def test_a_result_has_a_command_and_a_date(tmp_path: Path):
    found = problems(tmp_path, PAGE.replace("; p", " (28.7); p"), other={"values": {"x": 80.1}})
    assert found == [
        "docs/results.json: other: expected command, got none",
        "docs/results.json: other: expected date, got none",
        "docs/results.json: other.x is shown nowhere",
    ]


def test_tables_are_taken_over(tmp_path: Path):
    page = PAGE.replace("; p", " (28.7); p")
    assert problems(tmp_path, page.replace("± 1.7", "± 1.8")) != []
    figures.take(tmp_path)
    assert figures.problems(tmp_path) == []
    assert figures.find(json.loads((tmp_path / figures.RESULTS).read_text()), "grid.scores.jm.mean") == [51.4, 1.8]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**80.1** ± 2.0", [80.1, 2.0]),
        ("−0.31 (.10), 3e-6", [-0.31, 0.1, 3e-6]),
        ("+1.2 (-2 %), .643 / .253", [1.2, -2, 0.643, 0.253]),
        ("80–84 %, 33,032,916", [80, 84, 33032916]),
        ("UTF-8, F1, x2, ISO 639-3, § 4.1, N(0, I)", [0]),
    ],
)
def test_numbers_are_read_as_they_are_written(text: str, expected: list[float]):
    assert [number.value for number in figures.numbers(text)] == expected


def test_a_number_is_rounded_as_it_is_shown():
    shown = {text: figures.Number(text, True) for text in ("80", "80.1", "80.12", "1e-3")}
    assert shown["80"].shows(80.12)
    assert shown["80.1"].shows(80.12)
    assert shown["80.12"].shows(80.12)
    assert not shown["80.1"].shows(80.16)
    assert not shown["80.12"].shows(80.1)
    assert not shown["1e-3"].shows(2e-3)


GLOSSARY = (
    "task, language, cell, grid, seen, unseen, head, encoder, features, latent, posterior, plug-in, averaged, entropy, "
    "mutual information, calibration, conformal label set, zero-shot, URIEL"
)
JARGON = (
    r"\b(heads?|encoders?|features?|latents?|posteriors?|plug-in|entropy|calibrat\w+|conformal|zero-shot|URIEL|Bayesian"
    r"|PF|JM)\b"
)


def test_words_are_explained_before_they_are_used():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    before, _, rest = page.partition("## Words\n")
    glossary, _, _ = rest.partition("\n## ")
    words = {word for row in re.findall(r"^\| ([^|]+) \|", glossary, re.M) for word in row.split(", ")}
    assert set(GLOSSARY.split(", ")) <= words
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first_screen = readme.partition("\nTwo commands")[0]
    assert len(first_screen) < len(readme)
    for text in (before, re.sub(r"<!--.*?-->", "", first_screen)):
        assert re.findall(JARGON, text) == []
