"""The notebooks of the documentation: run them, write their output into them, and show them as pages of the site.

    python tools/notebooks.py docs/notebooks/*.ipynb

runs each from top to bottom in an empty folder and keeps what it prints and shows. A kernel would do the same; without
one, nothing has to be installed.
"""

import ast
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "docs" / "notebooks"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    """A notebook, as nbformat 4 has it."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.get("nbformat") != 4:
        raise ValueError(f"{path}: expected nbformat 4, got {found.get('nbformat')}")
    return found


def write(path: Path, notebook: Notebook) -> None:
    """Write a notebook as Jupyter does."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run(notebook: Notebook, where: str) -> Notebook:
    """The notebook with the output of its cells, run in order in an empty folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    with TemporaryDirectory() as folder, chdir(folder):
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                count += 1
                outputs = list(_run_cell("".join(cell["source"]), names, f"{where}, cell {number}", count))
                cell = {**cell, "execution_count": count, "outputs": outputs}
            cells.append(cell)
    return {**notebook, "cells": cells}


def _run_cell(source: str, names: dict[str, Any], where: str, count: int) -> Iterator[dict[str, Any]]:
    """What a cell prints on standard output, and the value of its last line; progress on standard error is left out."""
    *statements, last = ast.parse(source, where).body
    shown = isinstance(last, ast.Expr)
    printed, value = StringIO(), None
    with redirect_stdout(printed), redirect_stderr(StringIO()):
        exec(compile(ast.Module(statements if shown else [*statements, last], []), where, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    if text := printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": value._repr_html_().splitlines(keepends=True)} | data
        yield {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def texts(notebook: Notebook) -> list[str]:
    """The output of every code cell as text."""
    return [
        "".join(line for output in cell["outputs"] for line in output.get("text") or output["data"]["text/plain"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def agrees(shown: str, got: str, tolerance: float = 0.02) -> bool:
    """Whether two outputs are the same but for numbers, which may differ a little (relative, or absolute below 1)."""
    if _NUMBER.sub("#", re.sub(r" +", " ", shown)) != _NUMBER.sub("#", re.sub(r" +", " ", got)):
        return False
    pairs = zip(map(float, _NUMBER.findall(shown)), map(float, _NUMBER.findall(got)), strict=True)
    return all(abs(a - b) <= tolerance * max(1.0, abs(a)) for a, b in pairs)


def pages() -> dict[str, str]:
    """The notebooks as pages in Markdown, by their paths in docs/."""
    return {f"notebooks/{path.stem}.md": page(read(path), path.name) for path in sorted(NOTEBOOKS.glob("*.ipynb"))}


def page(notebook: Notebook, name: str) -> str:
    """A notebook as Markdown: its text, its code, and below each cell what it gave."""
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "text/html" in data:
                parts.append('<div class="output">' + "".join(data["text/html"]).replace("\n", " ") + "</div>")
            else:
                parts.append("```text\n" + "".join(output.get("text") or data["text/plain"]).rstrip() + "\n```")
    parts.insert(1, f"*This page is a notebook: [{name}]({name}) runs as it stands.*")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run notebooks, and write their output into them."""
    os.environ["OMP_NUM_THREADS"] = "1"  # the same sums in the same order wherever it runs
    for name in sys.argv[1:]:
        path = Path(name)
        write(path, run(read(path), path.name))
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
