"""Groups of settings: frozen, read from YAML files, changed by dotted path, with errors that name every problem."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crossfill.errors import ConfigError, unknown
from crossfill.files import shipped

PRESETS = {"laptop": "frozen.yaml", "gpu": "finetune.yaml", "paper": "paper.yaml", "demo": "demo.yaml"}
"""Presets by name, each with the study of `configs/` whose settings it takes."""

Seed = Annotated[int, Field(ge=0, lt=2**32)]
Count = Annotated[int, Field(ge=1, le=10**9)]  # of steps, sentences or other things that take turns


class Settings(BaseModel):
    """A group of settings: immutable; unknown keys, NaN and infinity are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


Group = TypeVar("Group", bound=Settings)


def validated(kind: type[Group], values: Mapping[str, Any], where: str) -> Group:
    """Validate nested values as settings; a ConfigError names every problem."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(describe_problems(kind, where, error))) from None


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

    They are merged into those of its `base`, a file in the same folder or shipped with crossfill, and of its `preset`.
    A study runs exactly the methods it lists. With methods it has its own ablations, with a `config` its own `chosen`.
    """
    values, names = _read_yaml(path), {shipped(path).resolve()}
    place = shipped(path).parent
    while (base := values.pop("base", None)) is not None:
        here = place / str(base)
        base_path = shipped(here if here.is_file() else Path(str(base)))
        if base_path.resolve() in names:
            raise ConfigError(f"{path}: base: expected a file that is not based on this one, got {base}")
        names.add(base_path.resolve())
        of_others = {name for own, name in (("methods", "ablations"), ("config", "chosen")) if own in values}
        inherited = {name: value for name, value in _read_yaml(base_path).items() if name not in of_others}
        values, place = merged(inherited, values, whole=("methods",)), base_path.parent
    if (preset := values.pop("preset", None)) is None:
        return values
    if "methods" not in values:
        return merged(preset_values(str(preset), values.get("method")), values)
    return values | {"config": merged(preset_values(str(preset)), group_of(values, "config", str(path)))}


def group_of(values: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """Return the group of settings with this name, empty if there is none."""
    group = values.get(name) or {}
    if not isinstance(group, Mapping):
        raise ConfigError(f"{where}: {name}: expected settings as key: value, got {shown(group)}")
    return group


def preset_values(name: str, method: str | None = None) -> dict[str, Any]:
    """Read the settings of a preset: those that its study runs a method with."""
    if name not in PRESETS:
        raise ConfigError(unknown("preset", name, PRESETS))
    values = read_settings(Path("configs") / PRESETS[name])
    return merged(values["config"], values["methods"].get(method) or {})


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = _parse_yaml(shipped(path).read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise ConfigError(f"{path}: expected a YAML file of settings; {error.strerror}; check the path") from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: expected a YAML file of settings; {error}; fix the file") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected settings as key: value, got {type(values).__name__}")
    return values


def _parse_yaml(text: str) -> Any:
    """Parse YAML without aliases, which could make a short file huge; ValueError for values that Python cannot hold."""
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
        raise ValueError("aliases (*name) are not read; repeat the value")
    return yaml.safe_load(text)


def parse_assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Parse command-line settings such as `training.steps=500` into values by dotted path; values are YAML."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(f"expected a setting as key=value, such as training.steps=500; got '{text}'")
        try:
            values[name] = _parse_yaml(value)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise ConfigError(f"{name}: expected a value in YAML, such as 500 or [64, 64]; got '{value}'") from None
    return values


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


def describe_problems(root: type[BaseModel], where: str, error: ValidationError) -> list[str]:
    """Describe pydantic's validation errors, a line each."""
    lines = []
    for detail in error.errors(include_url=False, include_context=False):
        *groups, name = detail["loc"] or ("",)
        problem = f"{detail['msg'][0].lower()}{detail['msg'][1:]}; got {shown(detail['input'])}"
        if detail["type"] == "extra_forbidden":
            problem = unknown("setting", str(name), _model_at(root, groups).model_fields)
        lines.append(f"{where}: {'.'.join(map(str, detail['loc']))}: {problem}")
    return lines


def shown(value: Any) -> str:
    """Write a value, cut short if it is long."""
    return f"{value!r:.300}"


def _model_at(model: Any, groups: Sequence[Any]) -> Any:
    """Find the model at pydantic's error location, through nested, optional and listed models."""
    for group in groups:
        if isinstance(group, str) and group in model.model_fields:
            candidates = [model.model_fields[group].annotation]
            while candidates:
                annotation = candidates.pop()
                if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                    model = annotation
                    break
                candidates += get_args(annotation)
    return model
