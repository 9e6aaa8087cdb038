"""The demos: small studies on half the cells of an artificial grid, or of a grid of real languages."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from crossfill.checkpoint import EXAMPLES
from crossfill.errors import StudyError
from crossfill.executors.worker_jobs import build_executor
from crossfill.files import write_json
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Sentence
from crossfill.settings import change_values, read_settings
from crossfill.studies.plan import CheckedStudy, check_study
from crossfill.studies.run import run_study
from crossfill.studies.run_folder import RESULT, TRAINING, job_folder
from crossfill.tagger.presets import RunRequest, choose_settings

CONFIG = Path("configs/demo.yaml")
REAL_CONFIG = Path("configs/demo-real.yaml")
N_EXAMPLES = 3


def demo_study(
    real: bool = False, encoder: str = "compact", changes: Mapping[str, Any] = MappingProxyType({})
) -> CheckedStudy:
    """Return the study of a demo with changes to its settings, by dotted path.

    A pretrained encoder stays frozen, under the settings of the `laptop` preset.
    """
    config = REAL_CONFIG if real else CONFIG
    values = change_values(read_settings(config), changes)
    checked = check_study(values, str(config))
    if encoder == "compact":
        return checked
    seen, _ = demo_cells(checked)
    of_runs = {name.removeprefix("config."): value for name, value in changes.items() if name.startswith("config.")}
    for method in values["methods"]:
        request = RunRequest(method=method, encoder=encoder, preset="laptop", changes=of_runs)
        values["methods"][method] = choose_settings(checked.grid.grid, seen, request).config.model_dump(mode="json")
    return check_study(values, str(config))


def demo_cells(checked: CheckedStudy) -> tuple[list[Cell], list[Cell]]:
    """Return the cells that a demo trains on, and those that it fills in, which are the same for all methods."""
    job = next(iter(checked.plan.jobs.values()))
    return sorted(map(Cell.parse, job.seen)), sorted(map(Cell.parse, job.unseen))


def run_demo(checked: CheckedStudy, run: Path, quiet: bool) -> None:
    """Run the missing jobs, then move the trained models to `run/<method>`, with example sentences."""
    jobs = checked.plan.jobs.values()
    for job in jobs:
        if not (run / job.config.method).is_dir():  # train again if the model was deleted
            (job_folder(run, job.id) / RESULT).unlink(missing_ok=True)
    failed = run_study(checked, run, build_executor(checked.study.execution), quiet)
    if failed:
        raise StudyError("\n".join(failed.values()))
    examples = _example_texts(checked.grid.grid)
    for job in jobs:
        trained, model = job_folder(run, job.id) / TRAINING, run / job.config.method
        if trained.is_dir():
            shutil.rmtree(model, ignore_errors=True)  # left by an earlier demo
            trained.rename(model)
            write_json(model / EXAMPLES, examples)


def telling_sentence(sentences: Sequence[Sentence]) -> Sentence:
    """Return a short sentence with many different labels."""
    short = [sentence for sentence in sentences if 5 <= len(sentence) <= 7]
    return max(short or sentences, key=lambda sentence: len(set(sentence.labels)))


def _example_texts(grid: Grid) -> dict[str, list[str]]:
    """Return a few test sentences of each language, to try the model on."""
    first_cells = {cell.language: cell for cell in reversed(grid.cells)}
    return {
        language: [s.text for s in grid[first_cells[language]][0].test if 6 <= len(s) <= 12][:N_EXAMPLES]
        for language in grid.languages
    }
