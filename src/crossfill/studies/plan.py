"""The plan of a study: its jobs, each identified by a hash of everything its result depends on."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from crossfill.config import Config
from crossfill.data.codes import find_cell, find_language_in, language_code
from crossfill.errors import ConfigError, CrossfillError, DataError
from crossfill.grid import partition as divide
from crossfill.grid.cells import Cell
from crossfill.grid.partition import Partition
from crossfill.methods.registry import find_method
from crossfill.settings import Settings
from crossfill.studies.run_folder import FOCUS, FORMAT, ResultEntry
from crossfill.studies.study import (
    DataSettings,
    FewShotSettings,
    PartitionSettings,
    StudyConfig,
    StudyGrid,
    check_runs,
    language_similarity,
    load_study_grid,
    parse_study,
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


class StudyJob(Settings):
    """One training, and the evaluation of every method that shares it (ns and bea share their heads)."""

    id: str
    config: Config
    methods: dict[str, str]
    """The method of each name in the tables: the one that is trained, and others that share its training."""
    seen: tuple[str, ...]
    unseen: tuple[str, ...]
    posteriors: tuple[str, ...]
    held_out: str
    """A hash of all that trainings without some seen cells depend on; jobs that differ in their seed alone share it."""
    few_shot: FewShotSettings | None
    study: StudyConfig

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({Cell.parse(cell).language for cell in (*self.seen, *self.unseen)}))

    @property
    def title(self) -> str:
        return f"{'+'.join(self.methods)}, seed {self.config.training.seed}"


@dataclass(frozen=True)
class StudyPlan:
    """The jobs of a study, and the table entries that use their results."""

    jobs: dict[str, StudyJob]
    entries: tuple[ResultEntry, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the jobs and entries as JSON values."""
        return {
            "format": FORMAT,
            "jobs": {name: job.model_dump(mode="json", exclude={"study"}) for name, job in self.jobs.items()},
            "entries": [asdict(entry) for entry in self.entries],
        }


@dataclass(frozen=True)
class CheckedStudy:
    """A valid study with its grid and its plan."""

    study: StudyConfig
    grid: StudyGrid
    plan: StudyPlan


def check_study(values: dict[str, Any], where: str = "study") -> CheckedStudy:
    """Validate the values of a study, load its grid and make its plan; ConfigError if anything is wrong."""
    study = parse_study(values, where)
    try:
        check_runs(study)
        methods = {name: find_method(study.method_of(name)) for name in study.methods}
        for encoder in dict.fromkeys(study.settings(name).encoder for name in methods):
            if encoder.name != "compact":
                from crossfill.encoders.huggingface import Source, check_settings

                check_settings(Source.find(encoder.name), encoder.pretrained)
        grid = load_study_grid(study.data)
        similarity = None
        try:
            similarity = language_similarity(study.data, grid.grid.languages)
        except DataError:
            if any(method.needs_typology for method in methods.values()):
                raise
        return CheckedStudy(study, grid, make_plan(study, grid, make_partitions(study, grid), similarity))
    except CrossfillError as error:
        raise ConfigError("\n".join(f"{where}: {line}" for line in str(error).splitlines())) from None


def make_partitions(study: StudyConfig, grid: StudyGrid) -> list[StudyPartition]:
    """Return the study's partitions."""
    partitions: dict[str, StudyPartition] = {}
    for settings in study.partitions:
        try:
            parts = list(_parts(settings, grid, study.data))
        except CrossfillError as error:
            raise ConfigError(f"partitions: kind: {settings.kind}: {error}") from None
        if wrong := [half for half in settings.halves or () if half > len(parts)]:
            raise ConfigError(f"partitions: {settings.name}: expected halves of 1 to {len(parts)}, got {wrong}")
        for half, partition in enumerate(parts, start=1):
            if settings.halves is None or half in settings.halves:
                name = f"{settings.name}/{half}" if len(parts) > 1 else settings.name
                if name in partitions:
                    raise ConfigError(f"partitions: {name} is listed twice")
                methods = tuple(settings.methods or study.methods)
                partitions[name] = StudyPartition(name, settings.name, partition, methods)
    return list(partitions.values())


