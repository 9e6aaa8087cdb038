"""Encoding in bulk: the features that a training would compute, each part once, and a training finds them all."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data.folder import ReadOptions, read_folder
from crossfill.encoders import frozen
from crossfill.encoders.frozen import StoredVectors
from crossfill.executors import worker_jobs
from crossfill.executors.local import LocalExecutor
from crossfill.executors.worker_jobs import ExecutionSettings
from crossfill.grid.cells import Grid
from crossfill.grid.sentence import Corpus
from crossfill.studies.plan import CheckedStudy
from crossfill.studies.run import Encodings, encoding_jobs, run_study
from crossfill.tagger.presets import RunRequest, choose_settings
from crossfill.tagger.train import texts_to_encode
from tests.encoders.tiny import bert
from tests.executors.inline import InlineExecutor
from tests.studies.studies import checked, outcomes

RUN = CliRunner()
WORDS = ["Dakar", "mooy", "péeyu", "Senegaal", "."]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for cell in ("pos/wol", "ner/wol", "pos/fin"):
        for i, split in enumerate(("train", "dev", "test")):
            label = "B-LOC" if cell.startswith("ner") else "NOUN"
            path = tmp_path / "data" / cell / f"{split}.bio"
            path.parent.mkdir(parents=True, exist_ok=True)
            texts = [[*WORDS[: 1 + (n + i) % 5], f"{cell[:2]}{split}{n}"] for n in range(30)]
            path.write_text("".join("".join(f"{w}\t{label}\n" for w in words) + "\n" for words in texts))
    return tmp_path / "data"


def all_texts(grid: Grid) -> list[Corpus]:
    return [corpus for seen in (grid.cells, ()) for _, corpus in texts_to_encode(grid, seen, seen, grid)]


def encode(data: Path, network: Path, cache: Path, *more: str) -> str:
    given = ["--quiet", "encode", str(data), "--encoder", str(network), *more]
    result = RUN.invoke(app, given, env={"CROSSFILL_CACHE": str(cache)})
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_what_was_encoded_in_bulk_is_what_a_training_needs(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    network, cache = bert(tmp_path / "bert"), tmp_path / "shared"
    monkeypatch.setattr(worker_jobs, "build_executor", lambda _: InlineExecutor())
    monkeypatch.setattr(frozen, "PART_WORDS", 40)
    times: list[str] = []
    own = StoredVectors._encode
    monkeypatch.setattr(StoredVectors, "_encode", lambda s, c, *r: (times.append(c.text_hash), own(s, c, *r))[1])
    told = encode(data, network, cache)
    assert len(times) > 9
    assert "0 encoded" in encode(data, network, cache)

    grid = read_folder(data, ReadOptions(cache=False)).grid
    config = choose_settings(grid, grid.cells, RunRequest(None, str(network))).config
    made = StoredVectors(config.encoder, cache)
    assert all(made.is_stored(corpus) for corpus in all_texts(grid) if len(corpus))
    assert not list((cache / "features").glob(".*"))
    alone = StoredVectors(config.encoder, cache=False)
    corpora = Encodings.of(made, config.encoder, all_texts(grid)).corpora
    assert f"{len(corpora)} corpora, {sum(corpus.n_words for corpus in corpora.values()):,} words" in told
    for corpus in corpora.values():
        np.testing.assert_allclose(made.of(corpus), alone.of(corpus), rtol=2e-3, atol=2e-3)


def test_parts_are_left_to_whoever_comes_first(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    network, cache = bert(tmp_path / "bert"), tmp_path / "shared"
    monkeypatch.setattr(frozen, "PART_WORDS", 40)
    grid = read_folder(data, ReadOptions(cache=False)).grid
    config = choose_settings(grid, grid.cells, RunRequest(None, str(network))).config
    made = StoredVectors(config.encoder, cache)
    jobs = Encodings.of(made, config.encoder, all_texts(grid))
    first, *others = jobs.jobs
    job = jobs.jobs[first]
    assert pickle.loads(pickle.dumps(job.work))(1, None) == {"n_words": job.amount}
    monkeypatch.setattr(StoredVectors, "_encode", lambda *_: pytest.fail("it was encoded twice"))
    assert job.work(1, None) == {"n_words": job.amount}
    assert set(Encodings.of(made, config.encoder, all_texts(grid)).jobs) == set(others)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("executor", ["local", "ray"])
def test_two_workers_fill_one_cache(data: Path, tmp_path: Path, executor: str):
    if executor == "ray":
        pytest.importorskip("ray")
    network = bert(tmp_path / "bert")
    encode(data, network, tmp_path / "two", "--jobs", "2", "--executor", executor)
    encode(data, network, tmp_path / "one", "--jobs", "1")
    names = [{path.name for path in (tmp_path / n / "features").iterdir()} for n in ("two", "one")]
    assert names[0] == names[1]


FROZEN = {"mode": "frozen", "max_pieces": 32, "overlap": 8, "centring": "mean"}
OVER_BERT = {"methods": {"ns": {}, "jm": {}, "pf-lr": {}}, "folds": 2, "few_shot": {"sentences": [0, 2], "draws": 1}}


def over(network: Path, cache: Path) -> CheckedStudy:
    return checked(
        **OVER_BERT, data={"cache": str(cache)}, config={"encoder": {"name": str(network), "pretrained": FROZEN}}
    )


def test_a_study_encodes_every_text_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    study = over(bert(tmp_path / "bert"), tmp_path / "cache")
    monkeypatch.setattr(frozen, "PART_WORDS", 40)
    [jobs] = encoding_jobs(study, list(study.plan.jobs.values()))
    assert any("-1" in name[-2:] for name in jobs.jobs)  # some texts have several parts
    encoded: list[tuple[str, int]] = []
    own = StoredVectors._encode
    monkeypatch.setattr(
        StoredVectors, "_encode", lambda s, c, *r: (encoded.append((c.text_hash, c.n_words)), own(s, c, *r))[1]
    )
    assert not run_study(study, tmp_path / "run", InlineExecutor())
    assert len(encoded) == len(set(encoded))
    assert sum(n_words for _, n_words in encoded) == jobs.n_words
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(study.study.model_dump(mode="json")))
    planned = RUN.invoke(app, ["experiment", str(config), "--out", str(tmp_path / "none"), "--dry-run"])
    assert f"{jobs.n_words:,} words: 0 to encode, {jobs.n_words:,} in the cache" in planned.output


@pytest.mark.timeout(600)
def test_two_workers_encode_every_text_once(tmp_path: Path):
    study = over(bert(tmp_path / "bert"), tmp_path / "two")
    [jobs] = encoding_jobs(study, list(study.plan.jobs.values()))
    assert not run_study(study, tmp_path / "run", LocalExecutor(ExecutionSettings(jobs=2)))
    entries = jobs.stored.cache.entries()
    assert sum(int(entry.about["rows"]) for entry in entries) == jobs.n_words
    assert not encoding_jobs(study, list(study.plan.jobs.values()))[0].jobs
    run_study(over(tmp_path / "bert", tmp_path / "one"), tmp_path / "inline", InlineExecutor())
    assert outcomes(tmp_path / "run") == outcomes(tmp_path / "inline")


def test_an_encoder_that_trains_has_nothing_to_keep(data: Path):
    result = RUN.invoke(app, ["--quiet", "encode", str(data), "--encoder", "compact"])
    assert "expected one that stays frozen" in str(result.exception)
