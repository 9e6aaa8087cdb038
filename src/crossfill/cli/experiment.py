"""`crossfill experiment CONFIG --out RUN`: a whole study, resumable; `crossfill report RUN`: its tables and figures."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from crossfill.cli.options import QUIET, check_folder, check_writable, resumable
from crossfill.cli.output import failed_jobs, print_table, say_what_found_nothing

if TYPE_CHECKING:
    from crossfill.studies.plan import CheckedStudy

LONGEST = 40
"""Tables with more rows are not shown in the terminal."""


def experiment(
    config: Annotated[Path, Argument(help="YAML file of a study, such as configs/small.yaml.")],
    out: Annotated[Path, Option(help="Run folder; an existing run is resumed.")],
    data: Annotated[Path | None, Option(help="Data folder. [default: the study's]")] = None,
    encoder: Annotated[str | None, Option(help="compact, a hub name or a folder. [default: the study's]")] = None,
    change: Annotated[
        list[str] | None, Option("--set", help="A setting of the study, as config.training.steps=500.")
    ] = None,
    executor: Annotated[
        Literal["local", "ray"] | None, Option(help="Where jobs run. [default: the study's, else local]")
    ] = None,
    jobs: Annotated[int | None, Option(min=0, help="Jobs at a time; 0 for as many as cores allow.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the plan, and train nothing.")] = False,
) -> None:
    """Run a study: partitions × methods × seeds. The same command again does only what is missing."""
    from crossfill.errors import StudyError
    from crossfill.executors.worker_jobs import build_executor
    from crossfill.settings import change_values, parse_assignments, read_settings
    from crossfill.studies.plan import check_study
    from crossfill.studies.run import check_run_folder, run_study
    from crossfill.studies.run_folder import LOG, ROWS, job_folder, open_results

    named: dict[str, Any] = {
        "data.path": data and str(data.resolve()),
        "config.encoder.name": encoder,
        "execution.executor": executor,
        "execution.jobs": jobs,
    }
    given = {name: value for name, value in named.items() if value is not None}
    values = change_values(read_settings(config), given | parse_assignments(change or ()))
    checked = check_study(values, str(config))
    for note in checked.grid.notes:
        typer.echo(note, err=True)
    if dry_run:
        _show_plan(checked, out)
        return
    check_writable(out)
    check_run_folder(checked, out)
    with resumable():
        failed = run_study(checked, out, build_executor(checked.study.execution), QUIET.get())
    n_jobs = len(checked.plan.jobs)
    if failed:
        lines = [f"  {text.splitlines()[0]}\n    log: {job_folder(out, job) / LOG}" for job, text in failed.items()]
        raise StudyError(failed_jobs(n_jobs, "jobs", lines))
    say_what_found_nothing(open_results(out))
    typer.echo(f"{out}: {n_jobs} jobs done; results in {out / ROWS}; next: crossfill report {out}")


def _show_plan(checked: "CheckedStudy", run: Path) -> None:
    from crossfill.studies.run import encoding_jobs, missing_jobs

    missing = missing_jobs(checked, run)
    for job in checked.plan.jobs.values():
        entries = [entry for entry in checked.plan.entries if entry.job == job.id]
        uses = dict.fromkeys(f"{e.partition} {e.ablation and f'{e.ablation}: {e.variant}'}".strip() for e in entries)
        steps = f"{job.config.training.steps:,} steps" if job in missing else "done"
        cells = f"{len(job.seen)} seen and {len(job.unseen)} unseen cells"
        typer.echo(f"{job.title}: {', '.join(uses)}; {cells}; {steps}")
    typer.echo(
        f"{len(checked.plan.jobs)} jobs for {len(checked.plan.entries)} entries, {len(missing)} to do: "
        f"{sum(job.config.training.steps for job in missing):,} training steps at most"
    )
    if encodings := encoding_jobs(checked, missing):
        total = sum(encoding.n_words for encoding in encodings)
        n_missing = sum(job.amount for encoding in encodings for job in encoding.jobs.values())
        typer.echo(f"{total:,} words: {n_missing:,} to encode, {total - n_missing:,} in the cache")


def report(
    run: Annotated[Path, Argument(help="Folder of a study, as crossfill experiment leaves it.")],
    out: Annotated[Path | None, Option(help="Folder for tables and figures. [default: the run's]")] = None,
) -> None:
    """Make the tables and figures of a study, and one page of them; an earlier report in the run is replaced."""
    from rich.console import Console

    from crossfill.report.rendering import terminal
    from crossfill.report.report import write_report

    if out is None or out.resolve() == run.resolve():
        check_writable(run)
    else:
        check_folder(out)
    written = write_report(run, out)
    for table in () if QUIET.get() else written.tables:
        if len(table.rows) <= LONGEST:
            print_table(Console(highlight=False), terminal(table))
    folder = out or run
    if written.missing:
        typer.echo(f"{written.missing} jobs have no result yet; run the same crossfill experiment again", err=True)
    typer.echo(
        f"{len(written.tables)} tables in {folder / 'tables'} (Markdown), {len(written.drawings)} figures in "
        f"{folder / 'figures'} (PDF, PNG), all of it in {written.page}"
    )
