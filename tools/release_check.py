"""Check that a release installs and works, in a fresh clone of HEAD. Run by `make release-check`; takes minutes.

    python tools/release_check.py clone wheel       the default
    python tools/release_check.py wheel --python python3.12 python3.13

clone   `make demo` and `make test` in a clean environment
wheel   sdist and wheel; the wheel in an empty environment, used from outside the repository: no package that only an
        extra needs, commands that need an extra name it, and each extra installs alone
oldest  the tests on the oldest versions that pyproject.toml allows (of torch on the pinned one)
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {name: needs for name, needs in PROJECT["optional-dependencies"].items() if name not in ("dev", "docs")}
TORCH = next(word for word in (ROOT / "lock.txt").read_text(encoding="utf-8").split() if word.startswith("torch=="))
HIDDEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CROSSFILL_CACHE", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
NEEDS_EXTRA = {
    "onnx": ["export", "model", "--cell", "pos/qaa", "exported", "--onnx"],
    "typology": [
        "train",
        "data",
        "--method",
        "ns",
        "--config",
        "configs/small.yaml",
        "--encoder",
        "compact",
        "--out",
        "new",
    ],
    "ray": ["experiment", "configs/small.yaml", "--out", "run", "--executor", "ray"],
    "web": ["serve", "model"],
    "datasets": ["data", "convert", "data", "as-parquet", "--to", "parquet"],
    "spacy": ["data", "convert", "data", "as-spacy", "--to", "spacy"],
}
"""For each extra, a command that needs it, run in a folder with `data`, `model` and `text.txt`."""

NOT_WITH_OLDEST = ("crossfill", "build", "schemathesis")
"""Not installed with the oldest versions: schemathesis needs newer ones than crossfill does."""


class Failure(Exception):  # noqa: N818
    """A check that failed."""


def run(command: list[str], folder: Path, expect: int = 0, quiet: bool = True) -> str:
    """Run a command and return its output; Failure if it does not exit with the expected code."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    environment |= {"XDG_CACHE_HOME": str(home / "cache"), "HF_HUB_OFFLINE": "1", "HF_HOME": str(home / "hub")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=quiet, text=True)
    out = (done.stdout or "") + (done.stderr or "")
    if done.returncode != expect:
        raise Failure(f"{' '.join(command)}: expected code {expect}, got {done.returncode}\n{out[-4000:]}")
    return out


def say(what: str, started: float) -> None:
    """Print that a check passed, and how long it took."""
    print(f"✓ {what} ({time.monotonic() - started:.0f} s)", flush=True)


def environment(folder: Path, python: str = sys.executable) -> Path:
    """Create an empty environment; returns its Python."""
    run([python, "-m", "venv", str(folder)], folder.parent)
    run([str(folder / "bin" / "pip"), "install", "--quiet", "--upgrade", "pip"], folder.parent)
    return folder / "bin" / "python"


def layer(folder: Path, below: Path) -> Path:
    """Create an environment on top of another, so that only new packages are installed; returns its Python."""
    run([str(below), "-m", "venv", str(folder)], folder.parent)
    (own,) = (folder / "lib").glob("python*/site-packages")
    (packages,) = (below.parents[1] / "lib").glob("python*/site-packages")
    (own / "below.pth").write_text(f"{packages}\n", encoding="utf-8")
    return folder / "bin" / "python"


def install(python: Path, *what: str) -> None:
    """Install into an environment."""
    run([str(python), "-m", "pip", "install", "--quiet", *what], python.parents[2])


def installed(python: Path) -> set[str]:
    """The packages of an environment, by normalised name."""
    lines = run([str(python), "-m", "pip", "list", "--format=freeze"], python.parents[2]).splitlines()
    return {_name(line.partition("==")[0]) for line in lines if "==" in line}


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~;\[ ]", requirement)[0].lower().replace("_", "-")


def check_clone(clone: Path) -> None:
    """Run `make demo` and `make test` in a clone, which stays as clean as before."""
    for command in (["make", "demo"], ["make", "test"]):
        started = time.monotonic()
        run(command, clone)
        say(" ".join(command), started)
    changed = run(["git", "status", "--porcelain"], clone).splitlines()
    if [line for line in changed if not line.endswith("home/")]:
        raise Failure(f"expected a clone as clean as before, got {changed}")


