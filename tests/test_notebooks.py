"""The notebooks of the documentation are whole, small, and give what they show when they are run again."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import notebooks  # noqa: E402

PATHS = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))


def test_there_are_three():
    assert [path.stem for path in PATHS] == ["first-model", "own-treebank", "twenty-sentences"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_they_are_executed_small_and_of_no_machine(path: Path):
    notebook = notebooks.read(path)
    assert path.stat().st_size < 100_000
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(ids) == len(set(ids))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(notebooks.texts(notebook))
    text = path.read_text(encoding="utf-8")
    assert not any(word in text for word in ("/tmp", "/home", "/root", str(ROOT), "Traceback"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_run_again_they_give_the_same(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CROSSFILL_CACHE", str(tmp_path))
    shown = notebooks.read(path)
    got = notebooks.run(shown, path.name)
    for before, after in zip(notebooks.texts(shown), notebooks.texts(got), strict=True):
        assert notebooks.agrees(before, after), f"expected\n{before}\ngot\n{after}"


def test_cells_are_run_as_a_kernel_runs_them():
    source = [
        "import pathlib\n",
        "x = 3\n",
        "print('a')\n",
        "class Own:\n",
        "    def _repr_html_(self): return '<b>x</b>'\n",
    ]
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# T"]},
        {"cell_type": "code", "id": "b", "metadata": {}, "source": [*source, "Own()"], "outputs": []},
        {"cell_type": "code", "id": "c", "metadata": {}, "source": ["y = x + 1\n", "y"], "outputs": []},
        {"cell_type": "code", "id": "d", "metadata": {}, "source": ["pathlib.Path('f').touch()"], "outputs": []},
    ]
    made = notebooks.run({"cells": cells, "nbformat": 4}, "test")
    first, second, third = (cell["outputs"] for cell in made["cells"][1:])
    assert first[0] == {"name": "stdout", "output_type": "stream", "text": ["a\n"]}
    assert first[1]["data"]["text/html"] == ["<b>x</b>"]
    assert second[0]["data"] == {"text/plain": ["4"]}
    assert third == []
    assert not Path("f").exists()  # in a folder of its own
    page = notebooks.page(json.loads(json.dumps(made)), "t.ipynb")
    assert page.startswith("# T\n\n*This page is a notebook: [t.ipynb](t.ipynb)")
    assert '```text\na\n```\n\n<div class="output"><b>x</b></div>' in page


def test_outputs_are_compared():
    assert notebooks.agrees("score  0.50 of 12", "score 0.51 of 12")
    assert not notebooks.agrees("score 0.50", "score 0.60")
    assert not notebooks.agrees("a 1", "b 1")
    assert not notebooks.agrees("0.5", "0.5 0.5")
