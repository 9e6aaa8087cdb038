"""Hold the tables of the pages to the one file of results, docs/results.json.

    python tools/figures.py            says where they differ
    python tools/figures.py --take     first takes the tables over into docs/results.json

A comment right below a table names its group, which has the command and the date, and the table in it:

    | unseen cells | PF-lr | JM |
    |---|---|---|
    | POS, accuracy | **61.0** ± 0.2 | 60.1 |
    <!-- table: grid.scores -->

Results are found by the labels of row and column (`grid.scores.pos-accuracy.pf-lr`); a list is what one cell has, the
result and then its ± or p. A table with some rows and columns of another one says so, and is held to it:

    <!-- part of table: grid.scores -->

On README.md and docs/results.md, every table with fractions needs such a comment.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path("docs") / "results.json"
HELD = ("README.md", "docs/results.md")
"""Pages on which no table with fractions may go without its results."""
NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)[−+-]?(?:\d[\d,]*)?\.?\d+(?:e-?\d+)?(?!\w)")
COMMENT = re.compile(r"<!-- (part of )?table: (\w[\w-]*)\.(\w[\w-]*) -->")
Values = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """A table of a page."""

    where: str
    rows: list[list[str]]
    """The text of its cells, heading first."""
    group: str = ""
    name: str = ""
    part: bool = False

    @property
    def values(self) -> Values:
        """The numbers by row and column: one, or a list where a cell has several."""
        columns = [slug(label) for label in self.rows[0]]
        found: Values = {}
        for label, *cells in self.rows[1:]:
            numbers = {column: numbers_of(cell) for column, cell in zip(columns[1:], cells, strict=True)}
            row = {column: own if len(own) > 1 else own[0] for column, own in numbers.items() if own}
            if row:
                found[slug(label)] = row
        return found


def slug(label: str) -> str:
    """Return the key for the label of a row or column."""
    return re.sub(r"\W+", "-", label.lower()).strip("-")


def numbers_of(cell: str) -> list[float]:
    """Return the numbers of a cell, without those in code."""
    plain = re.sub(r"`[^`]*`", " ", cell).replace("*", "")
    return [_number(found.group().replace(",", "").replace("−", "-")) for found in NUMBER.finditer(plain)]


def _number(text: str) -> float:
    return float(text) if "." in text or "e" in text else int(text)


def tables(page: str, name: str) -> Iterator[Table]:
    """Yield the tables of a page."""
    rows: list[list[str]] = []
    for number, line in enumerate([*page.splitlines(), ""], start=1):
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            key = COMMENT.fullmatch(line)
            shown = [row for row in rows if not all(re.fullmatch(":?-+:?", cell) for cell in row)]
            yield Table(f"{name}:{number - len(rows)}", shown, *((key[2], key[3], bool(key[1])) if key else ()))
            rows = []


def pages(root: Path) -> Iterator[Table]:
    """Yield the tables of all pages."""
    for path in (root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))):
        yield from tables(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())


def leaves(values: Values, key: str) -> dict[str, Any]:
    """Return the results of a table by their whole names."""
    return {f"{key}.{row}.{column}": value for row, cells in values.items() for column, value in cells.items()}


def problems(root: Path = ROOT) -> list[str]:
    """Return all that is wrong."""
    results = json.loads((root / RESULTS).read_text(encoding="utf-8"))
    found, shown = list[str](), set[str]()
    for table in pages(root):
        key = f"{table.group}.{table.name}"
        if not table.group:
            held = table.where.rpartition(":")[0] in HELD
            if held and any(isinstance(n, float) for row in table.rows for cell in row[1:] for n in numbers_of(cell)):
                found.append(f"{table.where}: expected <!-- table: GROUP.NAME --> below the table, got none")
            continue
        here = leaves(table.values, key)
        there = leaves(results.get(table.group, {}).get("values", {}).get(table.name, {}), key)
        found += [
            f"{table.where}: {name}: the table has {here.get(name, 'nothing')}, "
            f"{RESULTS} has {there.get(name, 'nothing')}"
            for name in (here if table.part else here | there)
            if here.get(name) != there.get(name)
        ]
        if not table.part:
            shown.add(key)
    for name, group in results.items():
        lacking = [field for field in ("command", "date", "values") if not group.get(field)]
        found += [f"{RESULTS}: {name}: expected {field}, got none" for field in lacking]
        keys = [f"{name}.{table}" for table in group.get("values", {})]
        found += [f"{RESULTS}: {key} is shown nowhere" for key in keys if key not in shown]
    return found


def take(root: Path = ROOT) -> None:
    """Take the tables of the pages over into the file of results; what no page shows goes."""
    path = root / RESULTS
    old = json.loads(path.read_text(encoding="utf-8"))
    results = {name: {**group, "values": {}} for name, group in old.items()}
    for table in pages(root):
        if table.group and not table.part:
            results[table.group]["values"][table.name] = table.values
    path.write_text(as_json({name: group for name, group in results.items() if group["values"]}), encoding="utf-8")


def as_json(results: dict[str, Any]) -> str:
    """Return the results as text, a row of a table on one line."""
    text = json.dumps(results, indent=1, ensure_ascii=False)
    for innermost in (r"\[[^\[\]{}]*\]", r"\{[^{}]*\}"):
        text = re.sub(innermost, lambda found: re.sub(r"(?<=[\[{])\n\s*|\n\s*(?=[\]}])", "", found.group()), text)
        text = re.sub(innermost, lambda found: re.sub(r"\n\s*", " ", found.group()), text)
    return text + "\n"


def main() -> None:
    """Print all problems; exit code 1 if there are any."""
    if "--take" in sys.argv[1:]:
        take()
    found = problems()
    print(*found, f"{len(found)} problems", sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
