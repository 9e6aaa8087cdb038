"""The settings of a study, as in its YAML file: data, run settings, methods, partitions, seeds and ablations."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from crossfill.config import Config, MethodName, parse_config, resolve_variant
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
    """Methods in the order of tables, each with its changes to `config`; a name of one's own says its `method`, too, as
    `pf-lr-deep: {method: pf-lr, heads: {hidden: [256]}}`."""
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

    def method_of(self, name: str) -> str:
        """The method that a name under `methods` stands for."""
        return str(resolve_variant({"method": name} | self.methods[name])["method"])

    def settings(self, method: str, variant: Mapping[str, Any] | None = None, seed: int | None = None) -> Config:
        """Return the run config of a method, a variant and a seed."""
        values = self.values(method, variant)
        return parse_config(values if seed is None else merged(values, {"training": {"seed": seed}}))

    def values(self, method: str, variant: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the values of the run config of a method and a variant, before they are validated."""
        of_method: Mapping[str, Any] = {str(name): values for name, values in self.methods.items()}.get(method) or {}
        return merged(merged(merged(self.config, {"method": method}), of_method), variant or {})


def parse_study(values: dict[str, Any], where: str = "study") -> StudyConfig:
    """Validate the values of a study; ConfigError with every problem if there are any."""
    try:
        return StudyConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(describe_problems(StudyConfig, where, error))) from None


def setting_problems(study: StudyConfig) -> list[str]:
    """List the problems of the run settings of every method and variant, and methods that are used but not listed."""
    shared = _problems(study.config)
    problems: dict[str, None] = {}
    variants: list[tuple[str, str, Mapping[str, Any]]] = [(f"methods.{name}", name, {}) for name in study.methods]
    for ablation in study.ablations:
        variants += [
            (f"ablations '{ablation.name}', '{name}', {method}", method, values)
            for name, values in ablation.variants.items()
            for method in ablation.methods or study.methods
        ]
    for place, method, values in variants:
        for problem in _problems(study.values(method, values)):
            problems[f"config: {problem}" if problem in shared else f"{place}: {problem}"] = None
    for part in (*study.partitions, *study.ablations):
        for method in part.methods or ():
            if method not in study.methods:
                problems[f"'{part.name}' asks for {method}, which is not under methods"] = None
    return list(problems)


def _problems(values: Mapping[str, Any]) -> list[str]:
    """List the problems of the settings of a run."""
    try:
        parse_config(merged({}, values))
    except ConfigError as error:
        return [line.removeprefix("config: ") for line in str(error).splitlines()]
    return []
