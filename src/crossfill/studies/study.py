"""The settings of a study, as in its YAML file: data, run settings, methods, partitions, seeds and ablations."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from crossfill.config import Config, MethodName, parse_config
from crossfill.data.synthetic import SyntheticConfig
from crossfill.errors import ConfigError
from crossfill.executors.base import ExecutionSettings
from crossfill.settings import Count, Seed, Settings, describe_problems, merged


class DataSettings(Settings):
    """The data of a study: where its grid comes from, and which part of it is used."""

    path: str | None = None
    """Data folder, as `crossfill grid` reads it; none for the artificial grid. `--data` overrides it."""
    synthetic: SyntheticConfig | None = None
    """Settings of an artificial grid, used instead of a folder."""
    parallel: bool = False
    """Use the everyday sentences in real languages that ship with crossfill, instead of a folder."""
    typology: str | None = None
    """Folder of URIEL vectors (`*.tsv`); none: look for `typology/` in the data folder."""
    tasks: tuple[str, ...] = ()
    """Only these tasks; empty for all."""
    languages: tuple[str, ...] | Literal["all", "both-tasks"] = "all"
    """Only these languages; `both-tasks` keeps those that have data in every task."""
    source_only: tuple[str, ...] = ()
    """Languages used only by the largest-source method, as English is in the paper."""
    complete: bool = False
    """Expect a corpus in every task and every language."""
    gaps: Literal["refuse", "note"] = "refuse"
    """What to do if one is missing, or a language that `languages` lists: stop, or say so and run without it."""
    max_train: Count | None = None
    """Maximum number of training sentences per corpus."""
    max_dev: Count | None = None
    """Maximum number of dev sentences per corpus."""
    max_test: Count | None = None
    """Maximum number of test sentences per corpus."""
    seed: Seed = 0
    """Seed of random splits, of subsampling (`max_train` and so on), and of the artificial grid."""
    cache: str | None = None
    """Cache folder for parsed corpora and features; none for the user's cache."""


class PartitionSettings(Settings):
    """One way to divide the cells into seen and unseen."""

    kind: Literal["random", "bridges", "alternating", "hold-out", "similar", "different", "languages"]
    """Random or alternating halves, random halves but for `size` bridges (languages seen in all of their tasks), a list
    of cells, random halves of a set of similar or different languages, or `size` parts of the languages, each of which
    is left out in turn, with all of its tasks."""
    seed: Seed = 0
    """Seed of random halves, and of the choice of bridges."""
    halves: tuple[Count, ...] | None = None
    """Which halves to run, counted from 1; none for all."""
    cells: tuple[str, ...] = ()
    """The unseen cells (`hold-out` only)."""
    size: Annotated[int, Field(ge=0, le=10**5)] | None = None
    """Number of languages, |L| in the paper (`similar` and `different`), of bridges (`bridges`), or of parts
    (`languages`)."""
    features: tuple[str, ...] = ("fam",)
    """URIEL features that define similarity (`similar` and `different` only); the paper uses families."""
    methods: tuple[MethodName, ...] | None = None
    """Methods to run; none for all of the study's."""

    @property
    def name(self) -> str:
        match self.kind:
            case "similar" | "different":
                return f"{self.kind[:3]}-{self.size}"
            case "bridges":
                return f"bridges-{self.size}-{self.seed}" if self.seed else f"bridges-{self.size}"
            case "hold-out":
                return "hold-out"
            case "languages":
                return f"left-out-{self.seed}" if self.seed else "left-out"
            case kind:
                return f"{kind}-{self.seed}" if self.seed else kind


class AblationSettings(Settings):
    """One ablation: variants of the settings, compared with the study's own settings (`base`)."""

    name: str
    """Name of the ablation: what is varied."""
    variants: dict[str, dict[str, Any]]
    """Changed settings by name of the variant, nested as in a run's config."""
    methods: tuple[MethodName, ...] | None = None
    """Methods to run it with; none for all of the study's."""


