"""The plan of a study: its jobs, each identified by a hash of everything its result depends on."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from crossfill.config import Config, EncoderConfig, parse_config
from crossfill.data.codes import find_cell, find_language_in, language_code
from crossfill.errors import ConfigError, CrossfillError, DataError
from crossfill.grid.cells import Cell
from crossfill.grid.partition import (
    Partition,
    alternating_halves,
    bridge_halves,
    different_languages,
    hold_out,
    language_folds,
    random_halves,
    similar_languages,
)
from crossfill.methods.registry import all_methods, find_method
from crossfill.settings import merged
from crossfill.studies.grids import StudyGrid, check_study_grid, language_similarity
from crossfill.studies.run_folder import FOCUS, FORMAT, ResultEntry
from crossfill.studies.study import (
    DataSettings,
    FewShotSettings,
    PartitionSettings,
    StudyConfig,
    parse_study,
    setting_problems,
)

PAPER_POSTERIORS = ("yor", "wol", "tam", "tel")


@dataclass(frozen=True)
class StudyPartition:
    """A partition with its name, such as `random/1`: the first half of the group `random`."""

    name: str
    group: str
    partition: Partition
    methods: tuple[str, ...]

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({cell.language for cell in self.partition.seen | self.partition.unseen}))


@dataclass(frozen=True)
class StudyJob:
    """One training, and the evaluation of every method that shares it (ns and bea share their heads)."""

    id: str
    config: Config
    methods: Mapping[str, str]
    """The method of each name in the tables: the one that is trained, and others that share its training."""
    seen: tuple[str, ...]
    unseen: tuple[str, ...]
    data: DataSettings
    posteriors: tuple[str, ...]
    keep_model: bool = False
    folds: int = 0
    """Parts in which the seen cells are held out in turn; 0 for none."""
    fold_seed: int = 0
    """The seed of the trainings that hold them out: the study's first."""
    held_out: str = ""
    """A hash of all that these trainings depend on, which jobs that differ in nothing but their seed share."""
    few_shot: FewShotSettings | None = None

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({Cell.parse(cell).language for cell in (*self.seen, *self.unseen)}))

    @property
    def title(self) -> str:
        return f"{'+'.join(self.methods)}, seed {self.config.training.seed}"

    def as_dict(self) -> dict[str, Any]:
        """Return the job as JSON values."""
        few_shot = self.few_shot.model_dump(mode="json") if self.few_shot else None
        models = {"config": self.config.model_dump(mode="json"), "data": self.data.model_dump(mode="json")}
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | models | {"few_shot": few_shot}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "StudyJob":
        """Return the job from the output of `as_dict`."""
        lists = {name: tuple(values[name]) for name in ("seen", "unseen", "posteriors")}
        data = DataSettings.model_validate(values["data"])
        few_shot = FewShotSettings.model_validate(values["few_shot"]) if values["few_shot"] else None
        models = {"config": parse_config(values["config"]), "data": data, "few_shot": few_shot}
        return cls(**{**values, **lists, **models})


@dataclass(frozen=True)
class StudyPlan:
    """The jobs of a study, and the table entries that use their results."""

    jobs: dict[str, StudyJob] = field(default_factory=dict)
    entries: tuple[ResultEntry, ...] = ()
    similarity: dict[str, Any] | None = None
    """Similarity of the grid's languages by typology; None if no typology is available."""

    def as_dict(self) -> dict[str, Any]:
        """Return the jobs and entries as JSON values."""
        return {
            "format": FORMAT,
            "jobs": {name: job.as_dict() for name, job in self.jobs.items()},
            "entries": [asdict(entry) for entry in self.entries],
        }


@dataclass(frozen=True)
class CheckedStudy:
    """A valid study with its grid and its plan."""

    study: StudyConfig
    grid: StudyGrid
    plan: StudyPlan


