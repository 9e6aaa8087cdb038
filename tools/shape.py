"""Print the size of the house: lines and files of each room, names that mean two things, long parameter lists, options.

    python tools/shape.py            the table, and what is over its ceiling
    python tools/shape.py --names    also the names, modules and functions that are counted

Ceilings only fall: who makes the house smaller lowers them in the same commit (`tests/test_shape.py` holds them).
"""

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = "crossfill"

CEILINGS = {
    "lines": 26460,
    "files": 178,
    "public names defined twice": 0,
    "module names used twice": 0,
    "functions over 7 parameters": 1,
    "modules under 60 lines with one importer": 1,
    "modules behind cli.predict": 66,
    "options": 111,
}
"""The largest value allowed of each measure."""

INTERFACES = {"build", "draw", "labelled_sentences", "main", "parse", "plan", "prepare", "read", "render", "routes"}
"""Names that siblings of one interface share: methods build, plan and prepare, formats read and render."""

MOST_PARAMETERS = 7
SMALL = 60


@dataclass(frozen=True)
class Module:
    """A source file, its syntax tree, and the modules of the package that it imports."""

    name: str
    path: Path
    tree: ast.Module
    lines: int
    imports: frozenset[str]

    @property
    def room(self) -> str:
        """The folder under the package, or the package itself."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 2 or (self.path.name == "__init__.py" and len(parts) == 2) else PACKAGE


def modules(source: Path = ROOT / "src") -> dict[str, Module]:
    """Read all modules of the package."""
    paths = {_name(path, source): path for path in sorted((source / PACKAGE).rglob("*.py"))}
    read = {}
    for name, path in paths.items():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        read[name] = Module(name, path, tree, len(text.splitlines()), frozenset(_imports(tree, set(paths))))
    return read


def _name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """Yield the package's modules that a module imports anywhere, at its top or inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known:
                    yield inner
                elif node.module in known:
                    yield node.module


def rooms(house: dict[str, Module]) -> dict[str, tuple[int, int]]:
    """Count lines and files of each room."""
    counted: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for module in house.values():
        lines, files = counted[module.room]
        counted[module.room] = (lines + module.lines, files + 1)
    return dict(sorted(counted.items()))


def names_defined_twice(house: dict[str, Module]) -> dict[str, list[str]]:
    """Find public classes and functions that several modules define; commands and siblings of an interface may."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in house.values():
        if module.room == "cli":
            continue
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1 and name not in INTERFACES}


def module_names_used_twice(house: dict[str, Module]) -> dict[str, list[str]]:
    """Find names of modules that occur in two or more rooms; a command may be called like the room it starts."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in house.values():
        if module.path.name != "__init__.py" and module.room != "cli":
            places[module.name.rsplit(".", 1)[1]].append(module.name)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def long_parameter_lists(house: dict[str, Module]) -> dict[str, int]:
    """Find functions outside `cli` that take more than seven parameters."""
    return {
        f"{module.name}.{node.name}": n
        for module in house.values()
        if module.room != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (n := _n_parameters(node)) > MOST_PARAMETERS
    }


def _n_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def lonely_modules(house: dict[str, Module]) -> dict[str, str]:
    """Find modules under 60 lines that one other module imports and nothing else; commands and figures aside."""
    importers: dict[str, list[str]] = defaultdict(list)
    for module in house.values():
        for name in module.imports:
            importers[name].append(module.name)
    return {
        name: importers[name][0]
        for name, module in house.items()
        if module.lines < SMALL
        and module.path.name != "__init__.py"
        and len(importers[name]) == 1
        and module.room != "cli"
        and "figures" not in name
    }


def behind(house: dict[str, Module], name: str) -> set[str]:
    """Find all modules that a module imports, directly or through others."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for imported in house[waiting.pop()].imports - seen:
            seen.add(imported)
            waiting.append(imported)
    return {other for other in seen if house[other].path.name != "__init__.py" and other != name}


def n_options() -> dict[str, int]:
    """Count the options of each command, --help aside."""
    import typer

    from crossfill.cli.app import app

    counts: dict[str, int] = {}

    def count(command: Any, path: str) -> None:
        if inner := getattr(command, "commands", None):
            for name, subcommand in inner.items():
                count(subcommand, f"{path} {name}".strip())
        else:
            counts[path] = sum(p.param_type_name == "option" and p.name != "help" for p in command.params)

    count(typer.main.get_command(app), "")
    return counts


def measure(house: dict[str, Module]) -> dict[str, int]:
    """Take every measure that has a ceiling."""
    counted = rooms(house).values()
    return {
        "lines": sum(lines for lines, _ in counted),
        "files": sum(files for _, files in counted),
        "public names defined twice": len(names_defined_twice(house)),
        "module names used twice": len(module_names_used_twice(house)),
        "functions over 7 parameters": len(long_parameter_lists(house)),
        "modules under 60 lines with one importer": len(lonely_modules(house)),
        "modules behind cli.predict": len(behind(house, "crossfill.cli.predict")),
        "options": sum(n_options().values()),
    }


def main() -> int:
    """Print the measures; the exit code is 1 if one is over its ceiling."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="also list what is counted")
    arguments = parser.parse_args()
    house = modules()
    for room, (lines, files) in rooms(house).items():
        print(f"{room:14} {lines:6} lines {files:4} files")
    over = 0
    for what, value in measure(house).items():
        ceiling = CEILINGS[what]
        over += value > ceiling
        print(f"{what:42} {value:6}   ceiling {ceiling}{'   OVER' if value > ceiling else ''}")
    if arguments.names:
        for title, listed in (
            ("Public names defined twice", names_defined_twice(house)),
            ("Module names used twice", module_names_used_twice(house)),
            ("Functions over 7 parameters", long_parameter_lists(house)),
            ("Modules under 60 lines with one importer", lonely_modules(house)),
            ("Options", n_options()),
        ):
            print(f"\n{title}")
            for name, detail in listed.items():
                print(f"  {name}: {', '.join(detail) if isinstance(detail, list) else detail}")
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main())