def check_build(clone: Path, folder: Path, tag: str) -> Path:
    """Build sdist and wheel with `python -m build`, and compare their versions with the tag's; returns the wheel."""
    started = time.monotonic()
    version = re.search(r'__version__ = "(.+)"', (clone / "src/crossfill/__init__.py").read_text())
    if version is None or tag not in ("", f"v{version[1]}"):
        raise Failure(f"expected the version of __init__.py as the tag, v{version and version[1]}, got {tag}")
    python = environment(folder / "builder")
    install(python, "build")
    run([str(python), "-m", "build", "--outdir", str(folder / "dist"), str(clone)], folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    if not (wheel.name.startswith(f"crossfill-{version[1]}-") and version[1] in sdist.name):
        raise Failure(f"expected the version of __init__.py, got {wheel.name} and {sdist.name}")
    say(f"python -m build: {wheel.name}, {wheel.stat().st_size / 1e3:.0f} kB", started)
    return wheel


def check_wheel(wheel: Path, folder: Path, interpreter: str) -> None:
    """Check the wheel alone, outside the repository: import, doctor, demo; then each extra."""
    started = time.monotonic()
    folder.mkdir()
    python = environment(folder / "empty", interpreter)
    shown = run([str(python), "--version"], folder).strip()
    install(python, TORCH)
    install(python, str(wheel))
    crossfill = str(python.parent / "crossfill")
    only_extras = {_name(need) for needs in EXTRAS.values() for need in needs}
    for_developers = {_name(need) for name in ("dev", "docs") for need in PROJECT["optional-dependencies"][name]}
    core = {_name(need) for need in PROJECT["dependencies"]} | {"crossfill"}
    extra = installed(python) & (only_extras | for_developers) - core
    if extra:
        raise Failure(f"expected a minimal install without what only extras need, got {', '.join(sorted(extra))}")
    say(f"{shown}: the wheel installs: {len(installed(python))} packages, none that only an extra needs", started)
    outside, started = folder / "outside", time.monotonic()
    outside.mkdir()
    run([str(python), "-c", "import crossfill; assert 'site-packages' in crossfill.__file__"], outside)
    version = run([crossfill, "--version"], outside).split()[1]
    if f"-{version}-" not in wheel.name:
        raise Failure(f"expected the version of {wheel.name}, got {version}")
    told = run([crossfill, "doctor"], outside)
    if "nothing that crossfill needs is missing" not in told:
        raise Failure(told)
    say("import crossfill, crossfill --version, crossfill doctor", started)
    started = time.monotonic()
    run([crossfill, "--quiet", "demo"], outside)
    say("crossfill demo", started)
    _follow_readme(crossfill, folder / "readme")
    _prepare(crossfill, outside)
    for extra, command in NEEDS_EXTRA.items():
        told = run([crossfill, *command], outside, expect=2)
        if f"crossfill[{extra}]" not in told or "Traceback" in told:
            raise Failure(f"expected to be told of crossfill[{extra}], got {told}")
    say(f"without extras, {', '.join(NEEDS_EXTRA)} are asked for by name", started)
    for extra in EXTRAS:
        _check_extra(extra, wheel, python, folder, outside)


def _follow_readme(crossfill: str, folder: Path) -> None:
    """Run what the README has people type first, over $CROSSFILL_GEMMA if it is set, else over the encoder built in."""
    started = time.monotonic()
    folder.mkdir()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ (.*crossfill .+)$", readme[readme.index("## Use it") :], re.MULTILINE)
    encoder = os.environ.get("CROSSFILL_GEMMA", "compact --set training.steps=100")
    for command in commands:
        command = command.replace("bert-base-multilingual-cased", encoder)
        shown = run(["sh", "-c", re.sub(r"\bcrossfill ", f"{crossfill} ", command)], folder)
    if len(commands) != 3 or "Leyla" not in shown:
        raise Failure(f"expected three commands, the last one tags a sentence; got {commands}")
    say("the README's three commands", started)


def _prepare(crossfill: str, outside: Path) -> None:
    """Make data, a model and a text to use the extras on."""
    few = ("--set", "families=2", "--set", "languages_per_family=2")
    run([crossfill, "data", "make", "--out", "data", *few], outside)
    few = ["--config", "configs/small.yaml", "--encoder", "compact", "--set", "training.steps=20"]
    run([crossfill, "--quiet", "train", "data", *few, "--out", "model"], outside)
    (outside / "text.txt").write_text("Le na bebeti. Ka mi!\n", encoding="utf-8")


def _check_extra(extra: str, wheel: Path, minimal: Path, folder: Path, outside: Path) -> None:
    """Install one extra over the minimal install: doctor finds it, and the command that needs it has it."""
    started = time.monotonic()
    python = layer(folder / f"with-{extra}", minimal)
    install(python, f"crossfill[{extra}] @ file://{wheel}")
    crossfill = [str(python), "-m", "crossfill"]
    told = run([*crossfill, "doctor"], outside)
    if f"✓ {extra}:" not in told:
        raise Failure(f"expected doctor to find the extra {extra}, got {told}")
    if extra in NEEDS_EXTRA:
        steps = {
            "train": ["--set", "training.steps=5", "--out", f"with-{extra}"],
            "experiment": ["--dry-run"],
            "serve": ["--help"],
        }
        command = [*NEEDS_EXTRA[extra], *steps.get(NEEDS_EXTRA[extra][0], [])]
        try:
            run([*crossfill, *command], outside)
        except Failure as failure:
            if "crossfill[" in str(failure) or "Traceback" in str(failure):
                raise
    say(f"crossfill[{extra}] installs alone: doctor finds it, and what asked for it no longer does", started)


def check_oldest(clone: Path, folder: Path) -> None:
    """Run the default tests on the oldest versions of all dependencies allowed."""
    started = time.monotonic()
    python = environment(folder / "oldest")
    install(python, TORCH)
    needs = [*PROJECT["dependencies"], *(need for needs in EXTRAS.values() for need in needs)]
    oldest = [_oldest(python, need) for need in needs if _name(need) not in ("torch", "crossfill")]
    tools = [need for need in PROJECT["optional-dependencies"]["dev"] if _name(need) not in NOT_WITH_OLDEST]
    install(python, *oldest, *tools, *PROJECT["optional-dependencies"]["docs"])
    install(python, "--no-deps", "--editable", str(clone))
    options = ["-n", "2", "--dist", "loadfile", "--ignore", "tests/web/test_openapi.py", "-o", "filterwarnings=default"]
    run([str(python), "-m", "pytest", *options], clone)  # deprecation warnings are no errors here
    say(f"the tests on the oldest versions allowed: {', '.join(oldest)}", started)


def _oldest(python: Path, need: str) -> str:
    """The oldest available release that satisfies a requirement."""
    name, bound = need.partition(";")[0].partition(",")[0].split(">=")
    listed = run([str(python), "-m", "pip", "index", "versions", name], python.parents[2])
    versions = re.search(r"Available versions: (.+)", listed)
    found = [v for v in (versions[1] if versions else "").split(", ") if _number(v) >= _number(bound)]
    return f"{name}=={min(found, key=_number)}"


def _number(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def main() -> None:
    """Run the checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", default=["clone", "wheel"], metavar="CHECK", help="clone, wheel, oldest")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="Pythons to check the wheel with")
    parser.add_argument("--tag", default="", help="the release's tag, which has to be the version: v0.1.0")
    parser.add_argument("--out", type=Path, help="an empty folder for the files that were checked")
    arguments = parser.parse_args()
    if unknown := set(arguments.checks) - {"clone", "wheel", "oldest"}:
        parser.error(f"expected clone, wheel or oldest, got {', '.join(unknown)}")
    with tempfile.TemporaryDirectory(prefix="crossfill-release-") as name:
        folder = Path(name)
        try:
            clone = folder / "clone"
            run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], folder)
            if "clone" in arguments.checks:
                check_clone(clone)
            if "wheel" in arguments.checks:
                wheel = check_build(clone, folder, arguments.tag)
                for number, interpreter in enumerate(arguments.python):
                    check_wheel(wheel, folder / f"wheel-{number}", interpreter)
                if arguments.out:
                    shutil.copytree(wheel.parent, arguments.out, dirs_exist_ok=True)
            if "oldest" in arguments.checks:
                check_oldest(clone, folder)
        except Failure as failure:
            sys.exit(f"✗ {failure}")
    print("the release installs")


if __name__ == "__main__":
    main()