def make_plan(
    study: StudyConfig, grid: StudyGrid, partitions: Sequence[StudyPartition], similarity: dict[str, Any] | None = None
) -> StudyPlan:
    """Return the jobs of a study: methods × partitions × seeds, then every variant of every ablation."""
    trainings: dict[str, StudyJob] = {}
    entries: list[ResultEntry] = []
    depends = {"format": FORMAT, "data": grid.fingerprint, "typology": similarity}
    languages = grid.grid.languages
    usual = tuple(language for language in PAPER_POSTERIORS if language in languages)
    posteriors = [find_language_in(name, languages) for name in study.posteriors]
    for language in posteriors:
        if language not in languages:
            raise ConfigError(f"posteriors: expected a language of the grid, got '{language}'")
    posteriors = posteriors or (usual if len(usual) > 1 else languages[:4])
    variants = [(a.name, name, values, a.methods) for a in study.ablations for name, values in a.variants.items()]
    for ablation, variant, overrides, only in [("", "base", {}, None), *variants]:
        for part in partitions:
            for method in (m for m in part.methods if only is None or m in only):
                for seed in study.seeds:
                    config = study.settings(method, overrides, seed)
                    job = _job(study, depends, part, method, config, posteriors)
                    known = trainings.setdefault(job.id, job)
                    methods = {**known.methods, method: config.method}
                    trainings[job.id] = known.model_copy(update={"methods": methods})
                    entries.append(ResultEntry(method, part.name, part.group, seed, ablation, variant, job.id))
    names = {key: _hash([key, *sorted(job.methods)]) for key, job in trainings.items()}
    return StudyPlan(
        {names[key]: job.model_copy(update={"id": names[key]}) for key, job in trainings.items()},
        tuple(replace(entry, job=names[entry.job]) for entry in entries),
    )


def _job(
    study: StudyConfig,
    depends: Mapping[str, Any],
    part: StudyPartition,
    name: str,
    config: Config,
    posteriors: Sequence[str],
) -> StudyJob:
    training = config.change({"method": find_method(config.method).training})
    first_seed = training.change({"training.seed": study.seeds[0]})
    few_shot = study.few_shot
    if few_shot is not None and FOCUS in study.methods and name != FOCUS:
        few_shot = few_shot.model_copy(update={"annotate": False})  # chosen with PF-lr only, if the study has it
    values = {
        "seen": tuple(map(str, sorted(part.partition.seen))),
        "unseen": tuple(map(str, sorted(part.partition.unseen))),
        "posteriors": tuple(language for language in posteriors if language in part.languages),
    }
    depends = {**depends, **values, "config": training.model_dump(mode="json")}
    if few_shot is not None:
        depends["few_shot"] = few_shot.model_dump(mode="json")
    if study.folds:
        depends |= {"folds": study.folds, "fold_seed": study.seeds[0]}
    if study.chose:
        depends["chose"] = study.chose
    return StudyJob(
        **values,
        config=training,
        id=_hash(depends),
        methods={name: config.method},
        held_out=_hash(depends | {"config": first_seed.model_dump(mode="json")}),
        few_shot=few_shot,
        study=study,
    )


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def _parts(settings: PartitionSettings, grid: StudyGrid, data: DataSettings) -> Iterable[Partition]:
    cells, languages, size, seed = grid.grid.cells, grid.grid.languages, settings.size or 0, settings.seed
    if settings.size is None and settings.kind in ("bridges", "languages", "similar", "different"):
        what = {"bridges": "bridges", "languages": "parts"}.get(settings.kind, "languages")
        raise DataError(f"size: expected the number of {what}, as size: 3; got none")
    match settings.kind:
        case "random":
            return divide.random_halves(cells, seed)
        case "bridges":
            return divide.bridge_halves(cells, size, seed)
        case "alternating":  # in the order in which the study lists languages, if it does
            listed = () if isinstance(data.languages, str) else data.languages
            return divide.alternating_halves(cells, tuple(map(language_code, listed)))
        case "hold-out":
            if not settings.cells:
                raise DataError("cells: expected cells to hold out, as cells: [ner/wol]; got none")
            return [divide.hold_out(cells, [find_cell(cell, cells) for cell in settings.cells])]
        case "languages":
            return divide.language_folds(cells, size, seed)
        case "similar" | "different":
            choose = divide.similar_languages if settings.kind == "similar" else divide.different_languages
            known = language_similarity(data, languages, settings.features)
            rows, matrix = {language: i for i, language in enumerate(known["languages"])}, known["similarity"]
            chosen = choose(languages, size, lambda a, b: matrix[rows[a]][rows[b]])
            return divide.random_halves([cell for cell in cells if cell.language in chosen], seed)