def check_study(values: dict[str, Any], where: str = "study") -> CheckedStudy:
    """Validate the values of a study, load its grid and make its plan; ConfigError with every problem found."""
    study = parse_study(values, where)
    problems = [*setting_problems(study), *_method_problems(study)]
    grid, data_problems = check_study_grid(study.data)
    problems += data_problems
    if grid is not None:
        languages = grid.grid.languages
        partitions, partition_problems = make_partitions(study, grid)
        problems += partition_problems
        problems += [
            f"posteriors: expected a language of the grid, got '{language}'"
            for language in study.posteriors
            if find_language_in(language, languages) not in languages
        ]
        similarity = None
        try:
            similarity = language_similarity(study.data, languages)
        except CrossfillError as error:
            methods = {name: all_methods().get(study.method_of(name)) for name in study.methods}
            needing = [name for name, method in methods.items() if method is not None and method.needs_typology]
            problems += [f"methods.{name}: {error}" for name in needing]
        if not problems:
            return CheckedStudy(study, grid, make_plan(study, grid, partitions, similarity))
    raise ConfigError("\n".join(f"{where}: {problem}" for problem in problems))


def _method_problems(study: StudyConfig) -> list[str]:
    """List unknown methods, and problems with the pretrained encoders that the study names."""
    problems: dict[str, None] = {}
    for name, values in study.methods.items():
        try:
            find_method(study.method_of(name))
        except CrossfillError as error:
            problems[f"methods: {error}"] = None
        try:
            encoder = EncoderConfig.model_validate(merged(study.config, values).get("encoder", {}))
        except ValidationError:
            continue  # reported with the settings
        if encoder.name != "compact":
            from crossfill.encoders.huggingface import Source, check_settings

            try:
                check_settings(Source.find(encoder.name), encoder.pretrained)
            except CrossfillError as error:
                problems[str(error)] = None
    return list(problems)


def make_partitions(study: StudyConfig, grid: StudyGrid) -> tuple[list[StudyPartition], list[str]]:
    """Return the study's partitions, and the problems found in them."""
    partitions: list[StudyPartition] = []
    problems: list[str] = []
    for settings in study.partitions:
        methods = tuple(settings.methods or study.methods)
        try:
            parts = list(_parts(settings, grid, study.data))
        except CrossfillError as error:
            problems += [f"partitions: {settings.name}: {line}" for line in str(error).splitlines()]
            continue
        wrong = [half for half in settings.halves or () if half > len(parts)]
        if wrong:
            problems.append(f"partitions: {settings.name}: expected halves of 1 to {len(parts)}, got {wrong}")
        for half, partition in enumerate(parts, start=1):
            if settings.halves is None or half in settings.halves:
                name = f"{settings.name}/{half}" if len(parts) > 1 else settings.name
                partitions.append(StudyPartition(name, settings.name, partition, methods))
    names = [part.name for part in partitions]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.append(f"partitions: {name} is listed twice")
    return partitions, problems


def make_plan(
    study: StudyConfig,
    grid: StudyGrid,
    partitions: Sequence[StudyPartition],
    similarity: dict[str, Any] | None = None,
) -> StudyPlan:
    """Return the jobs of a study: methods × partitions × seeds, then every variant of every ablation."""
    trainings: dict[str, StudyJob] = {}
    entries: list[ResultEntry] = []
    languages = grid.grid.languages
    chosen = [find_language_in(name, languages) for name in study.posteriors] or _default_posteriors(languages)
    for ablation, variant, overrides, only in _variants(study):
        for part in partitions:
            for method in (m for m in part.methods if only is None or m in only):
                for seed in study.seeds:
                    config = study.settings(method, overrides, seed)
                    job = _job(study, grid, part, method, config, chosen, similarity)
                    known = trainings.setdefault(job.id, job)
                    trainings[job.id] = replace(known, methods={**known.methods, method: config.method})
                    entries.append(ResultEntry(method, part.name, part.group, seed, ablation, variant, job.id))
    names = {key: _hash([key, *sorted(job.methods)]) for key, job in trainings.items()}
    return StudyPlan(
        {names[key]: replace(job, id=names[key]) for key, job in trainings.items()},
        tuple(replace(entry, job=names[entry.job]) for entry in entries),
        similarity,
    )


