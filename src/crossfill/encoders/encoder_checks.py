"""Checks of encoder folders from untrusted sources, before any loader reads them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crossfill.errors import EncoderError

READ = (".json", ".safetensors", ".model", ".txt")
"""Endings of files that are read."""
_REFUSED = {
    "auto_map": "code of the folder is never run; delete the key if transformers knows the model's type",
    "trust_remote_code": "code of the folder is never run; delete the key if transformers knows the model's type",
    "quantization_config": "quantised weights need code of their own",
    "transformers_weights": "weights are read from model.safetensors alone",
}
_ATTENTION = ("_attn_implementation", "_attn_implementation_internal", "attn_implementation")
_KNOWN_ATTENTION = (None, "eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention")


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Turn every failure of a loader into an EncoderError that begins with `what`."""
    try:
        yield
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(f"{what}; {first_line(error)}") from None


def first_line(error: BaseException | None) -> str:
    """Return the beginning of an error's message, or its type if it has none."""
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__


def check_settings_files(folder: Path) -> None:
    """Refuse what a folder asks for beyond a network of transformers: its own code, other weights, other kernels."""
    if (folder / "adapter_config.json").exists():
        raise EncoderError(f"encoder '{folder}': expected a whole model, got an adapter; merge it into its model first")
    for path in (folder / "config.json", folder / "tokenizer_config.json"):
        for settings in _objects(_read_object(path)) if path.exists() else ():
            for key, reason in _REFUSED.items():
                if settings.get(key):
                    raise EncoderError(f"{path}: expected no {key}: {reason}")
            for key in _ATTENTION:
                if settings.get(key) not in _KNOWN_ATTENTION:
                    raise EncoderError(f"{path}: {key}: expected sdpa or eager, got {str(settings[key])[:60]!r}")


def check_index(folder: Path) -> None:
    """Refuse an index of weights that names anything but safetensors files of the folder."""
    path = folder / "model.safetensors.index.json"
    if not path.exists():
        return
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
