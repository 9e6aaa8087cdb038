"""`crossfill doctor` against pyproject.toml, and with packages that are not there."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from crossfill.cli import doctor
from crossfill.cli.app import app

RUN = CliRunner()
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def without(monkeypatch: pytest.MonkeyPatch, found: dict[str, str | None]) -> None:
    """Let these packages have other versions, or none."""
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: found[name] if name in found else real(name))


def test_it_knows_what_the_project_asks_for():
    expected = {("", Requirement(text).name, str(Requirement(text).specifier)) for text in PROJECT["dependencies"]}
    extras = PROJECT["optional-dependencies"]
    for extra, texts in extras.items():
        if extra not in ("dev", "docs"):  # an extra that names another one asks for what that asks for
            expected |= {(extra, Requirement(text).name, str(Requirement(text).specifier)) for text in texts}
    listed = {(extra, p.name, str(p.specifier)) for extra, wanted in doctor.packages().items() for p in wanted}
    assert listed == expected


def test_a_whole_installation(monkeypatch: pytest.MonkeyPatch):
    without(monkeypatch, {"ray": None, "lang2vec": "1.0"})
    result = RUN.invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    for words in (
        "cpu: ",
        "icu4py",
        "– ray: ray missing (wanted >=2.40)\n    pip install 'crossfill[ray]'\n",
        "– typology: lang2vec 1.0 (wanted >=1.1.2)\n    pip install 'crossfill[typology]'\n",
        "nothing that crossfill needs is missing",
    ):
        assert words in result.output


def test_a_broken_one(monkeypatch: pytest.MonkeyPatch):
    without(monkeypatch, {"torch": None, "numpy": "1.26.4"})
    result = RUN.invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "numpy 1.26.4 (wanted >=2.0)" in result.output
    assert "torch missing (wanted >=2.6)" in result.output
    assert "missing: pip install 'numpy>=2.0' 'torch>=2.6'" in result.output