def _variants(study: StudyConfig) -> Iterable[tuple[str, str, Mapping[str, Any], tuple[str, ...] | None]]:
    yield "", "base", {}, None
    for ablation in study.ablations:
        for name, overrides in ablation.variants.items():
            yield ablation.name, name, overrides, ablation.methods


def _job(
    study: StudyConfig,
    grid: StudyGrid,
    part: StudyPartition,
    name: str,
    config: Config,
    posteriors: Sequence[str],
    similarity: dict[str, Any] | None,
) -> StudyJob:
    seen, unseen = (tuple(map(str, sorted(cells))) for cells in (part.partition.seen, part.partition.unseen))
    chosen = tuple(language for language in posteriors if language in part.languages)
    training = config.change({"method": find_method(config.method).training})
    few_shot = _few_shot(study, name)
    depends = {
        "format": FORMAT,
        "config": training.model_dump(mode="json"),
        "data": grid.fingerprint,
        "typology": similarity,
        "seen": seen,
        "unseen": unseen,
        "posteriors": chosen,
        **({"few_shot": few_shot.model_dump(mode="json")} if few_shot else {}),
    } | ({"folds": study.folds, "fold_seed": study.seeds[0]} if study.folds else {})
    return StudyJob(
        _hash(depends),
        training,
        {name: config.method},
        seen,
        unseen,
        study.data,
        chosen,
        study.keep_models,
        study.folds,
        study.seeds[0],
        _hash(depends | {"config": training.change({"training.seed": study.seeds[0]}).model_dump(mode="json")}),
        few_shot,
    )


def _few_shot(study: StudyConfig, method: str) -> FewShotSettings | None:
    """Return the learning curves of a method; sentences are chosen with PF-lr only, if the study has it."""
    if study.few_shot is None or FOCUS not in study.methods or method == FOCUS:
        return study.few_shot
    return study.few_shot.model_copy(update={"annotate": False})


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def _parts(settings: PartitionSettings, grid: StudyGrid, data: DataSettings) -> Iterable[Partition]:
    cells = grid.grid.cells
    match settings.kind:
        case "random":
            return random_halves(cells, settings.seed)
        case "bridges":
            if settings.size is None:
                raise DataError("expected size, the number of bridges; got none")
            return bridge_halves(cells, settings.size, settings.seed)
        case "alternating":
            return alternating_halves(cells, _order(data))
        case "hold-out":
            if not settings.cells:
                raise DataError("expected cells to hold out, such as [ner/wol]; got none")
            return [hold_out(cells, [find_cell(cell, cells) for cell in settings.cells])]
        case "languages":
            if settings.size is None:
                raise DataError("expected size, the number of parts of the languages; got none")
            return language_folds(cells, settings.size, settings.seed)
        case "similar" | "different":
            if settings.size is None:
                raise DataError("expected size, the number of languages; got none")
            choose = similar_languages if settings.kind == "similar" else different_languages
            known = language_similarity(data, grid.grid.languages, settings.features)
            rows = {language: i for i, language in enumerate(known["languages"])}
            matrix = known["similarity"]
            languages = choose(grid.grid.languages, settings.size, lambda a, b: matrix[rows[a]][rows[b]])
            return random_halves([cell for cell in cells if cell.language in languages], settings.seed)


def _order(data: DataSettings) -> tuple[str, ...]:
    """Return the languages as the study lists them, also those without data; none if it lists none."""
    return () if isinstance(data.languages, str) else tuple(language_code(code) for code in data.languages)


def _default_posteriors(languages: Sequence[str]) -> tuple[str, ...]:
    of_paper = tuple(language for language in PAPER_POSTERIORS if language in languages)
    return of_paper if len(of_paper) > 1 else tuple(languages[:4])
