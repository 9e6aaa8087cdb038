"""Hold the numbers in prose to the one file of results, docs/results.json.

    python tools/figures.py            says which numbers of README.md, docs/ and docstrings are in no result, or differ
    python tools/figures.py --take     first takes the tables of the pages over into docs/results.json

A paragraph, list or table names its results in a comment that stands in it or touches it, with no blank line between:

    PF-lr has 80.1 there, a shared head 51.4.
    <!-- results: synthetic.scores.pf-lr.mean synthetic.scores.jm.mean -->

Every result that is named has to be there, rounded as shown, and every figure that is there has to be of such a result.
A figure is a number with a decimal point, an exponent, a thousands comma, a ±, a per cent sign or a unit, outside of
code, links, dates and versions. Figures that were not measured (settings, goals, those of the paper) are listed:

    <!-- not measured: 0.001 90 % -->

A key of a group names all of its results. A whole table is compared cell by cell; its keys are the first words of rows
and columns (`real.scores.ner.pf-lr`), and a list is what one cell has, the result and then its ± or p:

    <!-- table: real.scores -->

What docstrings say stands under `code`, with its file (or src/**/*.py) and result, or why it is none.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path("docs") / "results.json"
NUMBER = re.compile(r"(?<![\w.−])(?<![A-Za-z]-)[−+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)(?:e-?\d+)?(?!\w)")
UNIT = r"%|(?:ms|s|seconds?|minutes?|hours?|[kMGT]B|nats|points?|times)\b"
FIGURE_BEFORE = re.compile(r"\d\s?±\s?\Z")
FIGURE_AFTER = re.compile(rf"(?:\s?(?:to|and|or|–|/|,)\s?{NUMBER.pattern})*\s?(?:{UNIT})")
COMMENT = re.compile(r"<!--\s*(?P<kind>[\w ]+?):\s*(?P<text>.*?)\s*-->", re.DOTALL)
EXAMPLE = re.compile(r"^\s*>>>.*(?:\n.*\S.*)*", re.MULTILINE)
NO_PROSE = (
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"`[^`]*`"),
    re.compile(r"\]\([^)]*\)"),
    re.compile(r"https?://\S+"),
    re.compile(r"\b\d{4}-\d\d-\d\d\b"),
    re.compile(r"(?:Python|torch|UD|Dependencies|release|Apache|ISO|§|[Ss]ection)\s[\d.]+(?:(?: to |-| -)[\d.]+)*"),
)


@dataclass(frozen=True)
class Number:
    """A number as a text shows it."""

    text: str
    figure: bool
    """Whether it has to be of a result."""

    @property
    def value(self) -> float:
        plain = self.text.replace(",", "").replace("−", "-")
        return float(plain) if "." in plain or "e" in plain else int(plain)

    def shows(self, value: float) -> bool:
        """Whether this is the value, rounded to as many places as are shown."""
        if "e" in self.text:
            return self.value == value
        places = len(self.text.partition(".")[2])
        return abs(self.value - value) <= 0.5 * 10**-places + 1e-9


@dataclass(frozen=True)
class Block:
    """A paragraph, list or table of a page, outside of code."""

    where: str
    text: str

    def named(self, kind: str) -> str:
        """What the comments of a kind say."""
        return " ".join(found["text"] for found in COMMENT.finditer(self.text) if found["kind"] == kind)

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table, heading first; nothing for prose."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip().startswith("|")]
        cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
        return [row for row in cells if not all(re.fullmatch(":?-+:?", cell) for cell in row)]


def numbers(text: str) -> list[Number]:
    """The numbers of a text, without those of code, links, dates and versions."""
    for pattern in NO_PROSE:
        text = pattern.sub(" ", text)
    text = text.replace("*", "")
    return [
        Number(
            found.group(),
            any(mark in found.group() for mark in ".,e")
            or bool(FIGURE_BEFORE.search(text, 0, found.start()) or FIGURE_AFTER.match(text, found.end())),
        )
        for found in NUMBER.finditer(text)
    ]


def blocks(page: str, name: str) -> Iterator[Block]:
    """The blocks of a page between blank lines, without fenced code."""
    kept, fenced, start = list[str](), False, 1
    for number, line in enumerate([*page.splitlines(), ""], start=1):
        fence = line.lstrip().startswith("```")
        if line.strip() and not fenced and not fence:
            start = start if kept else number
            kept.append(line)
            continue
        fenced = fenced != fence
        if kept:
            yield Block(f"{name}:{start}", "\n".join(kept))
        kept = []


def table(rows: list[list[str]]) -> dict[str, dict[str, Any]]:
    """The numbers of a table by row and column: one, or a list where a cell has several."""
    found: dict[str, dict[str, Any]] = {}
    columns = _names(rows[0] if rows else [])
    for name, row in zip(_names([row[0] for row in rows[1:]]), rows[1:], strict=True):
        values = {column: [n.value for n in numbers(cell)] for column, cell in zip(columns[1:], row[1:], strict=True)}
        kept = {column: own if len(own) > 1 else own[0] for column, own in values.items() if own}
        if kept:
            found[name] = kept
    return found


def _names(labels: list[str]) -> list[str]:
    """Keys for the labels of rows or columns: up to the first of , : ( ±, or as much more as tells them apart."""
    names = labels
    for cut in ("$", r"[(±]", r"[,:(±]"):
        shorter = [re.sub(r"\W+", "-", re.split(cut, label.lower())[0]).strip("-") for label in labels]
        names = [own if own and shorter.count(own) == 1 else name for own, name in zip(shorter, names, strict=True)]
    return [own if names.count(own) == 1 else f"{own}-{names[:i].count(own) + 1}" for i, own in enumerate(names)]


def find(results: dict[str, Any], key: str) -> Any:
    """The result or group of results of a key, `group.name.…`; a KeyError if there is none."""
    group, *path = key.split(".")
    found = results[group]["values"]
    for name in path:
        found = found[int(name)] if isinstance(found, list) else found[name]
    return found


def leaves(found: Any, key: str = "") -> Iterator[tuple[str, list[float]]]:
    """The results under a key, each with the numbers that stand beside it."""
    if isinstance(found, dict):
        for name, inner in found.items():
            yield from leaves(inner, f"{key}.{name}" if key else name)
    else:
        yield key, found if isinstance(found, list) else [found]


def block_problems(block: Block, results: dict[str, Any], used: set[str]) -> list[str]:
    """Where a block and its results differ; `used` collects the keys it names."""
    found: list[str] = []
    named, covered = {}, []
    for key in (*block.named("table").split(), *block.named("results").split()):
        try:
            named[key] = find(results, key)
        except (KeyError, IndexError, TypeError, ValueError):
            found.append(f"{block.where}: expected a key of {RESULTS}, got '{key}'")
    whole = block.named("table")
    labels = [cell for i, row in enumerate(block.rows) for cell in (row if i == 0 else row[:1])]
    shown = numbers("\n".join(labels) if whole else block.text)
    if whole in named:
        found += _table_problems(block, named.pop(whole), whole, used)
    for key, values in named.items():
        for name, own in leaves(values, key):
            used.add(name)
            covered += own
            if not any(number.shows(own[0]) for number in shown):
                found.append(f"{block.where}: expected {own[0]} ({name} in {RESULTS}), not found here")
    given = numbers(block.named("not measured"))
    for number in given:
        if all(number.value != other.value for other in shown):
            found.append(f"{block.where}: {number.text} is said to be not measured, but is not there")
    covered += [number.value for number in given]
    for number in shown:
        if number.figure and not any(number.shows(value) for value in covered):
            found.append(
                f"{block.where}: {number.text} is of no result that is named here; name it in a comment "
                "(<!-- results: KEY -->), or if it was not measured, say so (<!-- not measured: NUMBER -->)"
            )
    return found


def _table_problems(block: Block, values: dict[str, Any], key: str, used: set[str]) -> list[str]:
    here, there = dict(leaves(table(block.rows), key)), dict(leaves(values, key))
    used |= set(there)
    return [
        f"{block.where}: {name}: the table has {here.get(name, 'nothing')}, {RESULTS} has {there.get(name, 'nothing')}"
        for name in {**here, **there}
        if here.get(name) != there.get(name)
    ]


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Every string that stands alone in a module, on one line and without examples, with the number of its line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield node.lineno, _flat(EXAMPLE.sub("", text))


def code_problems(root: Path, results: dict[str, Any], used: set[str]) -> list[str]:
    """Figures of docstrings that are not listed under `code`, and what is listed but not there."""
    found: list[str] = []
    sources = {path: path.read_text(encoding="utf-8") for path in sorted((root / "src").rglob("*.py"))}
    listed: dict[Path, list[str]] = {path: [] for path in sources}
    for entry in results["code"]:
        text = _flat(entry["text"])
        places = [path for path in root.glob(entry["file"]) if text in _flat(sources[path])]
        for path in places:
            listed[path].append(text)
        if not places:
            found.append(f"{RESULTS}: code: '{text}' is not in {entry['file']}")
        if "result" in entry:
            used |= {name for name, _ in leaves(find(results, entry["result"]), entry["result"])}
        elif not entry.get("why"):
            found.append(f"{RESULTS}: code: expected result or why, got neither for '{text}'")
    for path, source in sources.items():
        for line, text in docstrings(source):
            for known in listed[path]:
                text = text.replace(known, " ")
            found += [
                f"{path.relative_to(root).as_posix()}:{line}: {number.text} is not listed under code in {RESULTS}; "
                "list it with its result or with a why, or say it without a number"
                for number in numbers(text)
                if number.figure
            ]
    return found


def _flat(text: str) -> str:
    """A text on one line, without the marks of comments at the start of lines."""
    return " ".join(re.sub(r"^\s*#\s", " ", text, flags=re.MULTILINE).split())


def pages(root: Path) -> Iterator[Block]:
    """The blocks of all pages."""
    for path in (root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))):
        yield from blocks(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())


def problems(root: Path = ROOT) -> list[str]:
    """All that is wrong."""
    results = json.loads((root / RESULTS).read_text(encoding="utf-8"))
    used: set[str] = set()
    found = [problem for block in pages(root) for problem in block_problems(block, results, used)]
    found += code_problems(root, results, used)
    groups = {name: group for name, group in results.items() if name != "code"}
    for name, group in groups.items():
        lacking = [field for field in ("command", "date", "values") if not group.get(field)]
        found += [f"{RESULTS}: {name}: expected {field}, got none" for field in lacking]
        found += [
            f"{RESULTS}: {key} is shown nowhere" for key, _ in leaves(group.get("values"), name) if key not in used
        ]
    return found


def take(root: Path = ROOT) -> None:
    """Take the tables of the pages over into the file of results."""
    path = root / RESULTS
    results = json.loads(path.read_text(encoding="utf-8"))
    for block in pages(root):
        if key := block.named("table"):
            group, name = key.split(".")
            results[group]["values"][name] = table(block.rows)
    path.write_text(as_json(results), encoding="utf-8")


def as_json(results: dict[str, Any]) -> str:
    """The results as text, a row of a table on one line."""
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
