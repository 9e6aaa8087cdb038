"""The demo: a small study of three methods on half the cells of an artificial grid (`configs/demo.yaml`)."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from crossfill.checkpoint import EXAMPLES
from crossfill.data.synthetic import SyntheticGrid, synthetic_grid
from crossfill.errors import StudyError
from crossfill.files import write_json
from crossfill.grid.sentence import Sentence
from crossfill.settings import change_values, read_settings
from crossfill.studies.executors.base import build_executor
from crossfill.studies.plan import CheckedStudy, check_study
from crossfill.studies.run import Standing, run_study
from crossfill.studies.run_folder import RESULT, TRAINING, job_folder

CONFIG = Path("configs/demo.yaml")
N_EXAMPLES = 3


def demo_study(seed: int = 0, steps: int | None = None, families: int | None = None) -> CheckedStudy:
    """The demo's study; `seed` seeds the grid, the partition and the models."""
    changes = {"config.training.steps": steps, "data.synthetic.families": families}
    values = change_values(read_settings(CONFIG), {name: value for name, value in changes.items() if value is not None})
    values = change_values(values, {"data.seed": seed, "seeds": [seed]})
    values["partitions"] = [part | {"seed": seed} for part in values["partitions"]]
    checked = check_study(values, str(CONFIG))
    if checked.problems:
        raise StudyError("\n".join(checked.problems))
    return checked


def demo_grid(checked: CheckedStudy) -> SyntheticGrid:
    """The demo's artificial grid, with the true settings of its languages."""
    if checked.study is None or checked.study.data.synthetic is None:
        raise StudyError(f"{CONFIG}: expected a study of artificial languages")
    return synthetic_grid(checked.study.data.synthetic, checked.study.data.seed)


def run_demo(checked: CheckedStudy, run: Path, watch: Callable[[Standing, str], None]) -> None:
    """Run the missing jobs, then move the trained models to `run/<method>`, with example sentences."""
    if checked.study is None:
        raise StudyError(f"{CONFIG}: expected a study that is valid")
    jobs = checked.plan.jobs.values()
    for job in jobs:
        if not (run / job.config.method).is_dir():  # train again if the model was deleted
            (job_folder(run, job.id) / RESULT).unlink(missing_ok=True)
    standing = run_study(checked, run, build_executor(checked.study.execution), watch)
    if standing.failed:
        raise StudyError("\n".join(standing.failed.values()))
    examples = _example_texts(demo_grid(checked))
    for job in jobs:
        trained, model = job_folder(run, job.id) / TRAINING, run / job.config.method
        if trained.is_dir():
            shutil.rmtree(model, ignore_errors=True)  # left by an earlier demo
            trained.rename(model)
            write_json(model / EXAMPLES, examples)


def telling_sentence(sentences: Sequence[Sentence]) -> Sentence:
    """A short sentence with many different labels."""
    short = [sentence for sentence in sentences if 5 <= len(sentence) <= 7]
    return max(short or sentences, key=lambda sentence: len(set(sentence.labels)))


def _example_texts(made: SyntheticGrid) -> dict[str, list[str]]:
    """A few test sentences of each language, to try the model on."""
    texts = {}
    for language in made.grid.languages:
        cell = next(cell for cell in made.grid.cells if cell.language == language)
        texts[language] = [s.text for s in made.grid[cell][0].test if 6 <= len(s) <= 12][:N_EXAMPLES]
    return texts
