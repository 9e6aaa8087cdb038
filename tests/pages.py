"""The code blocks of a Markdown page, and how to run them as a reader would."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_RULE = re.compile(r"<!-- run: (?P<rule>.+) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    kind: str
    """`console`, `python`, `yaml` or `text`; only what a reader would type is run."""
    text: str
    rule: str
    """What the comment above it says: nothing, `slow …`, `no, REASON`, or `by FILE`."""

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def typed(self) -> bool:
        return self.kind in ("console", "python")


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    found, lines = [], page.read_text(encoding="utf-8").splitlines()
    start = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        rule = _RULE.fullmatch(lines[start - 1]) if start else None
        text = "\n".join(lines[start + 1 : number])
        found.append(Block(page, start + 1, lines[start][3:].strip(), text, rule["rule"] if rule else ""))
        start = None
    return found


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it; a line that ends in \\ goes on."""
    parts = re.split(r"^\$ ", re.sub(r"\\\n\s*", "", block.text), flags=re.MULTILINE)
    assert not parts[0].strip(), f"{block.where}: expected '$ ' before the first command"
    for part in parts[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def agrees(shown: str, got: str) -> bool:
    """Whether output is as shown, where … stands for anything, and spaces at the ends of lines do not count."""
    shown, got = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (shown, got))
    pattern = "".join(".*?" if part == "…" else re.escape(part) for part in re.split("(…)", shown))
    return re.fullmatch(pattern, got, flags=re.DOTALL) is not None


def shell(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What a command prints, on both streams; it has to end well."""
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def arguments(command: str) -> tuple[str, list[str]]:
    """The command that pipes into crossfill, if any, and the arguments of crossfill."""
    before, _, own = command.rpartition(" | ")
    name, *rest = shlex.split(own)
    assert name == "crossfill", f"expected a crossfill command, got {command}"
    return before, rest
