"""Model folders: whole ones come back the same, cards say what is in them, and hostile ones are refused unread."""

import json
import resource
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

import crossfill
from crossfill import checkpoint
from crossfill.cli.app import app
from crossfill.encoders import hub
from crossfill.encoders.base import build_encoder
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.errors import CheckpointError, ConfigError
from crossfill.methods.registry import build_model
from crossfill.settings import parse_assignments
from crossfill.tagger.tagger import Tagger
from tests.encoders.tiny import bert
from tests.own_cache import own_cache as own_cache
from tests.scenarios import SMALL, small_grid

GRID = small_grid()[0].grid
TEXT = GRID.development(GRID.cells[0])[0].words
CELL = str(GRID.cells[0])


@pytest.fixture(scope="module")
def trained() -> Tagger:
    made = crossfill.train(GRID, config=SMALL, hold_out=[CELL], expect=True)
    made.evaluate(GRID)
    return made


@pytest.fixture
def folder(trained: Tagger, tmp_path: Path) -> Path:
    return trained.save(tmp_path / "saved")


def test_saved_and_loaded(trained: Tagger, folder: Path):
    again = crossfill.load(folder)
    np.testing.assert_array_equal(again.tag(TEXT, CELL).probabilities, trained.tag(TEXT, CELL).probabilities)
    assert again.calibration == trained.calibration
    assert [r.score for r in again.results] == [r.score for r in trained.results]
    assert again.seen == trained.seen
    assert {p.name for p in folder.iterdir()} == {
        *("README.md", "calibration.json", "config_crossfill.json", "card.json", "model.safetensors", "results.json"),
        *("expected.json", "languages.safetensors"),
    }


def test_the_card(trained: Tagger, folder: Path):
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlanguage:\n")
    assert "No licence was stated" in card
    for heading in ("Data", "Scores", "Calibration", "Limits", "Citation"):
        assert f"\n## {heading}\n" in card
    for result in trained.results:
        kind = "seen" if result.seen else "unseen"
        assert f"| `{result.cell}` | {result.corpus} | {kind} | {100 * result.score:.1f} |" in card
    assert f"`{CELL}`" in card
    assert trained.calibration is not None
    assert f"{trained.calibration.averaged['pos'].temperature:.2f}" in card
    bare = Tagger(trained.model, trained.config).save(folder.parent / "bare")
    assert "Not evaluated yet" in (bare / "README.md").read_text()
    assert "None: no seen cells were held out in turn" in (bare / "README.md").read_text()


def test_a_frozen_model_can_take_its_encoder_along(tmp_path: Path):
    encoder = bert(tmp_path / "bert")
    settings = ["encoder.pretrained.mode=frozen", "encoder.pretrained.max_pieces=60", "encoder.pretrained.overlap=20"]
    made = crossfill.train(
        GRID, "jm", str(encoder), None, SMALL.change({**parse_assignments(settings), "training.steps": 2})
    )
    made.save(tmp_path / "alone")
    made.save(tmp_path / "whole", with_encoder=True)
    expected = made.tag(TEXT, CELL).labels
    moved = encoder.rename(tmp_path / "moved")
    assert crossfill.load(tmp_path / "whole").tag(TEXT, CELL).labels == expected
    assert crossfill.load(tmp_path / "alone", encoder=str(moved)).tag(TEXT, CELL).labels == expected
    assert isinstance(made.model.encoder, FrozenEncoder)


def test_where_the_encoder_came_from_is_recorded(tmp_path: Path):
    commit = "0123456789abcdef" * 2 + "01234567"
    snapshot = bert(tmp_path / "models--someone--bert" / "snapshots" / commit)
    assert hub.Origin.of(snapshot) == ("someone/bert", commit)
    assert hub.Origin.of(tmp_path) is None
    config = SMALL.change({"encoder.name": str(snapshot), "encoder.pretrained.mode": "frozen"})
    config = config.change({"encoder.pretrained.max_pieces": 60})
    encoder = build_encoder(config, GRID.languages, cache=False)
    model = build_model(config, GRID.inventory, GRID.cells, encoder)
    Tagger(model, config).save(tmp_path / "model")
    found = json.loads((tmp_path / "model" / "encoder.json").read_text())
    assert found == {"name": "someone/bert", "revision": commit, "identity": hub.identity(snapshot).hex()}
    assert f"at revision `{commit}`" in (tmp_path / "model" / "README.md").read_text()


def refused(folder: Path, message: str) -> None:
    with pytest.raises((CheckpointError, ConfigError), match=message):
        crossfill.load(folder)
    result = CliRunner().invoke(app, ["predict", str(folder), "--cell", CELL], input="a b\n")
    assert isinstance(result.exception, CheckpointError | ConfigError)


def test_missing_truncated_and_other_tensors(folder: Path):
    path = folder / checkpoint.WEIGHTS
    whole, tensors = path.read_bytes(), load_file(path)
    name = next(n for n in tensors if n.startswith("heads.generator.means"))
    run = {"notes": json.dumps({"run": checkpoint.digest(checkpoint.read_json(folder / checkpoint.DESCRIPTION))})}
    save_file({n: t for n, t in tensors.items() if n != name}, path, run)
    refused(folder, rf"Missing key.*{name}")
    save_file(tensors | {"extra": np.zeros(3)}, path, run)
    refused(folder, r"Unexpected key.*extra")
    save_file(tensors | {name: tensors[name][:-1]}, path, run)
    refused(folder, f"size mismatch for {name}")
    path.write_bytes(whole[: len(whole) // 2])
    refused(folder, "expected a whole safetensors file")
    huge = json.dumps({name: {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4 * 10**18]}}).encode()
    path.write_bytes(struct.pack("<Q", len(huge)) + huge)
    refused(folder, "expected a whole safetensors file")
    path.write_bytes(struct.pack("<Q", 2**60) + b"{}")
    refused(folder, "expected a whole safetensors file")
    path.unlink()
    refused(folder, "found none")


def test_a_description_of_another_model_is_rejected_before_one_is_built(folder: Path):
    path = folder / checkpoint.DESCRIPTION
    description = json.loads(path.read_text())
    description["config"]["encoder"]["buckets"] = 2**26
    path.write_text(json.dumps(description))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(folder, "expected weights of the run in config_crossfill.json, found those of another")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes
    description["config"]["latents"]["size"] = 10**18
    path.write_text(json.dumps(description))
    refused(folder, "latents.size: input should be less than")


def test_hostile_json(folder: Path):
    for name, message in (
        (checkpoint.DESCRIPTION, "expected JSON|expected the description of a model"),
        ("calibration.json", "expected JSON|expected the calibration of a model"),
        ("results.json", "expected JSON|expected results"),
    ):
        kept = (folder / name).read_text()
        for text in ("[" * 200_000, "{", '[{"cell": 1}]' if name == "results.json" else "[]", "\x00"):
            (folder / name).write_text(text)
            refused(folder, message)
        (folder / name).write_text(kept)
    crossfill.load(folder)


def test_loading_leaves_the_callers_random_numbers_alone(folder: Path):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    crossfill.load(folder)
    assert torch.equal(torch.rand(3), expected)


def test_a_model_loads_and_tags_without_a_compiler(folder: Path):
    """Importing torch's compiler and its algebra would take longer than all the rest."""
    program = (
        f"import sys, crossfill\ncrossfill.load({str(folder)!r}).tag({list(TEXT)!r}, {CELL!r})\n"
        "heavy = {'torch._dynamo', 'torch._inductor', 'sympy', 'transformers', 'crossfill.training.loop'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
