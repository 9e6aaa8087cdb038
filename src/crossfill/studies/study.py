"""A study as its YAML file has it: data, run settings, methods, partitions, seeds and ablations; and its grid."""

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from crossfill.config import Config, MethodName, parse_config
from crossfill.data.codes import language_code
from crossfill.data.folder import ReadOptions, read_folder
from crossfill.data.labels import task_name
from crossfill.data.parallel_corpus import parallel_grid
from crossfill.data.splits import capped_grid
from crossfill.data.synthetic import SETTINGS, SyntheticConfig, SyntheticGrid, synthetic_grid
from crossfill.errors import ConfigError, DataError, unknown
from crossfill.executors.worker_jobs import ExecutionSettings
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.typology import Block, Typology, load_typology, unit_rows, vectors_beside
from crossfill.settings import Count, Seed, Settings, merged, shown, validated

ARTIFICIAL = "settings"
_WITHOUT = (
    "the study runs without these, and its averages are of other cells than in a complete one; a language with one "
    "task is never held out. Put what you have of them into <task>/<language>/{train,dev,test} of the data folder"
)


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

    @property
    def place(self) -> str:
        """What a message names the data by."""
        return self.path or ("the parallel corpus" if self.parallel else "the artificial grid")


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
        if self.kind == "hold-out":
            return self.kind
        if self.kind in ("similar", "different"):
            return f"{self.kind[:3]}-{self.size}"
        name = {"bridges": f"bridges-{self.size}", "languages": "left-out"}.get(self.kind, self.kind)
        return f"{name}-{self.seed}" if self.seed else name


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
    """When and on what a study's settings were chosen."""

    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    """The day since which the settings have not changed, as 2026-11-16."""
    languages: tuple[str, ...]
    """Languages whose cells chose the settings: their seen cells train, and none of their cells is scored."""


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
    """When and on which languages the settings were chosen."""
    encoder_languages: tuple[str, ...] = ()
    """Languages the encoder was trained on; if given, the report compares scores in these and in other languages."""
    posteriors: tuple[str, ...] = ()
    """Languages whose posteriors are plotted; empty: those of yor, wol, tam and tel in the grid, or its first four."""
    keep_models: bool = False
    """Keep the trained models in the run folder."""
    execution: ExecutionSettings = ExecutionSettings()

    @property
    def chose(self) -> tuple[str, ...]:
        """Languages that chose the settings, whose cells are not scored."""
        return tuple(map(language_code, self.chosen.languages)) if self.chosen is not None else ()

    def method_of(self, name: str) -> str:
        """Return the method that a name under `methods` stands for."""
        return str(self.methods[name].get("method", name))

    def settings(self, method: str, variant: Mapping[str, Any] | None = None, seed: int | None = None) -> Config:
        """Return the run config of a method, a variant and a seed."""
        values = merged(merged(merged(self.config, {"method": method}), self.methods.get(method, {})), variant or {})
        where = f"methods.{method}" + (f", with {shown(variant)}" if variant else "")
        return parse_config(values if seed is None else merged(values, {"training": {"seed": seed}}), where)


def parse_study(values: dict[str, Any], where: str = "study") -> StudyConfig:
    """Validate the values of a study; ConfigError with every problem if there are any."""
    return validated(StudyConfig, values, where)


def check_runs(study: StudyConfig) -> None:
    """Refuse settings of methods or variants that are not valid, and methods that are used but not listed."""
    for part in (*study.partitions, *study.ablations):
        for method in part.methods or ():
            if method not in study.methods:
                raise ConfigError(f"'{part.name}' asks for {method}, which is not under methods")
    for method in study.methods:
        study.settings(method)
    for ablation in study.ablations:
        for variant in ablation.variants.values():
            for method in ablation.methods or study.methods:
                study.settings(method, variant)


