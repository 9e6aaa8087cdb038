"""The demos: small studies on half the cells of an artificial grid, or of a grid of real languages."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossfill.checkpoint import EXAMPLES
from crossfill.data.synthetic import SyntheticGrid, synthetic_grid
from crossfill.errors import StudyError
from crossfill.executors.base import build_executor
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


def demo_study(seed: int = 0, steps: int | None = None, families: int | None = None) -> CheckedStudy:
    """Return the demo's study; `seed` seeds the grid, the partition and the models."""
    changes = {"config.training.steps": steps, "data.synthetic.families": families}
    return check_study(_seeded(CONFIG, changes, seed), str(CONFIG))


def real_demo_study(seed: int = 0, steps: int | None = None, encoder: str = "compact") -> CheckedStudy:
    """Return the study of the demo in real languages; `seed` seeds the partition and the models.

    A pretrained encoder stays frozen, under the settings of the `laptop` preset.
    """
    values = _seeded(REAL_CONFIG, {"config.training.steps": steps}, seed)
    checked = check_study(values, str(REAL_CONFIG))
    if encoder == "compact":
        return checked
    grid, seen = demo_grid(checked), seen_cells(checked)
    changes = {} if steps is None else {"training.steps": steps}
    for method in values["methods"]:
        request = RunRequest(method=method, encoder=encoder, preset="laptop", changes=changes)
        values["methods"][method] = choose_settings(grid, seen, request).config.model_dump(mode="json")
    return check_study(values, str(REAL_CONFIG))


def demo_grid(checked: CheckedStudy) -> Grid:
    """Return the grid of a demo."""
    return checked.grid.grid


def seen_cells(checked: CheckedStudy) -> tuple[Cell, ...]:
    """Return the cells that a demo trains on; all of its methods see the same."""
    return tuple(sorted(map(Cell.parse, next(iter(checked.plan.jobs.values())).seen)))


def unseen_cells(checked: CheckedStudy) -> tuple[Cell, ...]:
    """Return the cells that a demo fills in."""
    return tuple(sorted(map(Cell.parse, next(iter(checked.plan.jobs.values())).unseen)))


def artificial_languages(checked: CheckedStudy) -> SyntheticGrid:
    """Return the demo's artificial grid, with the true settings of its languages."""
    if checked.study.data.synthetic is None:
        raise StudyError(f"{CONFIG}: expected a study of artificial languages")
    return synthetic_grid(checked.study.data.synthetic, checked.study.data.seed)


def run_demo(checked: CheckedStudy, run: Path, quiet: bool) -> None:
    """Run the missing jobs, then move the trained models to `run/<method>`, with example sentences."""
    jobs = checked.plan.jobs.values()
    for job in jobs:
        if not (run / job.config.method).is_dir():  # train again if the model was deleted
            (job_folder(run, job.id) / RESULT).unlink(missing_ok=True)
    failed = run_study(checked, run, build_executor(checked.study.execution), quiet)
    if failed:
        raise StudyError("\n".join(failed.values()))
    examples = _example_texts(demo_grid(checked))
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


def _seeded(config: Path, changes: Mapping[str, Any], seed: int) -> dict[str, Any]:
    values = change_values(read_settings(config), {name: value for name, value in changes.items() if value is not None})
    values = change_values(values, {"data.seed": seed, "seeds": [seed]})
    values["partitions"] = [part | {"seed": seed} for part in values["partitions"]]
    return values


def _example_texts(grid: Grid) -> dict[str, list[str]]:
    """Return a few test sentences of each language, to try the model on."""
    texts = {}
    for language in grid.languages:
        cell = next(cell for cell in grid.cells if cell.language == language)
        texts[language] = [s.text for s in grid[cell][0].test if 6 <= len(s) <= 12][:N_EXAMPLES]
    return texts
