"""Pretrained models that are not there, not whole, or not what they seem."""

import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from crossfill.config import PretrainedConfig
from crossfill.encoders import hub
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.errors import EncoderError
from crossfill.files import default_cache
from crossfill.tagger.model_folder import find_model
from tests.encoders.tiny import bert, gemma
from tests.own_cache import own_cache as own_cache


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bert(tmp_path / "bert")


def load(folder: Path | str) -> WordEncoder:
    return WordEncoder(Source.find(str(folder)), PretrainedConfig(max_pieces=60))


def test_offline_message_names_the_model_the_cache_and_two_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import huggingface_hub

    def unreachable(*_: object, local_files_only: bool, **__: object) -> str:
        raise OSError("no such snapshot" if local_files_only else "cannot reach the hub")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(EncoderError) as caught:
        Source.find("bert-base-multilingual-cased")
    for part in (
        "encoder 'bert-base-multilingual-cased'",
        f"in {tmp_path / 'hub'}",
        "cannot reach the hub",
        "hf download bert-base-multilingual-cased",
        "or pass the path of a folder",
    ):
        assert part in str(caught.value)


def test_a_name_is_looked_up_in_the_local_cache_first(folder: Path, monkeypatch: pytest.MonkeyPatch):
    import huggingface_hub

    asked = []
    monkeypatch.setattr(
        huggingface_hub,
        "snapshot_download",
        lambda *_, local_files_only, **__: asked.append(local_files_only) or str(folder),
    )
    assert hub.find_folder("tiny-bert") == folder
    assert asked == [True]


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("config.json", "expected config.json in it, found model.safetensors, tokenizer.json"),
        ("model.safetensors", "expected weights as safetensors .* found config.json"),
        ("tokenizer.json", "expected a tokenizer"),
    ],
)
def test_an_incomplete_folder_is_refused_with_the_reason(folder: Path, missing: str, message: str):
    (folder / missing).unlink()
    with pytest.raises(EncoderError, match=message):
        load(folder)


def test_pickled_weights_are_never_loaded(folder: Path):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(EncoderError, match=r"can run code; save_pretrained .* found .*pytorch_model.bin"):
        load(folder)


def test_a_tokenizer_of_another_model_is_refused(folder: Path, tmp_path: Path):
    other = gemma(tmp_path / "gemma")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(other / name, folder / name)
    with pytest.raises(EncoderError, match=r"got one of [\d,]+: it belongs to another model"):
        load(folder)


def test_weights_of_another_model_are_refused(folder: Path):
    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "layer.1." not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderError, match=r"found none in .* for \d+ tensors, such as .*layer.1"):
        load(folder)


def test_what_is_no_encoder_is_refused(folder: Path, tmp_path: Path):
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"model_type": "nothing"}))
    with pytest.raises(EncoderError, match="expected a config that transformers knows"):
        load(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "t5", "architectures": ["T5Model"]}))
    with pytest.raises(EncoderError, match="expected an encoder or a decoder, got both"):
        load(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(EncoderError, match=r"expected a folder with config\.json"):
        load(tmp_path / "file")


def test_identity_follows_content_not_place(folder: Path, tmp_path: Path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert hub.identity(copy) == hub.identity(folder)
    (copy / "README.md").write_text("words about it")
    assert hub.identity(copy) == hub.identity(folder)
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "model.safetensors").write_bytes(content)
    assert hub.identity(copy) != hub.identity(folder)


def test_an_identity_is_remembered_until_a_file_changes(folder: Path, monkeypatch: pytest.MonkeyPatch):
    weights = folder / "model.safetensors"

    def reads() -> int:
        """Ask for the identity twice; return how often the weights are read."""
        opened: list[Path] = []
        real = Path.open
        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", lambda path, *rest, **more: (opened.append(path), real(path, *rest, **more))[1])
            assert len({hub.identity(folder), hub.identity(folder)}) == 1
        return opened.count(weights)

    before = hub.identity(folder)
    assert reads() == 0
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, (0, 0))
    assert reads() == 1
    assert hub.identity(folder) != before
    (memory,) = (default_cache() / "encoders").iterdir()
    memory.write_text("half")
    assert reads() == 1


ASK = """
from crossfill.encoders.hub import find_folder
from crossfill.errors import CrossfillError
from crossfill.tagger.model_folder import find_model
for find in (find_folder, find_model):
    try:
        find("me/enc")
    except CrossfillError as error:
        print(str(error)[:20])
"""


class Loop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("endpoint", ["redirects", "file:///etc"])
def test_a_hub_that_is_none_is_said(endpoint: str, tmp_path: Path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Loop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}" if endpoint == "redirects" else endpoint
    environment = os.environ | {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, timeout=200)
    server.shutdown()
    server.server_close()
    assert done.stdout == "encoder 'me/enc': ex\nmodel 'me/enc': expe\n", done.stderr


@pytest.mark.parametrize("revision", ["../../main", "a/../b", "/etc", "..", "-x", "a b", "\n"])
def test_a_revision_that_is_a_path_is_refused(revision: str):
    with pytest.raises(EncoderError, match="expected a branch, a tag or a commit of the hub as revision"):
        hub.find_folder(f"me/enc@{revision}")
    with pytest.raises(EncoderError, match="expected a branch, a tag or a commit of the hub as revision"):
        find_model("me/enc", revision=revision)
