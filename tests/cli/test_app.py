"""What every command has in common: help that hides nothing, the version, completion, and a light start."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import crossfill
from crossfill.cli.app import app

RUN = CliRunner()


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))


COMMANDS = dict(walk(typer.main.get_command(app)))


def squeezed(text: str) -> str:
    """Text without spaces: help is broken into lines."""
    return "".join(text.split())


def child(*arguments: str, **environment: str) -> str:
    """What `crossfill` prints in a process of its own."""
    given = {**os.environ, **environment}
    command = [sys.executable, "-m", "crossfill", *arguments]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_hides_nothing_at_80_columns(path: tuple[str, ...]):
    shown = RUN.invoke(app, [*path, "--help"], env={"COLUMNS": "80"}).output
    assert shown == RUN.invoke(app, [*path, "-h"], env={"COLUMNS": "80"}).output
    assert max(map(len, shown.splitlines())) <= 80
    told = [text for parameter in COMMANDS[path].params if (text := getattr(parameter, "help", None))]
    told += [inner.short_help for inner in getattr(COMMANDS[path], "commands", {}).values() if inner.short_help]
    for text in told:
        assert squeezed(text) in squeezed(shown), text
    # after a bracket, and before a type, it means: as many as you like
    assert not re.search(r"(?<![]}])\.\.\.(?! <)", shown), "cut short"


def test_every_default_in_words_is_shown():
    texts = [getattr(parameter, "help", None) or "" for command in COMMANDS.values() for parameter in command.params]
    assert sum("[default: " in text for text in texts) > 15  # of which the test above found each in its help


def test_the_version():
    for option in ("--version", "-V"):
        assert RUN.invoke(app, [option]).output == f"crossfill {crossfill.__version__}\n"


def test_help_loads_neither_torch_nor_rich():
    program = (
        "import sys\nfrom crossfill.cli.app import main\nsys.argv = ['crossfill', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    print({'torch', 'numpy', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_shells_complete_commands_and_choices():
    script = child(_CROSSFILL_COMPLETE="source_bash")  # what --show-completion prints in a bash
    assert "complete -o default -F" in script

    def completed(line: str) -> list[str]:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(re.findall(" ", line)))}
        return child(_CROSSFILL_COMPLETE="complete_bash", **words).split()

    assert completed("crossfill ev") == ["evaluate"]
    assert completed("crossfill cache ") == ["list", "check", "clear"]
    assert completed("crossfill train --max") == ["--max-train"]


def test_seeds_that_no_generator_takes_are_refused():
    for path, command in COMMANDS.items():
        names = [parameter.name for parameter in command.params]
        for seed in ("-1", str(2**32), "1e30") if "seed" in names else ():
            result = RUN.invoke(app, [*path, "--seed", seed, *("x" for p in command.params if p.required)])
            assert result.exit_code == 2, (path, seed)
            assert "seed" in result.output
