"""The gate for encoder folders, which may be a stranger's: their files are checked before any loader reads them."""

import json
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crossfill.errors import EncoderError

READ = (".json", ".safetensors", ".model", ".txt")
"""Endings of files that are read."""
CONFIG, WEIGHTS, INDEX, ADAPTER = (
    "config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "adapter_config.json",
)
_MOST_BYTES = {CONFIG: 2**20, INDEX: 2**25}
_MOST_BYTES_OF_OTHERS = 2**27
_MOST_HEADER = 2**26
_LARGEST = {"hidden_size": 2**16, "num_hidden_layers": 2**10, "vocab_size": 2**23, "max_position_embeddings": 2**27}
_LARGEST_OF_OTHERS = 2**31
_REFUSED = {
    "quantization_config": "quantised weights need code of their own",
    "transformers_weights": "weights are read from model.safetensors alone",
}
_ATTENTION = ("_attn_implementation", "_attn_implementation_internal", "attn_implementation")
_OWN_ATTENTION = (None, "eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention")


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Turn every failure of a loader into an EncoderError that begins with `what`; panics of Rust code, too."""
    try:
        yield
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(f"{what}; {first_line(error)}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of pyo3: no Exception, and of no module that can be imported
            raise
        raise EncoderError(f"{what}; {first_line(error)}") from None


def first_line(error: BaseException | None) -> str:
    """The beginning of an error's message, or its kind if it has none."""
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__


def check_files(folder: Path) -> None:
    """Refuse what is no regular file (a pipe blocks, a device never ends) or larger than such files are."""
    for path in sorted(folder.iterdir()):
        if path.suffix not in READ:
            continue
        try:
            found = path.stat()  # of what a link points to: the hub's cache consists of links
        except OSError as error:
            raise EncoderError(f"encoder file '{path}': expected a file; {error.strerror}") from None
        if not stat.S_ISREG(found.st_mode):
            raise EncoderError(f"encoder file '{path}': expected a regular file, got a folder, a pipe or a device")
        most = _MOST_BYTES.get(path.name, _MOST_BYTES_OF_OTHERS)
        if path.suffix != ".safetensors" and found.st_size > most:
            raise EncoderError(f"encoder file '{path}': expected at most {most:,} bytes, got {found.st_size:,}")


def check_settings_file(folder: Path) -> None:
    """Refuse what config.json asks for beyond a network of transformers: other code, other weights, other kernels."""
    if (folder / ADAPTER).exists():
        raise EncoderError(f"encoder '{folder}': expected a whole model, got an adapter ({ADAPTER}); merge it first")
    for settings in _groups(read_object(folder / CONFIG)):
        for key, reason in _REFUSED.items():
            if settings.get(key) is not None:
                raise EncoderError(f"{folder / CONFIG}: expected no {key}: {reason}")
        for key in _ATTENTION:
            if settings.get(key) not in _OWN_ATTENTION:
                raise EncoderError(f"{folder / CONFIG}: {key}: expected sdpa or eager, got {str(settings[key])[:60]!r}")


def weight_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of the model's weights, from the headers of its files."""
    shapes: dict[str, tuple[int, ...]] = {}
    for path in _weight_files(folder):
        for name, about in _header(path).items():
            shape = about.get("shape") if isinstance(about, dict) else None
            if isinstance(shape, list) and all(isinstance(n, int) and n >= 0 for n in shape):
                shapes[name] = tuple(shape)
    return shapes


def check_sizes(sizes: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]] | None, where: str) -> None:
    """Refuse sizes that no model has, or that the model's weights do not have; before anything is built by them."""
    for key, value in sizes.items():
        if isinstance(value, int) and not -(2**31) <= value <= _LARGEST.get(key, _LARGEST_OF_OTHERS):
            limit = _LARGEST.get(key, _LARGEST_OF_OTHERS)
            raise EncoderError(f"{where}: {key}: expected at most {limit:,}, got {str(value)[:20]}")
    for key in ("hidden_size", "num_hidden_layers", "vocab_size"):
        if not isinstance(sizes.get(key), int) or sizes[key] < 1:
            raise EncoderError(f"{where}: {key}: expected a whole number above 0, got {str(sizes.get(key))[:20]}")
    if shapes is None:
        return
    dimensions = {n for shape in shapes.values() for n in shape}
    for key in ("hidden_size", "vocab_size"):
        if sizes[key] not in dimensions:
            raise EncoderError(
                f"{where}: {key}: expected that of the weights, got {sizes[key]:,}, which no tensor has; "
                "is config.json of another model?"
            )
    if sizes["num_hidden_layers"] > len(shapes):
        found = sizes["num_hidden_layers"]
        raise EncoderError(f"{where}: num_hidden_layers: {found:,} layers for weights of {len(shapes):,} tensors")


def read_object(path: Path) -> dict[str, Any]:
    """The object of a JSON file that has passed `check_files`."""
    with loading(f"{path}: expected a JSON object"):
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict):
            raise EncoderError(f"{path}: expected a JSON object, got {type(found).__name__}")
        return found


def _weight_files(folder: Path) -> list[Path]:
    if (folder / WEIGHTS).exists() or not (folder / INDEX).exists():
        return [folder / WEIGHTS] if (folder / WEIGHTS).exists() else sorted(folder.glob("*.safetensors"))
    named = read_object(folder / INDEX).get("weight_map")
    if not isinstance(named, dict) or not all(isinstance(name, str) for name in named.values()):
        raise EncoderError(f"{folder / INDEX}: expected weight_map, names of tensors and of their files")
    names = sorted(set(named.values()))
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors") or "\\" in name:
            raise EncoderError(f"{folder / INDEX}: expected .safetensors files of this folder, got {name[:100]!r}")
        if not (folder / name).is_file():
            raise EncoderError(f"{folder / INDEX}: names {name[:100]!r}, which is not there")
    return [folder / name for name in names]


def _header(path: Path) -> dict[str, Any]:
    """The header of a safetensors file: eight bytes for its length, then JSON."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_MOST_HEADER, path.stat().st_size - 8):
            raise EncoderError(f"encoder file '{path}': expected safetensors, got a header of {length:,} bytes")
        with loading(f"encoder file '{path}': expected safetensors"):
            found = json.loads(file.read(length))
    if not isinstance(found, dict):
        raise EncoderError(f"encoder file '{path}': expected safetensors, got a header that is no object")
    return found


def _groups(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The settings, and those of the networks inside."""
    yield settings
    for value in settings.values():
        if isinstance(value, dict):
            yield from _groups(value)
