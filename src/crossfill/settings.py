"""Groups of settings: frozen, read from YAML files, changed by dotted path, with errors that name every problem."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ConfigDict

from crossfill.errors import ConfigError, unknown
from crossfill.files import shipped

PRESETS = {"laptop": "frozen.yaml", "gpu": "finetune.yaml", "paper": "paper.yaml", "demo": "demo.yaml"}
"""Presets by name, each with the study of `configs/` whose settings it takes."""


class Settings(BaseModel):
    """A group of settings: immutable, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def merged(values: Mapping[str, Any], changes: Mapping[str, Any], whole: Collection[str] = ()) -> dict[str, Any]:
    """Merge `changes` into nested values and return a new dict; top-level keys in `whole` are replaced, not merged."""
    result = dict(values)
    for key, value in changes.items():
        inner = result.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping) and key not in whole:
            value = merged(inner, value)
        result[key] = value
    return result


def read_settings(path: Path) -> dict[str, Any]:
    """Read the values in a YAML file of settings or of a study.

    A file may name another as its `base`, in the same folder or shipped with crossfill. Its own values are merged into
    those of the base. Only `methods` is replaced as a whole, since a study runs exactly the methods it lists. A file
    may also name a `preset`, whose settings then stand behind its own.
    """
    values, names = _read_yaml(path), {shipped(path).resolve()}
    place = shipped(path).parent
    while (base := values.pop("base", None)) is not None:
        beside = place / str(base)
        found = shipped(beside if beside.is_file() else Path(str(base)))
        if found.resolve() in names:
            raise ConfigError(f"{path}: base: expected a file that is not based on this one, got {base}")
        names.add(found.resolve())
        values, place = merged(_read_yaml(found), values, whole=("methods",)), found.parent
    if (preset := values.pop("preset", None)) is None:
        return values
    if "methods" not in values:
        return merged(preset_values(str(preset), values.get("method")), values)
    return values | {"config": merged(preset_values(str(preset)), values.get("config") or {})}


def preset_values(name: str, method: str | None = None) -> dict[str, Any]:
    """Read the settings of a preset: those that its study runs a method with."""
    if name not in PRESETS:
        raise ConfigError(unknown("preset", name, PRESETS))
    values = read_settings(Path("configs") / PRESETS[name])
    return merged(values["config"], values["methods"].get(method) or {})


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(shipped(path).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: expected a YAML file of settings; {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected settings as key: value, got {type(values).__name__}")
    return values


def parse_assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Parse command-line settings such as `training.steps=500` into values by dotted path; values are YAML."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(f"expected a setting as key=value, such as training.steps=500; got '{text}'")
        try:
            found[name] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise ConfigError(
                f"{name}: expected a value in YAML, such as 500, mean or [64, 64]; got '{value}'"
            ) from None
    return found


def change_values(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Set nested values by dotted path, in place; returns the values."""
    for path, value in changes.items():
        *groups, name = path.split(".")
        target = values
        for group in groups:
            if target.get(group) is None:
                target[group] = {}
            target = target[group]
            if not isinstance(target, dict):
                raise ConfigError(f"{path}: '{group}' is a setting, not a group of settings")
        target[name] = str(value) if isinstance(value, Path) else value
    return values


def describe_problem(root: type[BaseModel], where: str, detail: Any) -> str:
    """Describe one of pydantic's validation errors in a line."""
    path = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        *groups, name = detail["loc"]
        return f"{where}: {path}: " + unknown("setting", str(name), _model_at(root, groups).model_fields)
    return f"{where}: {path}: {detail['msg'][0].lower()}{detail['msg'][1:]}; got {detail['input']!r}"


def _model_at(model: Any, groups: Sequence[Any]) -> Any:
    """The model at pydantic's error location, through nested, optional and listed models."""
    for group in groups:
        if isinstance(group, str) and group in model.model_fields:
            candidates = [model.model_fields[group].annotation]
            while candidates:
                found = candidates.pop()
                if isinstance(found, type) and issubclass(found, BaseModel):
                    model = found
                    break
                candidates += get_args(found)
    return model
