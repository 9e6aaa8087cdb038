"""Files of a run: atomic, whole or refused, and never of another model."""

import json
from pathlib import Path

import pytest
import torch

from crossfill import checkpoint
from crossfill.errors import CheckpointError
from crossfill.files import write_json
from crossfill.methods.registry import build_model
from crossfill.tagger.model_folder import load_model
from tests.scenarios import INVENTORY, SEEN, SMALL


def save(folder):
    model = build_model(SMALL, INVENTORY, SEEN)
    description = checkpoint.describe(SMALL, INVENTORY, SEEN)
    write_json(folder / checkpoint.DESCRIPTION, description)
    notes = {"step": 3, "run": checkpoint.digest(description)}
    checkpoint.write_tensors(folder / checkpoint.WEIGHTS, model.state_dict(), notes)
    return model


def test_a_model_comes_back_as_it_was(tmp_path):
    model = save(tmp_path)
    loaded, config = load_model(tmp_path)
    assert config == SMALL
    assert (loaded.inventory, loaded.seen) == (INVENTORY, SEEN)
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    checkpoint.write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        checkpoint.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_folders_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="is this a model folder"):
        load_model(tmp_path)
    save(tmp_path)
    weights = tmp_path / checkpoint.WEIGHTS
    whole = weights.read_bytes()
    for broken in (whole[:100], whole[: len(whole) // 2], b"", b"\xff" * 64):
        weights.write_bytes(broken)
        with pytest.raises(CheckpointError, match="expected a whole safetensors file"):
            load_model(tmp_path)
    weights.unlink()
    with pytest.raises(CheckpointError, match="found none"):
        load_model(tmp_path)


def test_weights_of_another_shape_are_refused(tmp_path):
    model = save(tmp_path)
    path = tmp_path / checkpoint.DESCRIPTION
    description = json.loads(path.read_text())
    description["languages"].append("ddd")
    path.write_text(json.dumps(description))
    notes = {"run": checkpoint.digest(description)}
    checkpoint.write_tensors(tmp_path / checkpoint.WEIGHTS, model.state_dict(), notes)
    with pytest.raises(CheckpointError, match=r"size mismatch for heads.languages.factor: .*\[3, 6\].*\[4, 6\]"):
        load_model(tmp_path)
    for wrong, message in (
        ("{", "expected JSON"),
        ('{"format": 2}', "format: input should be 1; got 2"),
        ("[]", "description"),
    ):
        path.write_text(wrong)
        with pytest.raises(CheckpointError, match=message):
            load_model(tmp_path)


def test_tensors_and_notes_come_back(tmp_path: Path):
    kinds = (torch.float32, torch.bfloat16, torch.int64, torch.bool)
    tensors = {str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in kinds}
    tensors |= {"one": torch.tensor(0.5), "none": torch.empty(0, 3)}
    path = tmp_path / "w.safetensors"
    checkpoint.write_tensors(path, tensors, {"step": 7})
    found, notes = checkpoint.read_tensors(path)
    assert notes == {"step": 7}
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
