"""A study as its YAML file says it: data, settings, methods, partitions, seeds and ablations."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError

from crossfill.config import Config, MethodName, Settings, describe_problem, merged, parse_config, read_settings
from crossfill.data.synthetic import SyntheticConfig
from crossfill.errors import ConfigError


class DataSettings(Settings):
    """The grid."""

    path: str | None = None
    """Folder of corpora, as `crossfill grid` reads it; none for the artificial grid. `--data` names another."""
    synthetic: SyntheticConfig | None = None
    """The artificial grid, in place of a folder."""
    typology: str | None = None
    """Folder of URIEL vectors (`*.tsv`); none looks for `typology/` in the data folder."""
    tasks: tuple[str, ...] = ()
    """Only these tasks; none for all."""
    languages: tuple[str, ...] | Literal["all", "both-tasks"] = "all"
    """Only these languages; `both-tasks` keeps those that have data in every task."""
    source_only: tuple[str, ...] = ()
    """Languages that serve the largest-source method alone, as English does in the paper."""
    complete: bool = False
    """Refuse a grid in which any task lacks a corpus in any of the languages."""
    max_train: PositiveInt | None = None
    """Most training sentences per corpus."""
    max_dev: PositiveInt | None = None
    """Most dev sentences per corpus."""
    max_test: PositiveInt | None = None
    """Most test sentences per corpus."""
    seed: int = 0
    """Seed of random splits and caps, and of the artificial grid."""
    cache: str | None = None
    """Folder for parsed corpora and features; none is the user's cache."""


class PartitionSettings(Settings):
    """One way to part the cells into seen and unseen."""

    kind: Literal["random", "alternating", "hold-out", "similar", "different"]
    """Halves at random or alternating, a list of cells, or random halves within similar or different languages."""
    seed: int = 0
    """Seed of random halves."""
    halves: tuple[PositiveInt, ...] | None = None
    """Which of the halves to run; none for all."""
    cells: tuple[str, ...] = ()
    """What is unseen (`hold-out` only)."""
    size: PositiveInt | None = None
    """|L|, how many languages (`similar` and `different` only)."""
    features: tuple[str, ...] = ("fam",)
    """URIEL features by which languages are alike (`similar` and `different` only); the paper takes families."""
    methods: tuple[MethodName, ...] | None = None
    """Methods to run; none for all of the study's."""

    @property
    def name(self) -> str:
        match self.kind:
            case "similar" | "different":
                return f"{self.kind[:3]}-{self.size}"
            case "hold-out":
                return "hold-out"
            case kind:
                return f"{kind}-{self.seed}" if self.seed else kind


class AblationSettings(Settings):
    """One question, and the settings that answer it; the study's own settings stand beside them as `base`."""

    name: str
    """What is varied."""
    variants: dict[str, dict[str, Any]]
    """Settings by the name of the variant, nested as in a run's config."""
    methods: tuple[MethodName, ...] | None = None
    """Methods it is asked of; none for all of the study's."""


class ExecutionSettings(Settings):
    """Where jobs run; nothing here changes results."""

    executor: Literal["local", "ray"] = "local"
    jobs: NonNegativeInt = 0
    """Jobs at a time; 0 for as many as cores allow."""
    threads: PositiveInt = 1
    """Cores per job."""
    gpus: Annotated[float, Field(ge=0)] = 0.0
    """Accelerators per job (`ray` only)."""
    address: str | None = None
    """Address of a Ray cluster, or `auto`; none starts one on this machine (`ray` only)."""


class StudyConfig(Settings):
    """One study: all it takes to make a RUN folder."""

    title: str = ""
    """Heading of the report."""
    data: DataSettings
    config: dict[str, Any] = Field(default={})
    """Settings of every run, as in `crossfill train --config`."""
    methods: dict[MethodName, dict[str, Any]]
    """Methods in the order of tables, each with the settings in which it differs."""
    partitions: tuple[PartitionSettings, ...] = (PartitionSettings(kind="random"),)
    seeds: tuple[int, ...] = (0,)
    """Seeds of training."""
    ablations: tuple[AblationSettings, ...] = ()
    encoder_languages: tuple[str, ...] = ()
    """Languages that the encoder was trained on; with them the report has a table of scores inside and outside."""
    posteriors: tuple[str, ...] = ()
    """Languages whose posteriors are drawn; none: yor, wol, tam and tel, or else the first four of the grid."""
    focus: MethodName = "pf-lr"
    """The method whose uncertainty the report shows; where it is not among them, the last with posteriors."""
    rival: MethodName = "jm"
    """The method that the others are compared with in the report; the study's first where it is not among them."""
    keep_models: bool = False
    """Keep the trained models in the RUN folder."""
    tensorboard: bool = False
    """Write TensorBoard event files of every job."""
    execution: ExecutionSettings = ExecutionSettings()

    def settings(self, method: str, variant: Mapping[str, Any] | None = None, seed: int | None = None) -> Config:
        """The run config of a method, a variant and a seed."""
        own: Mapping[str, Any] = {str(name): values for name, values in self.methods.items()}.get(method) or {}
        values = merged(merged(self.config, own), variant or {})
        values = merged(values, {"method": method})
        return parse_config(values if seed is None else merged(values, {"training": {"seed": seed}}))


