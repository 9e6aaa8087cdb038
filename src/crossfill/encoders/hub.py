"""Folders of pretrained models: found by hub name or path, checked before loading, and identified by content."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from crossfill.errors import EncoderError, first_line, listed
from crossfill.files import default_cache, write_atomically, write_json

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

READ = (".json", ".safetensors", ".model", ".txt")
"""Endings of files that are read."""
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_INDEX = "model.safetensors.index.json"
_LARGEST = 2**24
"""Bound on the sizes of a model."""
_SPARE_ROWS = 0.1
"""Share of embedding rows that may be padding; a tokenizer that leaves more of them unused is another model's."""
_NO_CODE = "code of the folder is never run; delete the key if transformers knows the model's type"
_REFUSED = {
    "auto_map": _NO_CODE,
    "trust_remote_code": _NO_CODE,
    "quantization_config": "quantised weights need code of their own",
    "transformers_weights": "weights are read from model.safetensors alone",
}
_ATTENTION = ("_attn_implementation", "_attn_implementation_internal", "attn_implementation")
_KNOWN_ATTENTION = (None, "eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention")


class Origin(NamedTuple):
    """A model of the hub, as it was at a commit."""

    name: str
    revision: str

    @classmethod
    def of(cls, folder: Path) -> "Origin | None":
        """Find where a folder of the hub's cache came from; none for any other folder."""
        home, commit = folder.resolve().parent, folder.resolve().name
        kind, *name = home.parent.name.split("--")
        if home.name != "snapshots" or kind != "models" or not name or not _COMMIT.fullmatch(commit):
            return None
        return cls("/".join(name), commit)


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Turn every failure of a loader into an EncoderError that begins with `what`."""
    try:
        yield
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(f"{what}; {first_line(error)}") from None


def find_folder(name: str, weights: bool = True) -> Path:
    """Find the folder of a model: the path itself, else the copy in the local hub cache, else a download from the hub.

    A name of the hub may end in @ and a revision, as `google/gemma-3-270m@main`.
    """
    path = Path(name).expanduser()
    if path.exists():
        _check_folder(path, weights)
        return path
    repository, _, revision = name.partition("@")
    parts = Path(repository).parts
    inside = len(parts) > 2 or (len(parts) > 1 and Path(parts[0]).is_dir())
    if name.startswith((".", "~")) or path.is_absolute() or inside:
        raise EncoderError(f"encoder '{name}': expected a folder of that name, found none; check the path")
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_CACHE

    problem: Exception | None = None
    check_revision(revision)
    wanted = {
        "revision": revision or None,
        "allow_patterns": [f"*{ending}" for ending in READ if weights or ending != ".safetensors"],
        "ignore_patterns": ["*/*"],
    }
    for offline in (True, False):
        try:
            folder = Path(snapshot_download(repository, local_files_only=offline, **wanted))
            _check_folder(folder, weights)
        except Exception as error:  # of any kind, as its place may answer anything
            problem = error
        else:
            return folder
    command = f"hf download {repository}" + (f" --revision {revision}" if revision else "")
    raise EncoderError(
        f"encoder '{name}': expected a folder, or a model of the hub that is in {HF_HUB_CACHE} or can be fetched; "
        f"got neither ({first_line(problem)}). Fetch it where there is a network ({command}) and copy that cache here "
        "(HF_HOME names its place), or pass the path of a folder with its files"
    ) from None


def check_revision(revision: str) -> None:
    """Refuse a revision that no branch, tag or commit can have, such as the path of another cache."""
    if revision and (not re.fullmatch(r"[\w.][\w./-]*", revision) or ".." in revision):
        raise EncoderError(f"expected a branch, a tag or a commit of the hub as revision, got '{revision[:60]}'")


def is_cached(name: str) -> bool:
    """Tell whether a model of the hub is on this machine; nothing is asked of the network."""
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json"), str)


def identity(folder: Path) -> bytes:
    """Compute a hash of the model's settings, tokenizer and weights, independent of where the folder is.

    It is remembered in the cache folder, and computed again when the size or the time of a file has changed.
    """
    paths = sorted(p for p in folder.iterdir() if p.suffix == ".safetensors" or p.name in ("config.json", *_TOKENIZERS))
    files = [[path.name, (stat := path.stat()).st_size, stat.st_mtime_ns] for path in paths]
    place = blake2b(os.fsencode(folder.resolve()), digest_size=16).hexdigest()
    memory = default_cache() / "encoders" / f"{place}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(memory.read_bytes())
        if known["files"] == files:
            return bytes.fromhex(known["identity"])
    digest = blake2b(digest_size=16)
    for path, (name, size, _) in zip(paths, files, strict=True):
        digest.update(f"{name}\0{size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(1 << 24):
                digest.update(block)
    with suppress(OSError):
        write_json(memory, {"files": files, "identity": digest.hexdigest()})
    return digest.digest()


def load_settings(folder: Path, name: str) -> "PreTrainedConfig":
    """Load the model's own config; models that do not give one vector per piece are refused."""
    from transformers import AutoConfig

    with loading(f"encoder '{name}': expected a config that transformers knows"):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False).get_text_config()
    if getattr(config, "is_encoder_decoder", False):
        raise EncoderError(f"encoder '{name}': expected an encoder or a decoder, got both ({config.model_type})")
    for key in ("hidden_size", "num_hidden_layers", "vocab_size"):
        size = getattr(config, key, None)
        if not isinstance(size, int) or not 1 <= size <= _LARGEST:
            raise EncoderError(f"encoder '{name}', config.json: {key}: expected 1 to {_LARGEST:,}, got {size!r:.20}")
    return config


