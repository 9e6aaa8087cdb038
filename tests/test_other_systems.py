"""What can be tried here as on Windows or macOS: missing modules, spawned processes, CRLF, other locales."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import platformdirs
import pytest

import crossfill
from crossfill import files
from crossfill.encoders.cache import FeatureCache, Key
from crossfill.executors import local
from crossfill.files import default_cache
from tests import other_systems
from tests.data.folders import bio, numbered

ASCII = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A locale whose encoding is ASCII."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with spaces and other letters in its name, and a corpus whose lines end in CRLF."""
    place = tmp_path / "Mes données, été"
    for task, label in (("pos", "NOUN"), ("ner", "B-PER")):
        for split, start in (("train", 0), ("dev", 100), ("test", 200)):
            path = place / "data" / task / "wol" / f"{split}.bio"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = bio(*numbered(8, label, start=start)).replace("\n", "\r\n")
            path.write_bytes(text.replace("erwa", "érwa").encode())
    return place


def run(home: Path, system: str, *arguments: str, text: str = "") -> str:
    """What a command prints on another system, in a locale that is ASCII."""
    hooks = home / "hooks"
    hooks.mkdir(exist_ok=True)
    shutil.copy(other_systems.__file__, hooks / "sitecustomize.py")
    source = str(Path(files.__file__).parents[1])
    given = {**os.environ, **ASCII, "PYTHONPATH": os.pathsep.join([str(hooks), source]), "SIMULATED_SYSTEM": system}
    given |= {"CROSSFILL_CACHE": str(home / "cache"), "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    command = [sys.executable, "-m", "crossfill", *arguments]
    done = subprocess.run(command, cwd=home, env=given, input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_what_is_missing_is_done_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert local.usable_cores() == os.cpu_count()
    with files.locked(tmp_path / "lock", wait=False) as first:
        assert first
        with files.locked(tmp_path / "lock", wait=False) as second:
            assert not second
    with files.locked(tmp_path / "lock", wait=False) as again:
        assert again


@pytest.mark.parametrize("system", ["windows", "macos"])
def test_a_folder_is_read_and_shown(home: Path, system: str):
    shown = run(home, system, "grid", "data")
    assert "1 language × 2 tasks, 2 of 2 cells have data" in shown
    assert "▪" in shown  # written in UTF-8, whatever the locale
    found = json.loads(run(home, system, "grid", str(home / "data"), "--json"))
    assert found["path"] == str(home / "data")
    assert found["tasks"]["pos"]["labels"] == {"NOUN": 24, "VERB": 24}


def test_paths_longer_than_windows_used_to_take(home: Path):
    place = home.joinpath(*["forty letters in the name of each folder"] * 7)
    shutil.copytree(home / "data", place / "data")
    assert len(str(place / "data")) > 300
    assert [str(cell) for cell in crossfill.load_grid(place / "data").cells] == ["ner/wol", "pos/wol"]
    files.write_json(place / "more" / "a.json", {"é": 1})
    assert json.loads((place / "more" / "a.json").read_text(encoding="utf-8")) == {"é": 1}
    with files.locked(place / "locks" / "lock", wait=False) as held:
        assert held
    features = np.full((3, 2), 0.5, "<f4")
    for _ in range(2):
        assert (FeatureCache(place / "cache").fetch(Key({"a": 1}, 3, 2, "<f4"), lambda: [features]) == features).all()
    assert len(FeatureCache(place / "cache").entries()) == 1


STEPS = ("--set", "training.steps=2", "--set", "training.validate_every=2", "--set", "prediction.samples=2")


@pytest.mark.slow
@pytest.mark.parametrize("system", ["windows", "macos"])
def test_train_predict_and_evaluate(home: Path, system: str):
    run(home, system, "train", "data", "--encoder", "compact", "--out", "un modèle", *STEPS)
    line = "Dakar mooy péeyu, القاهرة 👍🏽\r\n"
    tagged = run(home, system, "predict", "un modèle", "--cell", "pos/wol", "--format", "jsonl", text=line)
    found = json.loads(tagged)
    assert [line[start:end] for start, end in found["offsets"]] == found["words"]
    report = json.loads(run(home, system, "--quiet", "evaluate", "un modèle", "data", "--json"))
    assert {entry["cell"] for entry in report["results"]} == {"pos/wol", "ner/wol"}


@pytest.mark.slow
@pytest.mark.parametrize("system", ["windows", "macos"])
def test_a_study_in_spawned_processes(home: Path, system: str):
    change = ["config.training.steps=2", "config.training.validate_every=2", "seeds=[0]", "methods={jm: {}, pf-d: {}}"]
    change += ["data.synthetic.families=2", "data.synthetic.languages_per_family=2", "data.synthetic.train_sentences=8"]
    given = [part for one in change for part in ("--set", one)]
    run(home, system, "--quiet", "experiment", "configs/demo.yaml", "--out", "une étude", "--jobs", "2", *given)
    rows = (home / "une étude" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(row)["method"] for row in rows} == {"jm", "pf-d"}


@pytest.mark.parametrize(
    ("system", "place"), [("unix.Unix", ".cache/crossfill"), ("macos.MacOS", "Library/Caches/crossfill")]
)
def test_caches_are_where_the_system_has_them(system: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module, name = system.split(".")
    known = getattr(importlib.import_module(f"platformdirs.{module}"), name)
    monkeypatch.setattr(platformdirs, "PlatformDirs", known)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("CROSSFILL_CACHE", raising=False)
    assert default_cache() == tmp_path / place
    monkeypatch.setenv("CROSSFILL_CACHE", "elsewhere")
    assert default_cache() == Path("elsewhere")
