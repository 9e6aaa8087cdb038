"""The run folder of a study: its layout, and how it is written and read.

    study.json            the study's settings
    plan.json             the jobs, and the table entries that use each
    jobs/<id>/result.json all of a job's results; exists if and only if the job is done
    jobs/<id>/log.txt     what the job printed
    jobs/<id>/failed.json why it failed, if it did
    held_out/<id>/<method>/calibration.json
                          what was fitted on seen cells held out in turn, for all seeds of a method and partition
    held_out/<id>/fold-0/ a training without these cells and its predictions, until the calibration is fitted
    results.jsonl         one line per method, partition, seed, variant and corpus of a cell: flat, for pandas

docs/studies.md lists the fields. Nothing here loads torch: reports and figures are made from these files alone.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from crossfill.errors import StudyError
from crossfill.evaluation.results import CellResult
from crossfill.files import write_atomically, write_json

FORMAT = 1
FOCUS, RIVAL = "pf-lr", "jm"
"""The method whose uncertainty reports show, and the one that others are compared with."""
RESULT, FAILED, LOG, TRAINING = "result.json", "failed.json", "log.txt", "training"
STUDY, PLAN, ROWS = "study.json", "plan.json", "results.jsonl"
TYPOLOGY, HELD_OUT = "typology", "held_out"
_OF_CELL = ("corpus", "seen", "n_sentences", "n_words", "left_out", "score")


def job_folder(run: Path, job: str) -> Path:
    """Return the folder of a job's files."""
    return run / "jobs" / job


def held_out_folder(run: Path, held_out: str) -> Path:
    """Return the folder of what jobs fit on held-out cells, for all seeds of a method and partition."""
    return run / HELD_OUT / held_out


def write_result(run: Path, job: str, result: Mapping[str, Any], keep_model: bool = False) -> None:
    """Write a finished job's result, and delete its training folder unless the model is kept."""
    folder = job_folder(run, job)
    write_json(folder / RESULT, result, indent=None)
    (folder / FAILED).unlink(missing_ok=True)
    if not keep_model:
        shutil.rmtree(folder / TRAINING, ignore_errors=True)


def write_failure(run: Path, job: str, message: str, trace: str) -> None:
    """Record why a job failed."""
    failure = {"job": job, "message": message, "trace": trace.splitlines()}
    write_json(job_folder(run, job) / FAILED, failure, indent=1)


def is_done(run: Path, job: str) -> bool:
    """Check whether a job has its result."""
    return (job_folder(run, job) / RESULT).exists()


