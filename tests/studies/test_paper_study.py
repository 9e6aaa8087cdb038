"""configs/paper.yaml from end to end: 33 languages, six methods, one half, over a tiny BERT and toy corpora."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data.codes import language_code
from crossfill.settings import read_settings
from crossfill.studies.executors import base
from crossfill.studies.run_folder import open_results
from tests.encoders.tiny import bert
from tests.studies.studies import InlineExecutor
from tests.studies.test_plan import corpora

PAPER = Path(__file__).parents[2] / "configs" / "paper.yaml"


def typology(folder: Path, languages: list[str]) -> Path:
    """Family vectors that put every third language together."""
    folder.mkdir()
    rows = [
        f"{language}\t{int(i % 3 == 0)}\t{int(i % 3 == 1)}\t{int(i % 3 == 2)}" for i, language in enumerate(languages)
    ]
    (folder / "fam.tsv").write_text("\n".join(["language\tA\tB\tC", *rows]) + "\n")
    return folder


def test_the_papers_study_runs_on_toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    values = read_settings(PAPER)
    languages = sorted(language_code(code) for code in (*values["data"]["languages"], "en"))
    assert len(languages) == 34
    data = corpora(tmp_path / "data", [f"{task}/{language}" for task in ("pos", "ner") for language in languages], n=2)
    changes = [
        f"data.path={data}", f"data.typology={typology(tmp_path / 'uriel', languages)}",
        f"data.cache={tmp_path / 'cache'}",
        f"config.encoder.name={bert(tmp_path / 'bert')}", "config.encoder.pretrained.max_pieces=60",
        "config.training.steps=2", "config.training.validate_every=1", "config.latents.size=3", "config.latents.rank=2",
        "config.generator.hidden=[4]", "config.prediction.samples=2", "config.training.learning_rate=0.001",
        "seeds=[0]", "partitions=[{kind: alternating, halves: [1]}]",
    ]  # fmt: skip
    run = tmp_path / "run"
    options = [option for change in changes for option in ("--set", change)]
    monkeypatch.setattr(base, "build_executor", lambda _: InlineExecutor())
    done = CliRunner().invoke(app, ["experiment", str(PAPER), "--out", str(run), "--quiet", *options])
    assert done.exit_code == 0, done.output
    results = open_results(run)
    assert (len(results.jobs), results.missing) == (5, [])
    assert results.methods == ["bea", "ns", "ls", "jm", "pf-d", "pf-lr"]
    unseen = {(entry.method, result.cell) for entry in results.entries for result in results.unseen([entry])}
    assert len(unseen) == 6 * 33  # half of the cells, for every method; English serves LS alone
    assert "eng" not in results.languages