def load_tokenizer(folder: Path, name: str, config: "PreTrainedConfig") -> "PreTrainedTokenizerBase":
    """Load the model's tokenizer; one that is slow or belongs to another model is refused."""
    from transformers import AutoTokenizer

    with loading(f"encoder '{name}': expected a tokenizer in {folder}"):
        tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=True, trust_remote_code=False)
        highest = max(tokenizer.get_vocab().values(), default=-1)
    if not tokenizer.is_fast:
        kind = type(tokenizer).__name__
        raise EncoderError(f"encoder '{name}': expected a fast tokenizer (tokenizer.json), got {kind}")
    rows, pieces = config.vocab_size, highest + 1
    if pieces > rows or pieces < rows * (1 - _SPARE_ROWS) - 1000:
        counts = f"the model's {rows:,} pieces, got one of {pieces:,}: it belongs to another model"
        raise EncoderError(f"encoder '{name}': expected a tokenizer for {counts}; put the right tokenizer.json into it")
    return tokenizer


def load_network(folder: Path, name: str, precision: torch.dtype) -> "PreTrainedModel":
    """Load the model with its weights, from safetensors only, without remote code."""
    from transformers import AutoModel
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with loading(f"encoder '{name}': expected weights that transformers loads"):
            safely = {"use_safetensors": True, "trust_remote_code": False, "attn_implementation": "sdpa"}
            network, report = AutoModel.from_pretrained(folder, dtype=precision, output_loading_info=True, **safely)
            network.set_attn_implementation("sdpa")  # a config that names another wins over the argument
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        lacking = f"found none in {folder} for {len(missing)} tensors, such as {missing[0]}"
        raise EncoderError(f"encoder '{name}': expected all weights, {lacking}; is config.json of another model?")
    return network


def new_network(settings: "PreTrainedConfig") -> "PreTrainedModel":
    """Build the model without loading its weights."""
    from transformers import AutoModel

    with loading("expected an encoder that transformers builds"):
        network = AutoModel.from_config(settings, trust_remote_code=False, dtype=torch.float32)
        network.set_attn_implementation("sdpa")
        return network


def carry(folder: Path, target: Path, weights: bool) -> None:
    """Copy the encoder files that a model needs: settings and tokenizer, and optionally the weights."""
    target.mkdir(parents=True, exist_ok=True)
    endings = (".json", ".safetensors") if weights else (".json",)
    for path in sorted(folder.iterdir()):
        if path.suffix in endings or path.name in (*_TOKENIZERS, "merges.txt"):
            write_atomically(target / path.name, path.read_bytes())


def _check_folder(folder: Path, weights: bool = True) -> None:
    """Refuse a folder that lacks a part, or asks for more than a network of transformers, such as its own code."""
    if not folder.is_dir():
        raise EncoderError(f"encoder '{folder}': expected a folder with config.json, model.safetensors and a tokenizer")
    names = {path.name for path in folder.iterdir()}
    needed = {
        "config.json in it": "config.json" in names,
        "weights as safetensors (files of other kinds can run code; save_pretrained writes safetensors)": not weights
        or any(name.endswith(".safetensors") for name in names),
        "a tokenizer (tokenizer.json)": bool(names.intersection(_TOKENIZERS)),
        "a whole model, merged with its adapter": "adapter_config.json" not in names,
    }
    if missing := next((part for part, is_there in needed.items() if not is_there), None):
        raise EncoderError(f"encoder '{folder}': expected {missing}, found {listed(sorted(names), 8) or 'nothing'}")
    for path in (folder / name for name in ("config.json", "tokenizer_config.json") if name in names):
        for settings in _objects(_read_object(path)):
            for key, reason in _REFUSED.items():
                if settings.get(key):
                    raise EncoderError(f"{path}: expected no {key}: {reason}")
            for key in _ATTENTION:
                if settings.get(key) not in _KNOWN_ATTENTION:
                    raise EncoderError(f"{path}: {key}: expected sdpa or eager, got {str(settings[key])[:60]!r}")
    if _INDEX in names:
        path = folder / _INDEX
        files = _read_object(path).get("weight_map")
        if not isinstance(files, dict):
            raise EncoderError(f"{path}: expected weight_map, names of tensors and of their files")
        for name in {str(name) for name in files.values()}:
            if Path(name).name != name or not name.endswith(".safetensors") or "\\" in name:
                raise EncoderError(f"{path}: expected .safetensors files of this folder, got {name[:100]!r}")


def _read_object(path: Path) -> dict[str, Any]:
    with loading(f"{path}: expected a JSON object"):
        value = json.loads(path.read_bytes())
        if not isinstance(value, dict):
            raise EncoderError(f"{path}: expected a JSON object, got {type(value).__name__}")
        return value


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """List all objects in a JSON value, at any depth."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(part)