def write_rows(run: Path) -> None:
    """Write results.jsonl from the finished jobs."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in StudyResults(run).rows()]
    write_atomically(run / ROWS, "".join(lines).encode())


@dataclass(frozen=True)
class ResultEntry:
    """A combination of method, partition, seed and variant, and the job that has its results."""

    method: str
    partition: str
    group: str
    """The partition without its number: `random` for `random/1`."""
    seed: int
    ablation: str
    """Name of the ablation; empty in the main study."""
    variant: str
    """`base` in the main study."""
    job: str


@dataclass(frozen=True)
class StudyResults:
    """The contents of a run folder, each part read when first used."""

    run: Path

    @cached_property
    def study(self) -> dict[str, Any]:
        return _read(self.run / STUDY)

    @cached_property
    def plan(self) -> dict[str, Any]:
        plan = _read(self.run / PLAN)
        if plan.get("format") != FORMAT:
            raise StudyError(f"{self.run / PLAN}: expected format {FORMAT}, got {plan.get('format')}")
        return plan

    @cached_property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """The results of all jobs that are done, by id."""
        return {j: _read(job_folder(self.run, j) / RESULT) for j in self.plan["jobs"] if is_done(self.run, j)}

    @cached_property
    def entries(self) -> list[ResultEntry]:
        """The entries whose jobs are done."""
        return [ResultEntry(**entry) for entry in self.plan["entries"] if entry["job"] in self.jobs]

    @cached_property
    def missing(self) -> list[str]:
        """Jobs that are not done."""
        return [job for job in self.plan["jobs"] if job not in self.jobs]

    @cached_property
    def methods(self) -> list[str]:
        """Methods with results, in the study's order."""
        finished = {entry.method for entry in self.entries}
        return [method for method in self.study["methods"] if method in finished]

    @cached_property
    def tasks(self) -> list[str]:
        return sorted({result.cell.task for results in self._cells.values() for result in results})

    @cached_property
    def languages(self) -> list[str]:
        return sorted({result.cell.language for results in self._cells.values() for result in results})

    def cells(self, entry: ResultEntry) -> list[CellResult]:
        """Return the results of an entry, one per corpus of a cell."""
        return self._cells[entry.job, entry.method]

    @cached_property
    def groups(self) -> list[str]:
        """Groups of partitions in the study's order, without subsets of languages; figures show the first."""
        names = list(dict.fromkeys(entry.group for entry in self.entries))
        return [name for name in names if not is_subset(name)] or names

    @cached_property
    def seeds(self) -> list[int]:
        return sorted({entry.seed for entry in self.entries})

    def proper(self, method: str | None = None, group: str | None = None, ablation: str = "") -> list[ResultEntry]:
        """Return the entries of the main study or of an ablation, in a group of partitions (by default the first)."""
        wanted = group or self.groups[0]
        return [
            entry
            for entry in self.entries
            if entry.ablation == ablation and entry.group == wanted and method in (None, entry.method)
        ]

    def unseen(self, entries: Iterable[ResultEntry], task: str | None = None) -> list[CellResult]:
        """Return the results of these entries on unseen cells, of one task or of all."""
        results = (result for entry in entries for result in self.cells(entry))
        return [result for result in results if not result.seen and task in (None, result.cell.task)]

    def is_oracle(self, entries: Iterable[ResultEntry]) -> bool:
        """Check whether any of these entries' models was selected on dev data of unseen cells."""
        return any(self.jobs[entry.job]["config"]["training"]["selection"] == "oracle" for entry in entries)

    def encoder(self, entry: ResultEntry) -> str:
        """Return the name of an entry's encoder."""
        return Path(self.jobs[entry.job]["config"]["encoder"]["name"]).name

    @cached_property
    def factorised(self) -> list[str]:
        """Methods with posteriors over language vectors, in the study's order."""
        with_posteriors = {entry.method for entry in self.entries if self.jobs[entry.job]["posteriors"]}
        return [method for method in self.methods if method in with_posteriors]

    @cached_property
    def focus(self) -> str:
        """The method whose uncertainty the report shows: PF-lr, or else the study's last method with posteriors."""
        return FOCUS if FOCUS in self.methods else (self.factorised or self.methods)[-1]

    @cached_property
    def rival(self) -> str:
        """The method that others are compared with: JM, or else the study's first."""
        return RIVAL if RIVAL in self.methods else self.methods[0]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one flat row per method, partition, seed, variant and corpus of a cell."""
        for entry in self.entries:
            job = self.jobs[entry.job]
            measured, selection = job["measured"], job["config"]["training"]["selection"]
            for result in self.cells(entry):
                yield {
                    **asdict(entry),
                    "selection": selection,
                    "encoder": self.encoder(entry),
                    "cell": str(result.cell),
                    "task": result.cell.task,
                    "language": result.cell.language,
                    **{name: getattr(result, name) for name in _OF_CELL},
                    **{f"plug_in_{name}": value for name, value in result.plug_in.items()},
                    **{f"averaged_{name}": value for name, value in result.averaged.items()},
                    **job["sizes"],
                    **{name: measured[name] for name in ("train_seconds", "evaluate_seconds")},
                    **{f"version_{name}": value for name, value in measured["versions"].items()},
                }

    @cached_property
    def _cells(self) -> dict[tuple[str, str], list[CellResult]]:
        return {
            (job, method): [CellResult.from_dict(cell) for cell in cells["cells"]]
            for job, result in self.jobs.items()
            for method, cells in result["methods"].items()
        }


def open_results(run: Path) -> StudyResults:
    """Return the results in a run folder; StudyError if there are none."""
    if not (run / PLAN).exists():
        raise StudyError(f"{run}: expected the folder of a study ({PLAN}), found none; run crossfill experiment first")
    results = StudyResults(run)
    if not results.jobs:
        raise StudyError(f"{run}: expected results, got none of {len(results.plan['jobs'])} jobs; run the study first")
    return results


def is_subset(group: str) -> bool:
    """Check whether a group of partitions covers only a subset of similar or different languages."""
    return group.startswith(("sim-", "dif-"))


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
