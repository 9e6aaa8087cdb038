"""The package itself: light to import, and honest about its public names."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

import crossfill
from crossfill.cli.app import app

CODE = """
import sys, time
started = time.perf_counter()
import crossfill
print(time.perf_counter() - started, "torch" in sys.modules, "numpy" in sys.modules)
"""


def test_import_is_instant_and_without_torch():
    out = [subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True) for _ in range(3)]
    seconds, torch, numpy = min(run.stdout.split() for run in out)
    assert float(seconds) < 0.3
    assert (torch, numpy) == ("False", "False")


def test_public_names_load_on_first_use():
    for name in crossfill.__all__:
        assert getattr(crossfill, name) is not None
    assert sorted(crossfill.__all__) == dir(crossfill)


def test_light_commands_stay_light():
    program = (
        "import sys, crossfill, crossfill.cli.app\n"
        "assert 'torch' not in sys.modules\n"
        "import crossfill.training.loop, crossfill.tagger.train\n"
        "assert not {'transformers', 'accelerate', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_commands_that_need_no_torch_load_none(tmp_path: Path):
    sizes = ("families=2", "languages_per_family=1", "train_sentences=2", "dev_sentences=1", "test_sentences=1")
    made = ["data", "make", "--out", str(tmp_path / "data"), *(f"--set={size}" for size in sizes)]
    for arguments in (made, ["grid", str(tmp_path / "data")], ["cache"]):
        program = (
            f"import sys\nfrom crossfill.cli.app import main\nsys.argv = {['crossfill', *arguments]!r}\n"
            "try:\n    main()\nexcept SystemExit as ended:\n    print(ended.code, 'torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "0 False", done.stderr


def test_methods_are_asked_not_recognised():
    """Outside `methods`, no code asks for a method's name or for the class of its heads."""
    names = re.compile(
        r'== "(?:pf-lr|pf-d|jm|ns|ls|bea)"|method\.startswith\(|in \("pf'
        r"|isinstance\([^)]*(?:(?<!Adapted)Heads|Posterior|Generator)\b"  # adapted heads wrap those of any method
    )
    root = Path(crossfill.__file__).parent
    found = {
        str(path.relative_to(root)): names.findall(path.read_text())
        for path in root.rglob("*.py")
        if "methods" not in path.relative_to(root).parts
    }
    assert {path: hits for path, hits in found.items() if hits} == {}


def test_every_package_is_mirrored_by_tests():
    root, tests = Path(crossfill.__file__).parent, Path(__file__).parent
    packages = {path.name for path in root.iterdir() if (path / "__init__.py").exists()}
    assert {name for name in packages if not list((tests / name).glob("**/test_*.py"))} == set()


ROOT = Path(__file__).parents[1]


def test_the_lock_has_an_exact_version_and_the_hashes_of_every_package_that_developers_need():
    head, *entries = (ROOT / "lock.txt").read_text().replace("\\\n", " ").splitlines()
    assert re.search(r" torch==\d+\.\d+\.\d+$", head)
    locked = set()
    for entry in entries:
        pin, *hashes = re.sub(' ; sys_platform != "win32"', "", entry).split()
        assert re.fullmatch(r"[\w.-]+==[\w.]+", pin), "run tools/lock.py"
        assert hashes
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", part) for part in hashes)
        locked.add(canonicalize_name(pin.partition("==")[0]))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [*extras["dependencies"], *(need for part in extras["optional-dependencies"].values() for need in part)]
    assert {canonicalize_name(Requirement(need).name) for need in needs} <= locked | {"torch", "crossfill"}


def test_the_image_copies_what_is_there_and_serves():
    text = (ROOT / "Dockerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE) for name in line.split()]
    assert all((ROOT / name).exists() for name in copied)
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in copied} <= {*ignored}
    command = json.loads(re.findall(r"^CMD (.*)$", text, re.MULTILINE)[-1])
    helped = CliRunner().invoke(app, [command[0], "--help"], env={"COLUMNS": "200"}).output
    assert all(option in helped for option in command if option.startswith("--"))
    assert re.search(r"^USER crossfill$", text, re.MULTILINE)


def test_actions_are_named_by_commit():
    used = [
        line.split("uses:")[1].split()[0]
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}|\./\.github/workflows/\w+\.yml", action) for action in used), used


def test_changelog_and_citation_have_the_version():
    version, date = re.findall(r"^## \[(\d.*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[0]
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert version == crossfill.__version__
    assert f'\nversion: {version}\ndate-released: "{date}"\n' in cited
