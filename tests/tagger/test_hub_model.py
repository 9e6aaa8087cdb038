"""Taggers of the Hugging Face hub, with huggingface_hub's own code against a hub on loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from click.testing import Result
from huggingface_hub import ModelCard, constants, metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results
from typer.testing import CliRunner

import crossfill
from crossfill.cli.app import app
from crossfill.errors import CheckpointError, ConfigError
from crossfill.tagger.model_folder import is_hub_name
from crossfill.tagger.tagger import Tagger
from tests import hub_server
from tests.encoders.tiny import bert
from tests.hub_server import Hub
from tests.own_cache import own_cache as own_cache
from tests.scenarios import SMALL, small_grid

GRID = small_grid()[0].grid
CELL = GRID.cells[0]
TEXT = GRID.development(CELL)[0].words
NAME = "me/tagger"


@pytest.fixture(scope="module")
def trained() -> Tagger:
    made = crossfill.train(GRID, config=SMALL, hold_out=[CELL], expect=True)
    made.evaluate(GRID)
    return made


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that huggingface_hub talks to, as if HF_ENDPOINT and HF_HOME had been set before its import."""
    with hub_server.running() as made:
        monkeypatch.setattr(constants, "ENDPOINT", made.address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", made.address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", "no-secret")
        monkeypatch.chdir(tmp_path)
        huggingface_hub.utils.disable_progress_bars()
        yield made
        huggingface_hub.utils.enable_progress_bars()


def test_pushed_and_loaded_with_its_adapted_cell(trained: Tagger, hub: Hub, tmp_path: Path):
    adapted = Tagger.from_folder(trained.save(tmp_path / "saved"))
    adapted.adapt(GRID.training(CELL), CELL)
    address = adapted.push_to_hub(NAME, model_card_kwargs={"license": "cc-by-4.0", "datasets": "wikiann"})
    assert "config.json" not in hub.files(NAME)  # which other libraries would take for theirs
    commit = hub.commits[NAME][0][0]
    assert address == f"{hub.address}/{NAME}/commit/{commit}"
    assert hub.private == {NAME: True}
    assert hub.cards == [hub.files(NAME)["README.md"].decode()]  # the hub's own check has seen it

    loaded = crossfill.load(NAME)
    np.testing.assert_allclose(
        loaded.tag(TEXT, CELL).probabilities, adapted.tag(TEXT, CELL).probabilities, atol=1e-6
    )  # its head is kept in single precision
    assert abs(loaded.tag(TEXT, CELL).probabilities - trained.tag(TEXT, CELL).probabilities).max() > 1e-3
    assert set(loaded.adapted) == {CELL}
    assert (loaded.calibration, loaded.card.data) == (trained.calibration, trained.card.data)
    assert len(loaded.results) == len(trained.results)
    assert loaded.card.origin == (NAME, commit)
    assert (loaded.card.license, loaded.card.datasets) == ("cc-by-4.0", ("wikiann",))

    saved = Tagger.from_folder(loaded.save(tmp_path / "again"))
    assert saved.card.origin == (NAME, commit)
    assert f"Saved from `{NAME}` at revision `{commit}`." in (tmp_path / "again" / "README.md").read_text()
    loaded.forget(CELL)
    loaded.push_to_hub(NAME, private=False)
    assert not any(path.startswith("adapted/") for path in hub.files(NAME))
    assert not crossfill.load(NAME).adapted
    assert crossfill.load(NAME, revision=commit).adapted  # the old one is still there
    assert len(hub.commits[NAME]) == 2


def test_the_network_is_asked_for_names_of_the_hub_alone(trained: Tagger, hub: Hub, tmp_path: Path, monkeypatch):
    trained.push_to_hub(NAME)
    hub.asked.clear()
    trained.save(tmp_path / "me" / "tagger")
    crossfill.load(NAME)  # a folder of that name is there, and comes first
    with pytest.raises(CheckpointError, match="there is no folder"):
        crossfill.load("me/other")  # me is a folder here
    with pytest.raises(CheckpointError, match="there is no folder"):
        crossfill.load("nowhere")
    assert hub.asked == []
    (tmp_path / "me").rename(tmp_path / "mine")
    commit = crossfill.load(NAME).card.origin
    assert hub.asked
    hub.asked.clear()
    assert commit is not None
    crossfill.load(NAME, revision=commit.revision)  # known whole: nothing to ask
    Tagger.from_pretrained(NAME, local_files_only=True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert crossfill.load(NAME).card.origin == commit
    assert hub.asked == []


def test_what_cannot_be_had_is_told_with_a_remedy(trained: Tagger, hub: Hub, monkeypatch: pytest.MonkeyPatch):
    trained.push_to_hub(NAME)
    cases = {
        ("me/none", None): "404 Client Error.*; correct the name, log in",
        (NAME, "v9"): "404 Client Error.*; correct the name, .*--revision v9",
    }
    for (name, revision), message in cases.items():
        with pytest.raises(CheckpointError, match=message):
            crossfill.load(name, revision=revision)
    with pytest.raises(CheckpointError, match="local_files_only is set"):
        Tagger.from_pretrained("me/none", local_files_only=True)
    with pytest.raises(CheckpointError, match="expected a name of the hub, as there is a revision"):
        crossfill.load("nowhere", revision="main")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match=r"may not be fetched, as HF_HUB_OFFLINE is set; .*hf download me"):
        crossfill.load(NAME)
    with pytest.raises(
        CheckpointError, match=r"a repository of the hub that can be written.*hf upload me/tagger FOLDER"
    ):
        trained.push_to_hub(NAME)


