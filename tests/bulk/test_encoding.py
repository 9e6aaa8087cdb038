"""Encoding in bulk: the features that a training would compute, each part once, and a training finds them all."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from crossfill.bulk import encoding
from crossfill.cli.app import app
from crossfill.data.folder import ReadOptions, read_folder
from crossfill.encoders import frozen
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.executors import base
from crossfill.tagger.presets import RunRequest, choose_settings
from crossfill.tagger.run import words_to_encode
from tests.encoders.tiny import bert
from tests.executors.inline import InlineExecutor

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


def encode(data: Path, network: Path, cache: Path, *more: str) -> str:
    given = ["--quiet", "encode", str(data), "--encoder", str(network), *more]
    result = RUN.invoke(app, given, env={"CROSSFILL_CACHE": str(cache)})
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_what_was_encoded_in_bulk_is_what_a_training_needs(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    network, cache = bert(tmp_path / "bert"), tmp_path / "shared"
    monkeypatch.setattr(base, "build_executor", lambda _: InlineExecutor())
    monkeypatch.setattr(frozen, "PART_WORDS", 40)
    times: list[str] = []
    own = FrozenEncoder._encode
    monkeypatch.setattr(FrozenEncoder, "_encode", lambda s, c, *r: (times.append(c.text_hash()), own(s, c, *r))[1])
    told = encode(data, network, cache)
    assert len(times) > 9
    assert "0 encoded" in encode(data, network, cache)

    grid = read_folder(data, ReadOptions(cache=False)).grid
    config = choose_settings(grid, grid.cells, RunRequest(None, str(network))).config
    made = FrozenEncoder(config.encoder, grid.inventory.languages, cache)
    needed, missing = words_to_encode(grid, grid.cells, made, grid)
    assert needed > 0
    assert missing == 0
    assert not list((cache / "features").glob(".*"))
    alone = FrozenEncoder(config.encoder, grid.inventory.languages, cache=False)
    corpora = encoding.corpora_of(grid)
    assert f"{len(corpora)} corpora, {sum(corpus.n_words for corpus in corpora.values()):,} words" in told
    for corpus in corpora.values():
        np.testing.assert_allclose(made.vectors(corpus), alone.vectors(corpus), rtol=2e-3, atol=2e-3)


def test_parts_are_left_to_whoever_comes_first(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    network, cache = bert(tmp_path / "bert"), tmp_path / "shared"
    monkeypatch.setattr(frozen, "PART_WORDS", 40)
    grid = read_folder(data, ReadOptions(cache=False)).grid
    config = choose_settings(grid, grid.cells, RunRequest(None, str(network))).config
    made = FrozenEncoder(config.encoder, grid.inventory.languages, cache)
    parts = encoding.missing_parts(made, encoding.corpora_of(grid))
    jobs = encoding.EncodingJobs(parts, config.encoder, cache)
    assert {name: part.corpus.n_words for name, part in parts.items()}.keys() == set(jobs)
    first, *others = jobs
    assert encoding.encode_part(jobs[first], 1) == {"words": parts[first].corpus.n_words}
    monkeypatch.setattr(FrozenEncoder, "_encode", lambda *_: pytest.fail("it was encoded twice"))
    assert encoding.encode_part(jobs[first], 1) == {"words": parts[first].corpus.n_words}
    assert set(encoding.missing_parts(made, encoding.corpora_of(grid))) == set(others)


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


def test_an_encoder_that_trains_has_nothing_to_keep(data: Path):
    result = RUN.invoke(app, ["--quiet", "encode", str(data), "--encoder", "compact"])
    assert "expected one that stays frozen" in str(result.exception)