class FewShotSettings(Settings):
    """Learning curves of unseen cells: scores after adaptations to some of their training sentences."""

    sentences: tuple[Annotated[int, Field(ge=0, le=10**5)], ...] = (0, 1, 2, 5, 10, 20, 40, 80, 160)
    """Numbers of sentences; 0 is zero-shot."""
    draws: Count = 3
    """Random orders of sentences; the first of them is also learnt from scratch, and predicted by averaging."""
    annotate: bool = False
    """Also draw curves for sentences that `crossfill annotate` chooses with PF-lr, at equal word counts."""


class ChoiceSettings(Settings):
    """When and on what a study's settings were chosen, so that its tables can say whether their cells took part."""

    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    """The day since which the settings have not changed, as 2026-11-16."""
    partitions: tuple[str, ...]
    """Groups of partitions, as the report names them (`random`, `random-1`), whose seen cells chose the settings."""


class StudyConfig(Settings):
    """One study: everything needed to produce a run folder."""

    title: str = ""
    """Heading of the report."""
    data: DataSettings
    config: dict[str, Any] = Field(default={})
    """Settings of every run, as in `crossfill train --config`."""
    methods: dict[MethodName, dict[str, Any]]
    """Methods in the order of tables, each with its changes to `config`."""
    partitions: tuple[PartitionSettings, ...] = (PartitionSettings(kind="random"),)
    seeds: Annotated[tuple[Seed, ...], Field(max_length=10**4)] = (0,)
    """Seeds of training."""
    folds: Annotated[int, Field(ge=0, le=100)] = 0
    """Parts in which the seen cells are held out in turn, to fit the decisions and the calibration of every training on
    cells that it never saw; 0: none, so that decisions are the best valid sequences."""
    ablations: tuple[AblationSettings, ...] = ()
    few_shot: FewShotSettings | None = None
    """Learning curves of unseen cells; none for no curves."""
    chosen: ChoiceSettings | None = None
    """When and on which partitions the settings were chosen."""
    encoder_languages: tuple[str, ...] = ()
    """Languages the encoder was trained on; if given, the report compares scores in these and in other languages."""
    posteriors: tuple[str, ...] = ()
    """Languages whose posteriors are plotted; empty: those of yor, wol, tam and tel in the grid, or its first four."""
    keep_models: bool = False
    """Keep the trained models in the run folder."""
    execution: ExecutionSettings = ExecutionSettings()

    def settings(self, method: str, variant: Mapping[str, Any] | None = None, seed: int | None = None) -> Config:
        """The run config of a method, a variant and a seed."""
        own: Mapping[str, Any] = {str(name): values for name, values in self.methods.items()}.get(method) or {}
        values = merged(merged(self.config, own), variant or {})
        values = merged(values, {"method": method})
        return parse_config(values if seed is None else merged(values, {"training": {"seed": seed}}))


def parse_study(values: dict[str, Any], where: str = "study") -> tuple[StudyConfig | None, list[str]]:
    """Validate the values of a study; returns the study and a message for every problem.

    Invalid values are dropped, so that the rest can be checked too. The study is None if a required value is missing
    or the values stay invalid.
    """
    problems: list[str] = []
    for _ in range(20):
        try:
            study = StudyConfig.model_validate(values)
        except ValidationError as error:
            details = error.errors()
            problems += describe_problems(StudyConfig, where, error)
            if any(detail["type"] == "missing" for detail in details):
                return None, problems
            for detail in details:
                values = _without(values, _place(values, detail["loc"]))
            continue
        return study, problems + _setting_problems(study, where)
    return None, problems


def _setting_problems(study: StudyConfig, where: str) -> list[str]:
    """Problems of the run settings of every method and variant, and methods that are used but not listed."""
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
    """The leading part of a pydantic error location that is a path in the values, without types and key markers."""
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
