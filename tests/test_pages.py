"""What the README and the documentation show is run, in order, page by page."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from crossfill.studies.study import check_runs, parse_study
from tests import world
from tests.pages import PAGES, ROOT, Block, agrees, arguments, blocks, commands, shell

EMPTY = "slow, in an empty folder"
GEMMA = os.environ.get("CROSSFILL_GEMMA", "")
"""A folder of the encoder that output with `--encoder gemma` is of; without it, a tiny one runs and is not compared."""
FEW_STEPS = ("--set", "training.steps=2")
"""For models that a page begins with, and those that it trains, but for slow tests: these train as the page has it."""
BLOCKS = {page: blocks(page) for page in PAGES}


def with_rule(rule: str) -> list[Path]:
    return [page for page in PAGES if any(block.typed and block.rule == rule for block in BLOCKS[page])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.setenv("CROSSFILL_CACHE", str(made / "cache"))
        world.build(made)
        calibrated = ("--encoder", "compact", "--expect", *FEW_STEPS)
        world.crossfill("train", "data", *calibrated, "--out", "model")
    return made


@pytest.mark.parametrize("page", with_rule(""), ids=lambda page: page.name)
def test_what_a_reader_types_works(page: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert run_page(page, "", folder, tmp_path, monkeypatch) > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", with_rule("slow"), ids=lambda page: page.name)
def test_what_takes_longer_works(page: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if not (folder / "finetuned").exists():
        monkeypatch.chdir(folder)
        finetuned = ("--preset", "gpu", "--set", "training.precision=float32", *FEW_STEPS)
        world.crossfill("train", "data", "--encoder", "bert-base-multilingual-cased", *finetuned, "--out", "finetuned")
    assert run_page(page, "slow", folder, tmp_path, monkeypatch) > 0


def run_page(page: Path, rule: str, folder: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a page's blocks of this rule one after the other, in a copy of the folder, here; how many there were."""
    shutil.copytree(folder, here, dirs_exist_ok=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("CROSSFILL_CACHE", str(here / "cache"))
    names: dict[str, object] = {}
    chosen = [block for block in BLOCKS[page] if block.rule == rule and block.typed]
    for block in chosen:
        if block.kind == "python":
            run_python(block, names)
            continue
        for command, shown in commands(block):
            before, given = arguments(command)
            if given[0] == "train":  # a reader has no model of that name yet
                shutil.rmtree(here / given[given.index("--out") + 1], ignore_errors=True)
                given = [*given, *(() if rule else FEW_STEPS)]
            text = shell(before, here, dict(os.environ)) if before else ""
            got = world.crossfill(*given, text=text)
            assert not shown or agrees(shown, got), f"{block.where}: {command}\n{got}"
    return len(chosen)


def run_python(block: Block, names: dict[str, object]) -> None:
    """Run a block of Python with the names of those before it; what it prints stands in a comment at its end."""
    code = compile(block.text, block.where, "exec", dont_inherit=True)
    names |= {"__name__": "page"}
    with redirect_stdout(StringIO()):
        exec(code, names)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", with_rule(EMPTY), ids=lambda page: page.name)
def test_pages_work_as_they_stand(page: Path, tmp_path: Path):
    """In a folder with encoders alone, with the command itself, and with the output that is shown."""
    world.encoders(tmp_path, GEMMA)
    compared = GEMMA or not any("--encoder gemma" in block.text for block in BLOCKS[page])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "CROSSFILL_CACHE": str(tmp_path / "cache"), "COLUMNS": "100"}
    for block in BLOCKS[page]:
        if block.rule != EMPTY:
            continue
        if block.kind == "python":
            shown = "\n".join(line[2:] for line in block.text.splitlines() if line.startswith("# "))
            done = subprocess.run(
                [sys.executable, "-c", block.text], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            assert not compared or agrees(shown, done.stdout), done.stdout
            continue
        for command, shown in commands(block):
            quiet = re.sub("^crossfill (?=train|experiment)", "crossfill --quiet ", command)
            got = shell(quiet, tmp_path, environment)
            assert not (shown and compared) or agrees(shown, got), f"{block.where}: {command}\n{got}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_readme_shows_what_the_demo_prints(tmp_path: Path):
    """But for the seconds that it took, and for what is abridged."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").split("<!-- output of: crossfill demo -->\n```text\n")[1]
    shown = [line for line in lines.split("\n```")[0].splitlines() if line.strip()]
    command = [sys.executable, "-m", "crossfill", "--quiet", "demo"]
    wide = {**os.environ, "COLUMNS": "100"}
    got = subprocess.run(command, cwd=tmp_path, env=wide, capture_output=True, text=True, check=True).stdout
    printed = {line.rstrip() for line in got.splitlines()}
    rows = {line.rpartition("│")[0].rpartition("│")[0] for line in printed if line.startswith("│")}
    for line in shown:
        if line.startswith("│"):
            assert line.rpartition("│")[0].rpartition("│")[0] in rows, line
        else:
            assert any(agrees(line, other) for other in printed), line


def test_every_block_says_what_it_is():
    for block in (block for page in PAGES for block in BLOCKS[page]):
        assert block.kind in ("console", "python", "yaml", "text"), (
            f"{block.where}: expected a kind, got '{block.kind}'"
        )
        verb, _, reason = block.rule.partition(",")
        assert verb in ("", "slow", "no") or verb.startswith("by "), f"{block.where}: unknown rule '{block.rule}'"
        assert verb != "no" or reason.strip(), f"{block.where}: say why it is not run"
        if verb.startswith("by "):
            script = (ROOT / verb.removeprefix("by ")).read_text(encoding="utf-8")
            for command, _ in commands(block):
                assert str(command.split()) in script.replace('"', "'"), (
                    f"{block.where}: {command} is not in {verb[3:]}"
                )


def test_yaml_blocks_are_studies():
    chosen = [block for page in PAGES for block in BLOCKS[page] if block.kind == "yaml"]
    assert chosen
    for block in chosen:
        import yaml

        check_runs(parse_study(yaml.safe_load(block.text), block.where))


def test_output_is_compared():
    assert agrees("a … c\n…", "a b c\nmore\nlines ")
    assert not agrees("a … c", "a b d")
    assert not agrees("0.98", "0x98")