def test_another_model_is_refused_before_its_weights_are_fetched(hub: Hub):
    hub.commit("you/bert", {"config.json": b'{"model_type": "bert"}', "model.safetensors": b"x" * 1000})
    with pytest.raises(CheckpointError, match="model 'you/bert' of the hub: expected a crossfill model"):
        crossfill.load("you/bert")
    assert not any("model.safetensors" in asked for asked in hub.asked)


def test_only_files_of_a_model_folder_are_fetched(trained: Tagger, hub: Hub, tmp_path: Path):
    trained.push_to_hub(NAME)
    odd = ["evil.py", "weights.bin", "adapted/evil.pkl", "encoder/deep/down/x.json", "training.safetensors"]
    hub.commit(NAME, dict.fromkeys(odd, b"x"))
    crossfill.load(NAME)
    found = {path.name for path in (tmp_path / "hub").rglob("snapshots/*/**/*")}
    assert "model.safetensors" in found
    assert not found & {"evil.py", "weights.bin", "evil.pkl", "x.json", "training.safetensors"}


def test_a_frozen_encoder_is_taken_at_the_revision_of_training(hub: Hub, tmp_path: Path):
    files = {path.name: path.read_bytes() for path in bert(tmp_path / "bert").iterdir()}
    first = hub.commit("someone/bert", files)
    settings = {"encoder.pretrained.mode": "frozen", "encoder.pretrained.max_pieces": 60, "training.steps": 2}
    made = crossfill.train(GRID, "jm", "someone/bert", None, SMALL.change(settings))
    made.push_to_hub(NAME)
    assert metadata_load(_kept(hub, tmp_path))["base_model"] == "someone/bert"  # type: ignore[index]
    hub.commit("someone/bert", {"config.json": b'{"model_type": "other"}'})  # main moves on
    loaded = crossfill.load(NAME)
    assert loaded.model.encoder.source.name == f"someone/bert@{first}"  # type: ignore[union-attr]
    here = crossfill.load(made.save(tmp_path / "here"), encoder=str(tmp_path / "bert"))
    np.testing.assert_array_equal(loaded.tag(TEXT, CELL).probabilities, here.tag(TEXT, CELL).probabilities)
    with_encoder = Tagger.from_folder(loaded.save(tmp_path / "whole", with_encoder=True))
    with_encoder.save(tmp_path / "twice", with_encoder=True)
    assert json.loads((tmp_path / "twice" / "encoder.json").read_text())["revision"] == first


def test_the_card_is_valid_and_has_a_result_per_cell(trained: Tagger, tmp_path: Path):
    trained.set_card(license="mit", title="Four languages", datasets=["me/data"])
    path = trained.save(tmp_path / "model") / "README.md"
    card, data = ModelCard.load(path), metadata_load(path)
    assert data is not None
    assert card.data.to_dict() == data  # read into ModelCardData and written again, it is the same
    assert (data["license"], data["datasets"], data["library_name"]) == ("mit", ["me/data"], "crossfill")
    assert data["metrics"] == ["accuracy", "f1"]
    assert data["language"] == list(trained.model.inventory.languages)
    name, entries = model_index_to_eval_results(data["model-index"])
    assert name == "Four languages"
    scores = {e.dataset_args["cell"]: e for e in entries if e.metric_name.endswith("plug-in")}
    assert set(scores) == {str(result.cell) for result in trained.results}
    assert len(data["model-index"][0]["results"]) == len(trained.results)
    for result in trained.results:
        found = scores[str(result.cell)]
        assert found.metric_value == pytest.approx(result.score, abs=1e-4)
        assert found.metric_type == ("f1" if result.cell.task in ("ner", "chunk") else "accuracy")
        assert found.dataset_args["seen"] == result.seen
    with pytest.raises(ConfigError, match="unknown setting 'licence'; did you mean 'license'"):
        trained.set_card(licence="mit")
    trained.set_card(license="unknown", title="A crossfill tagger", datasets=[])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("me/tagger", True),
        ("tagger", False),
        ("a/b/c", False),
        ("../x", False),
        ("/x", False),
        ("me/..", False),
        ("", False),
    ],
)
def test_names_of_the_hub(name: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert is_hub_name(name) is expected


@pytest.mark.slow
def test_a_fresh_process_loads_by_environment_alone(trained: Tagger, hub: Hub, tmp_path: Path):
    trained.push_to_hub(NAME)
    code = f"import crossfill; t = crossfill.load({NAME!r}); print(*t.tag({list(TEXT)!r}, {str(CELL)!r}).labels)"
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == list(trained.tag(TEXT, CELL).labels), done.stderr


def test_commands_take_names_of_the_hub(trained: Tagger, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    trained.push_to_hub(NAME)

    def run(*given: str) -> Result:
        return CliRunner().invoke(app, [*given], input="a b\n")

    told = run("predict", NAME, "--cell", str(CELL), "--format", "jsonl")
    assert json.loads(told.stdout)["words"] == ["a", "b"]
    few = tmp_path / "few.bio"
    few.write_text("".join(f"{w}\t{label}\n" for w, label in zip(TEXT, trained.tag(TEXT, CELL).labels, strict=True)))
    refused = run("adapt", NAME, str(few), "--cell", str(CELL))
    assert isinstance(refused.exception, CheckpointError)
    assert "expected a folder to write to; name one with --out" in str(refused.exception)
    assert run("adapt", NAME, str(few), "--cell", str(CELL), "--out", "mine").exit_code == 0
    own = crossfill.load("mine")
    assert set(own.adapted) == {CELL}
    assert own.card.origin is not None
    assert not crossfill.load(NAME).adapted
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in str(run("predict", "me/other", "--cell", str(CELL)).exception)


def _kept(hub: Hub, tmp_path: Path) -> Path:
    path = tmp_path / "card.md"
    path.write_bytes(hub.files(NAME)["README.md"])
    return path
