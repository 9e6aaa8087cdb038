"""The RUN folder of a study: what is in it, how it is written, and how it is read again.

    study.json            the study as it was asked for
    plan.json             jobs, and the place of each in the tables
    jobs/<id>/result.json all of a job's results: there if and only if the job is done
    jobs/<id>/log.txt     what the job printed
    jobs/<id>/failed.json why it failed, if it did
    similarity.json       how alike the languages are by typology
    results.jsonl         one line per method, partition, seed, variant and corpus of a cell: flat, for pandas

docs/results-format.md lists every field. Nothing here loads torch: reports and figures are made from these files alone.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from crossfill.errors import ReportError
from crossfill.files import write_atomically

FORMAT = 1
RESULT, FAILED, LOG, TRAINING = "result.json", "failed.json", "log.txt", "training"
STUDY, PLAN, ROWS, LOCK = "study.json", "plan.json", "results.jsonl", ".lock"
SIMILARITY, TYPOLOGY = "similarity.json", "typology"


def job_folder(run: Path, job: str) -> Path:
    """Where a job's files are."""
    return run / "jobs" / job


def write_run(
    run: Path, study: Mapping[str, Any], plan: Mapping[str, Any], similarity: Mapping[str, Any] | None = None
) -> None:
    """Write down what the run is to do, and how alike its languages are."""
    if similarity is not None:
        _write(run / SIMILARITY, similarity, indent=None)
    _write(run / STUDY, study)
    _write(run / PLAN, plan)


def write_result(run: Path, job: str, result: Mapping[str, Any], keep_model: bool = False) -> None:
    """Write a finished job's result; then what it took to resume the job is no longer needed."""
    folder = job_folder(run, job)
    _write(folder / RESULT, result, indent=None)
    (folder / FAILED).unlink(missing_ok=True)
    if not keep_model:
        shutil.rmtree(folder / TRAINING, ignore_errors=True)


def write_failure(run: Path, job: str, message: str, trace: str) -> None:
    """Write down why a job failed."""
    _write(job_folder(run, job) / FAILED, {"job": job, "message": message, "trace": trace.splitlines()})


def is_done(run: Path, job: str) -> bool:
    """Whether a job has its result."""
    return (job_folder(run, job) / RESULT).exists()


def read_result(run: Path, job: str) -> dict[str, Any]:
    """A job's result."""
    return _read(job_folder(run, job) / RESULT)


def write_rows(run: Path) -> int:
    """Assemble results.jsonl from the jobs that are done; how many lines it has."""
    lines = [json.dumps(row, ensure_ascii=False) for row in Results(run).rows]
    write_atomically(run / ROWS, "".join(f"{line}\n" for line in lines).encode())
    return len(lines)


@dataclass(frozen=True)
class Results:
    """A RUN folder, read."""

    run: Path

    @cached_property
    def study(self) -> dict[str, Any]:
        return _read(self.run / STUDY)

    @cached_property
    def plan(self) -> dict[str, Any]:
        plan = _read(self.run / PLAN)
        if plan.get("format") != FORMAT:
            raise ReportError(f"{self.run / PLAN}: expected format {FORMAT}, got {plan.get('format')}")
        return plan

    @cached_property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """The results of all jobs that are done, by id."""
        return {job: read_result(self.run, job) for job in self.plan["jobs"] if is_done(self.run, job)}

    @cached_property
    def entries(self) -> list[dict[str, Any]]:
        """The places of the tables that are filled."""
        return [entry for entry in self.plan["entries"] if entry["job"] in self.jobs]

    @cached_property
    def missing(self) -> list[str]:
        """Jobs that are not done."""
        return [job for job in self.plan["jobs"] if job not in self.jobs]

    @cached_property
    def methods(self) -> list[str]:
        """Methods with results, in the study's order."""
        found = {entry["method"] for entry in self.entries}
        return [method for method in self.study["methods"] if method in found]

    @cached_property
    def tasks(self) -> list[str]:
        return sorted({row["task"] for row in self.rows})

    def cells(self, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The full results of an entry, one per corpus of a cell: with entropies, bins and counts."""
        return self.jobs[entry["job"]]["methods"][entry["method"]]["cells"]

    @cached_property
    def groups(self) -> list[str]:
        """Groups of partitions, without subsets of languages, in the study's order; the first is what figures show."""
        names = list(dict.fromkeys(entry["group"] for entry in self.entries))
        return [name for name in names if not is_subset(name)] or names

    @cached_property
    def seeds(self) -> list[int]:
        return sorted({entry["seed"] for entry in self.entries})

    def proper(self, method: str | None = None, group: str | None = None) -> list[dict[str, Any]]:
        """Entries of the study proper, without ablations: those of a group of partitions, or else of the first."""
        wanted = group or self.groups[0]
        return [
            entry
            for entry in self.entries
            if not entry["ablation"] and entry["group"] == wanted and (method is None or entry["method"] == method)
        ]

    @cached_property
    def bayesian(self) -> str:
        """The method whose doubt the figures show: pf-lr, or pf-d, or else the study's last."""
        return next((method for method in ("pf-lr", "pf-d") if method in self.methods), self.methods[-1])

    @cached_property
    def rival(self) -> str:
        """The method it is shown beside: jm, or else the study's first."""
        return "jm" if "jm" in self.methods else self.methods[0]

    @cached_property
    def similarity(self) -> dict[str, Any] | None:
        """How alike the grid's languages are, and by what: languages, similarity (a matrix), source."""
        path = self.run / SIMILARITY
        return _read(path) if path.exists() else None

    @cached_property
    def unseen_rows(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if not row["seen"]]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One flat row per method, partition, seed, variant and corpus of a cell."""
        return [row for entry in self.entries for row in self._rows(entry)]

    def _rows(self, entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        job = self.jobs[entry["job"]]
        shared = {
            **entry,
            "selection": job["config"]["training"]["selection"],
            "encoder": Path(job["config"]["encoder"]["name"]).name,
        }
        for cell in self.cells(entry):
            task, _, language = cell["cell"].partition("/")
            scores = {f"plug_in_{name}": value for name, value in cell["plug_in"].items()}
            scores |= {f"averaged_{name}": value for name, value in cell["averaged"].items()}
            yield {
                **shared,
                "cell": cell["cell"],
                "task": task,
                "language": language,
                "corpus": cell["corpus"],
                "seen": cell["seen"],
                "n_sentences": cell["n_sentences"],
                "n_words": cell["n_words"],
                "score": cell["plug_in"]["score"],
                **scores,
                **job["sizes"],
                **{name: job["measured"][name] for name in ("train_seconds", "evaluate_seconds", "peak_memory_mb")},
                **{f"version_{name}": value for name, value in job["measured"]["versions"].items()},
            }


def open_results(run: Path) -> Results:
    """The results in a folder; an error where there are none."""
    if not (run / PLAN).exists():
        raise ReportError(f"{run}: expected the folder of a study ({PLAN}), found none; run crossfill experiment first")
    results = Results(run)
    if not results.jobs:
        raise ReportError(f"{run}: expected results, got none of {len(results.plan['jobs'])} jobs; run the study first")
    return results


def is_subset(group: str) -> bool:
    """Whether a group of partitions is one of similar or different languages."""
    return group.startswith(("sim-", "dif-"))


def unseen(cells: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Only the unseen ones of these cells or rows."""
    return [cell for cell in cells if not cell["seen"]]


def _write(path: Path, value: Any, indent: int | None = 1) -> None:
    write_atomically(path, (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode())


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path}: expected a whole JSON file; {error}; delete it and run the study again") from None