@dataclass(frozen=True)
class StudyGrid:
    """The grid of a study, and further cells that serve only as sources."""

    grid: Grid
    """The cells that are divided into seen and unseen."""
    sources: Grid
    """Cells of the languages used only by the largest-source method."""
    notes: tuple[str, ...] = ()
    """What the study does without, for the user to see."""

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every word and label, so that results on other data are never reused."""
        digest = hashlib.blake2b(digest_size=16)
        for grid in (self.grid, self.sources):
            for cell in grid.cells:
                for splits in grid[cell]:
                    digest.update(f"{cell} {splits.name}".encode())
                    for corpus in splits.parts.values():
                        digest.update(corpus.text_hash.encode())
                        digest.update("\0".join(corpus.labels).encode())
        return digest.hexdigest()

    def only(self, languages: Collection[str]) -> "StudyGrid":
        """Return the grid in these languages only; sources are kept."""
        return replace(self, grid=self.grid.where(lambda cell: cell.language in languages))

    def with_sources(self) -> Grid:
        """Return the grid and its sources as one grid."""
        return Grid({**self.grid.corpora, **self.sources.corpora})


def load_study_grid(data: DataSettings) -> StudyGrid:
    """Return the grid of these settings; DataError with all that is missing or cannot be read."""
    grid = _read(data)
    sources = {language_code(code) for code in data.source_only}
    languages = set(grid.languages)
    if not isinstance(data.languages, str):
        languages = {language_code(code) for code in data.languages}
    if data.languages == "both-tasks":
        languages = {lang for lang in languages if all(Cell(task, lang) in grid.corpora for task in grid.tasks)}
    wanted = languages - sources
    missing = [f"{language} has no data" for language in sorted(wanted - set(grid.languages))]
    if data.complete:
        tasks = [task_name(task) for task in data.tasks] or grid.tasks
        cells = [Cell(task, language) for task in tasks for language in sorted(wanted & set(grid.languages))]
        missing += [f"no {cell}" for cell in cells if cell not in grid.corpora]
    gaps = [f"data: missing corpus: {what} in {data.place}" for what in missing]
    notes = [
        f"data.source_only: {language} has no data in {data.place}; in its place, "
        "the largest-source method trains on the seen language with most training words"
        for language in sorted(sources - set(grid.languages))
    ]
    used = sorted(sources & set(grid.languages))
    notes += [f"data.source_only: {one} serves the largest-source method only, and is not scored" for one in used]
    if gaps and data.gaps == "refuse":
        raise DataError("\n".join(gaps))
    if gaps:
        notes += [*gaps, _WITHOUT]
    compared = grid.where(lambda cell: cell.language in wanted)
    if not compared.cells:
        raise DataError(f"data: expected corpora in the chosen languages, got none in {data.place}")
    return StudyGrid(compared, grid.where(lambda cell: cell.language in sources), tuple(notes))


def _read(data: DataSettings) -> Grid:
    named = {"path": data.path is not None, "synthetic": data.synthetic is not None, "parallel": data.parallel}
    if sum(named.values()) != 1:
        given = " and ".join(name for name, is_given in named.items() if is_given) or "none"
        raise ConfigError(f"data: expected a path, synthetic or parallel, got {given}; name a folder with --data")
    if data.path is None:
        grid = _artificial(data).grid if data.synthetic is not None else parallel_grid()
        for task in data.tasks:
            if task not in grid.tasks:
                raise DataError(f"data: {unknown('task', task, grid.tasks)}")
        return grid.where(lambda cell: not data.tasks or cell.task in data.tasks)
    if not Path(data.path).is_dir():
        raise DataError(f"data: missing corpora: expected a folder at {data.path}, found none; name it with --data")
    cache = Path(data.cache) if data.cache else True
    grid = read_folder(data.path, ReadOptions(data.tasks, data.seed, data.max_train, cache)).checked()
    return capped_grid(grid, data.max_dev, data.max_test, data.seed)


def _artificial(data: DataSettings) -> SyntheticGrid:
    return synthetic_grid(data.synthetic, data.seed)  # pyright: ignore[reportArgumentType]  # settings are frozen


def typology_folder(data: DataSettings) -> str | None:
    """Return the folder of the study's typological vectors; None to use those of the lang2vec package."""
    if data.typology is not None:
        return data.typology
    return vectors_beside(data.path) if data.path else None


def language_similarity(data: DataSettings, languages: Sequence[str], features: Sequence[str] = ()) -> dict[str, Any]:
    """Return the similarity of all pairs of languages as JSON values: languages, similarity (a matrix), source.

    Pairs that the typology does not cover have similarity 0. On the artificial grid, it is that of the languages' true
    settings, and `features` is ignored.
    """
    if data.synthetic is None:
        typology, source = load_typology(typology_folder(data)), "URIEL"
    else:
        vectors = _artificial(data).typology
        rows = {language: i for i, language in enumerate(vectors)}
        typology = Typology({ARTIFICIAL: Block(rows, unit_rows(np.stack(list(vectors.values()))))})
        source, features = "true settings", ()
    matrix = [[typology.similarity(a, b, tuple(features)) if a != b else 1.0 for b in languages] for a in languages]
    return {
        "languages": list(languages),
        "similarity": [[0.0 if math.isnan(value) else round(value, 6) for value in row] for row in matrix],
        "source": source,
    }


def write_vectors(data: DataSettings, folder: Path) -> None:
    """Write the artificial languages' settings in the format of URIEL vectors; nothing for other data."""
    if data.synthetic is None:
        return
    vectors = _artificial(data).typology
    lines = ["\t".join(("language", *SETTINGS))]
    lines += ["\t".join((language, *(f"{value:g}" for value in vector))) for language, vector in vectors.items()]
    write_atomically(folder / f"{ARTIFICIAL}.tsv", ("\n".join(lines) + "\n").encode())
