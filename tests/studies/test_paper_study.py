"""configs/paper.yaml from end to end on folders as they are fetched, gaps included: six methods, one half, toy BERT."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data.codes import language_code
from crossfill.executors import worker_jobs
from crossfill.settings import read_settings
from crossfill.studies.run_folder import open_results
from tests.data.folders import bio, conllu, write
from tests.encoders.tiny import bert
from tests.studies.studies import InlineExecutor
from tests.studies.test_plan import PAPER

WIKIANN_CODES = {"aii": "arc", "gun": "gn", "kmr": "ku", "kpv": "kv", "yue": "zh-yue"}
"""WikiANN's codes of the paper's languages, where they are not UD's."""
NOT_FETCHED = ("bm", "kpv", "myv", "sme", "wo")
"""What the WikiANN that is fetched lacks."""


def fetched(folder: Path, codes: list[str], n: int = 2) -> Path:
    """A data folder as `crossfill data fetch ud wikiann` leaves it, with tiny corpora."""
    files = {}
    for code in codes:
        for split in ("train", "dev", "test"):
            words = [f"{split}{code}{i}" for i in range(n)]
            bank = f"ud/UD_{code.title()}-X/{code}_x-ud-{split}.conllu"
            files[bank] = conllu(*([(w, "NOUN"), ("moku", "VERB")] for w in words))
            if code not in NOT_FETCHED:
                name = WIKIANN_CODES.get(code, code)
                entities = ([(f"{name}:n{w}", "B-PER"), (f"{name}:moku", "O")] for w in words)
                files[f"wikiann/{name}/{split}"] = bio(*entities)
    return write(folder, files)


def typology(folder: Path, languages: list[str]) -> Path:
    """Family vectors that put every third language together."""
    folder.mkdir()
    rows = [
        f"{language}\t{int(i % 3 == 0)}\t{int(i % 3 == 1)}\t{int(i % 3 == 2)}" for i, language in enumerate(languages)
    ]
    (folder / "fam.tsv").write_text("\n".join(["language\tA\tB\tC", *rows]) + "\n")
    return folder


@pytest.mark.slow
def test_the_papers_study_runs_on_what_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    conduct_paper_study(tmp_path, monkeypatch, steps=2)


@pytest.mark.gpu
def test_the_papers_study_runs_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert torch.accelerator.is_available()
    conduct_paper_study(tmp_path, monkeypatch, steps=100)


def conduct_paper_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int):
    """Run it with a tiny encoder, and check what comes out."""
    values = read_settings(PAPER)
    languages = sorted(language_code(code) for code in (*values["data"]["languages"], "en"))
    assert len(languages) == 34
    data = fetched(tmp_path / "data", [*values["data"]["languages"], "en"])
    changes = [
        f"data.path={data}", f"data.typology={typology(tmp_path / 'uriel', languages)}",
        f"data.cache={tmp_path / 'cache'}",
        f"config.encoder.name={bert(tmp_path / 'bert')}", "config.encoder.pretrained.max_pieces=60",
        f"config.training.steps={steps}", "config.training.validate_every=1", "ablations=[]",
        "config.latents.size=3", "config.latents.rank=2",
        "config.generator.hidden=[4]", "config.prediction.samples=2", "config.training.learning_rate=0.001",
        "seeds=[0]", "partitions=[{kind: alternating, halves: [1]}]",
    ]  # fmt: skip
    run = tmp_path / "run"
    options = [option for change in changes for option in ("--set", change)]
    monkeypatch.setattr(worker_jobs, "build_executor", lambda _: InlineExecutor())
    done = CliRunner().invoke(app, ["--quiet", "experiment", str(PAPER), "--out", str(run), *options])
    assert done.exit_code == 0, done.output
    results = open_results(run)
    assert (len(results.jobs), results.missing) == (5, [])
    assert results.methods == ["bea", "ns", "ls", "jm", "pf-d", "pf-lr"]
    unseen = {(entry.method, result.cell) for entry in results.entries for result in results.unseen([entry])}
    lacking = {language_code(code) for code in NOT_FETCHED}
    told = "".join(f"data: missing corpus: no ner/{language} in {data}\n" for language in sorted(lacking))
    assert told in done.stderr
    assert "the study runs without these" in done.stderr
    assert len(unseen) == 6 * 28  # half of the cells that can be held out, for every method; English serves LS alone
    assert not lacking & {cell.language for _, cell in unseen}  # POS alone: seen in both halves
    assert "eng" not in results.languages