def parse_study(values: dict[str, Any], where: str = "study") -> tuple[StudyConfig | None, list[str]]:
    """The study of these values and all that is wrong with them.

    What is wrong is left out of the study, so that the rest of it can be checked too; where that leaves no study at
    all, there is none.
    """
    problems: list[str] = []
    for _ in range(20):
        try:
            study = StudyConfig.model_validate(values)
        except ValidationError as error:
            details = error.errors()
            problems += [describe_problem(StudyConfig, where, detail) for detail in details]
            if any(detail["type"] == "missing" for detail in details):
                return None, problems
            for detail in details:
                values = _without(values, _place(values, detail["loc"]))
            continue
        return study, problems + _setting_problems(study, where)
    return None, problems


def load_run_config(path: Path, method: str | None = None) -> Config:
    """The settings of one run, from a file of settings or a study's: there those of the method, or else of pf-lr."""
    values = read_settings(path)
    if "methods" not in values:
        return parse_config(values, str(path))
    study, problems = parse_study(values, str(path))
    if study is None or problems:
        raise ConfigError("\n".join(problems))
    return study.settings(method or ("pf-lr" if "pf-lr" in study.methods else next(iter(study.methods))))


def _setting_problems(study: StudyConfig, where: str) -> list[str]:
    """What is wrong with the run settings that methods and variants amount to."""
    asked: dict[str, tuple[str, Mapping[str, Any]]] = {f"methods.{m}": (m, {}) for m in study.methods}
    for ablation in study.ablations:
        for name, values in ablation.variants.items():
            for method in ablation.methods or study.methods:
                asked[f"ablations '{ablation.name}', '{name}', {method}"] = (method, values)
    problems: dict[str, None] = {}
    for place, (method, variant) in asked.items():
        try:
            study.settings(method, variant)
        except ConfigError as error:
            for line in str(error).splitlines():
                message = line.removeprefix("config: ")
                known = f"{where}: config: {message}"
                if known not in problems:
                    shared = _settings_are_wrong(study.config, message)
                    problems[known if shared else f"{where}: {place}: {message}"] = None
    named = set(study.methods)
    for part in (*study.partitions, *study.ablations):
        for method in part.methods or ():
            if method not in named:
                problems[f"{where}: '{part.name}' asks for {method}, which is not under methods"] = None
    return list(problems)


def _settings_are_wrong(values: Mapping[str, Any], message: str) -> bool:
    """Whether the study's shared settings alone have this problem."""
    try:
        parse_config(merged({}, values))
    except ConfigError as error:
        return any(line.removeprefix("config: ") == message for line in str(error).splitlines())
    return False


def _place(values: Any, location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """The part of pydantic's location that is a path in the values: it also names types and the keys of mappings."""
    place: list[int | str] = []
    for part in location:
        children: Mapping[Any, Any] = values if isinstance(values, Mapping) else {}
        if isinstance(values, list):
            children = dict(enumerate(values))
        if part not in children:
            break
        values = children[part]
        place.append(part)
    return tuple(place)


def _without(values: Any, place: tuple[int | str, ...]) -> Any:
    """The values without the one at this place."""
    if not place:
        return {}
    first, *rest = place
    if isinstance(values, Mapping):
        if not rest:
            return {key: value for key, value in values.items() if key != first}
        return {key: _without(value, tuple(rest)) if key == first else value for key, value in values.items()}
    if isinstance(values, list) and isinstance(first, int):
        if not rest:
            return values[:first] + values[first + 1 :]
        return [_without(value, tuple(rest)) if i == first else value for i, value in enumerate(values)]
    return values
