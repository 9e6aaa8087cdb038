"""Pages that are generated: the command line and every setting from the code, and the project's own files."""

import inspect
import re
import types
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.models import OptionInfo

ROOT = Path(__file__).parents[1]
_SHAPES = {"Path": "PATH", "str": "TEXT", "int": "INT", "float": "NUMBER"}


def pages() -> dict[str, str]:
    """The generated pages, by their names in docs/."""
    return {
        "cli.md": cli_page(),
        "config.md": config_page(),
        "changelog.md": project_page("CHANGELOG.md"),
        "contributing.md": project_page("CONTRIBUTING.md"),
    }


def project_page(name: str) -> str:
    """A file of the repository's root, with its links made relative to docs/."""
    return re.sub(r"\]\(docs/", "](", (ROOT / name).read_text(encoding="utf-8"))


def cli_page() -> str:
    """Every command with its arguments and options, from the functions themselves."""
    from crossfill.cli.app import app

    parts = [
        "# Command line\n\nMade from the code; `crossfill COMMAND --help` says the same, and `python -m crossfill` is "
        "the same command. Bad input ends with code 2 and a message that says what was expected, what was found, "
        "where, and what to do.\n"
    ]
    root = app.registered_callback
    for path, function in [("crossfill", root.callback), *_commands(app, "crossfill")] if root else ():
        given = [p for p in inspect.signature(function).parameters.values() if get_args(p.annotation)]
        found = [_parameter(parameter) for parameter in given]
        usage = " ".join(
            [path, *(f"[{name}]" if default else name for name, _, default, option in found if not option)]
        )
        parts.append(f"## {path}\n\n{_plain(function.__doc__)}\n\n```text\n{usage} [OPTIONS]\n```\n")
        rows = [f"| `{name}` | {text} | {default or '*required*'} |" for name, text, default, _ in found]
        parts.append("| | | default |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else "")
    return "\n".join(parts)


def _commands(app: typer.Typer, path: str) -> Iterator[tuple[str, Callable[..., None]]]:
    for command in app.registered_commands:
        if command.callback is not None:
            yield f"{path} {command.name or command.callback.__name__}", command.callback
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands(group.typer_instance, f"{path} {group.name}")


def _parameter(parameter: inspect.Parameter) -> tuple[str, str, str, bool]:
    """A parameter's usage, help text and default (empty if required), and whether it is an option."""
    kind, about = get_args(parameter.annotation)
    option = isinstance(about, OptionInfo)
    own = next(
        (name for name in about.param_decls or () if name.startswith("--")), f"--{parameter.name.replace('_', '-')}"
    )
    name = own if option else about.metavar or parameter.name.upper()
    inner = [part for part in get_args(kind) if part is not type(None)] if _optional(kind) else [kind]
    many = get_origin(inner[0]) is list
    if option and bool not in inner:
        shape = _type(get_args(inner[0])[0] if many else inner[0])
        name += f" {_SHAPES.get(shape, shape)}"
    text, _, noted = (about.help or "").replace("<", "&lt;").partition(" [default: ")  # <task> is no HTML
    if many and "repeatable" not in text and option:
        text = text.rstrip(".") + "; repeatable."
    if parameter.default is inspect.Parameter.empty:
        return name, text, "", option
    shown = (
        "none"
        if parameter.default in (None, "")
        else "off"
        if parameter.default is False
        else f"`{_value(parameter.default)}`"
    )
    return name, text, noted.rstrip("]") or shown, option


def _optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


def config_page() -> str:
    """Every setting of a run and of a study, from the models that validate them."""
    from crossfill.config import Config
    from crossfill.studies.study import StudyConfig

    return "\n".join(
        [
            "# Settings\n\nMade from the code. Defaults are the paper's. A file of settings is YAML in this shape, and "
            "`--set training.steps=500` changes one of them; unknown names and impossible values are refused, all at "
            "once.\n\n## Of a run\n",
            "`crossfill train --config FILE`, and `config:` in a study.\n",
            *_group(Config, "", 3),
            "## Of a study\n\n`crossfill experiment FILE`; [how to run one](studies.md).\n",
            *_group(StudyConfig, "", 3, study=True),
        ]
    )


def _group(model: type[BaseModel], path: str, level: int, study: bool = False) -> Iterator[str]:
    rows, inner = [], []
    for name, field in model.model_fields.items():
        models = _models(field.annotation)
        if models:
            inner += [(f"{path}{name}", found, len(models) > 1) for found in models]
        if not models or field.description or study:
            text = field.description or (f"[below](#{_anchor(path + name)})" if models else "")
            rows.append(f"| `{name}` | `{_type(field.annotation)}` | {_default(field)} | {_plain(text)} |")
    if path:
        yield f"{'#' * level} `{path.rstrip('.')}` {{ #{_anchor(path.rstrip('.'))} }}\n"
    if path and model.__doc__:
        yield _plain(model.__doc__) + "\n"
    if rows:
        yield "| setting | type | default | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    for name, found, _ in inner:
        yield from _group(found, f"{name}.", level, study)


def _anchor(path: str) -> str:
    return path.replace(".", "-").replace("_", "-")


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The settings models in a field's type: alone, optional or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(map(_value, arguments))
    if _optional(annotation):
        return " or ".join("none" if part is type(None) else _type(part) for part in arguments)
    if origin is not None and hasattr(annotation, "__metadata__"):
        return _type(arguments[0])
    if origin is not None:
        inner = ", ".join("…" if part is Ellipsis else _type(part) for part in arguments)
        return f"{getattr(origin, '__name__', str(origin))}[{inner}]"
    return getattr(annotation, "__name__", str(annotation))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*required*"
    value = field.get_default(call_default_factory=True)
    return "" if isinstance(value, BaseModel) else f"`{_value(value)}`"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)
