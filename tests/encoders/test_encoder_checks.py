"""Folders from strangers: whatever is in them, an EncoderError says so, soon, and nothing outside of them is read."""

import json
import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from crossfill.config import Config
from crossfill.encoders.base import build_encoder
from crossfill.encoders.hub import loading
from crossfill.encoders.huggingface import Source, WordEncoder
from crossfill.errors import EncoderError
from crossfill.grid.sentence import Corpus, Sentence
from tests.encoders.tiny import bert

SECONDS = 10
CORPUS = Corpus.from_sentences([Sentence(("Dakar", "mooy", "péeyu"))])


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("honest") / "encoder")


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "encoder"))


def use(folder: Path, mode: str) -> torch.Tensor:
    """All that a user of the folder does with it."""
    config = Config().change({"encoder.name": str(folder), "encoder.pretrained.mode": mode, "method": "jm"})
    encoder = build_encoder(config.change({"encoder.pretrained.max_pieces": 60}), ("wol",), cache=False)
    return encoder.eval()(encoder.prepare(CORPUS, "wol"))


def settings(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def content(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda folder: _put(folder / name, data)


def index(file: str, data: bytes = b"") -> Callable[[Path], None]:
    """Weights in several files, one of which is `file`."""

    def change(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        first, *rest = tensors
        save_file({name: tensors[name] for name in rest}, folder / "a.safetensors")
        names = dict.fromkeys(rest, "a.safetensors") | {first: file}
        _put(folder / "model.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": names}).encode())
        if data:
            _put(folder / file, data)

    return change


class Boom:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("executed"),))


def _put(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


ATTACKS: dict[str, Callable[[Path], None]] = {
    "config: empty": content("config.json", b""),
    "config: list": content("config.json", b"[]"),
    "config: nested": content("config.json", b"[" * 100_000),
    "config: no UTF-8": content("config.json", b'{"model_type": "\xff"}'),
    "config: unknown": settings(model_type="strange", auto_map={"AutoModel": "evil.Model", "AutoConfig": "evil.C"}),
    "config: wide": settings(hidden_size=10**9),
    "config: wider than the weights": settings(hidden_size=32),
    "config: deeper than the weights": settings(num_hidden_layers=1000),
    "config: other vocabulary": settings(vocab_size=12345),
    "config: negative": settings(hidden_size=-16),
    "config: word": settings(hidden_size="many"),
    "config: nothing": settings(num_hidden_layers=None),
    "config: no heads": settings(num_attention_heads=0),
    "config: quantised": settings(quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True}),
    "config: code": settings(auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}),
    "config: code in a nested config": settings(text_config={"auto_map": {"AutoConfig": "evil.Config"}}),
    "config: code in a list": settings(layers=[{"trust_remote_code": True}]),
    "config: kernel of the hub": settings(_attn_implementation="someone/kernel"),
    "config: other weights": settings(transformers_weights="pytorch_model.bin"),
    "weights: cut": content("model.safetensors", b"\x10\0\0\0\0\0\0\0{}"),
    "weights: long header": content("model.safetensors", (2**60).to_bytes(8, "little") + b"{}"),
    "weights: no header": content("model.safetensors", b"\x08\0\0\0\0\0\0\0nonsense"),
    "weights: pickle": content("model.safetensors", pickle.dumps(Boom())),
    "index: pickle": index("pytorch_model.bin", pickle.dumps(Boom())),
    "index: outside": index("../x.safetensors"),
    "index: absolute": index("/x.safetensors"),
    "index: missing": index("b.safetensors"),
    "adapter": content("adapter_config.json", b'{"base_model_name_or_path": "elsewhere/model"}'),
    "tokenizer: empty": content("tokenizer.json", b"{}"),
    "tokenizer config: list": content("tokenizer_config.json", b"[1]"),
    "tokenizer config: code": content(
        "tokenizer_config.json", b'{"extra": {"auto_map": {"AutoTokenizer": ["evil.Tokenizer", null]}}}'
    ),
}


@pytest.mark.parametrize("mode", ["frozen", "finetune"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_ends_in_an_encoder_error(
    attack: str, mode: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    _put(folder / "evil.py", b"from pathlib import Path\nPath('executed').touch()\n")
    ATTACKS[attack](folder)
    started = time.process_time()
    with pytest.raises(EncoderError):
        use(folder, mode)
    assert time.process_time() - started < SECONDS
    assert not (tmp_path / "executed").exists()


def test_an_honest_folder_is_used_in_one_file_and_in_several(folder: Path, honest: Path):
    wanted = use(honest, "frozen")
    index("b.safetensors")(folder)
    tensors = load_file(honest / "model.safetensors")
    first = next(iter(tensors))
    save_file({first: tensors[first]}, folder / "b.safetensors")
    assert torch.equal(use(folder, "frozen"), wanted)


def test_attention_is_ours_whatever_the_folder_says(folder: Path):
    settings(_attn_implementation="eager")(folder)
    encoder = WordEncoder(Source.find(str(folder)), Config().encoder.pretrained.model_copy(update={"max_pieces": 60}))
    assert encoder.network.network.config._attn_implementation == "sdpa"


def test_code_of_a_folder_is_refused_before_anything_is_loaded(folder: Path):
    settings(text_config={"auto_map": {"AutoConfig": "evil.Config"}})(folder)
    with pytest.raises(EncoderError, match=r"config\.json: expected no auto_map: code of the folder is never run"):
        Source.find(str(folder))


def test_an_interruption_is_no_encoder_error():
    with pytest.raises(KeyboardInterrupt), loading("expected a tokenizer"):
        raise KeyboardInterrupt
