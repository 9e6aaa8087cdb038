"""`crossfill predict-files MODEL IN… --cell ner/wol --out FOLDER`: tag many files, on many cores or machines."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from crossfill.cli.cells import find_cells, shared_unit
from crossfill.cli.options import (
    INTERRUPTED,
    QUIET,
    Abstain,
    Alpha,
    Cells,
    Distribution,
    Executor,
    Force,
    Gpus,
    Jobs,
    ModelFolder,
    Prefer,
    ReadAs,
    Samples,
    WriteAs,
)
from crossfill.cli.paths import check_writable
from crossfill.errors import DataError, unknown

if TYPE_CHECKING:
    from crossfill.bulk.shards import Address
    from crossfill.bulk.tag_files import TaggingPlan
    from crossfill.data.streams import Cutting
    from crossfill.executors.jobs import JobProgress
    from crossfill.prediction.tagging import TaggingOptions


class BulkSettings(NamedTuple):
    """What the taggings of a text depend on, as options of the command have it."""

    model: str
    cells: tuple[str, ...]
    samples: int | None
    options: "TaggingOptions"
    cutting: "Cutting"
    form: str | None
    distribution: bool


def predict_files(
    model: ModelFolder,
    files: Annotated[
        list[str], typer.Argument(help="Files, folders, patterns (*) or addresses (s3://…) of text to tag.")
    ],
    out: Annotated[str, typer.Option(help="Folder to write to, or its address.")],
    cell: Cells = None,
    read: ReadAs = None,
    form: WriteAs = None,
    samples: Samples = None,
    distribution: Distribution = False,
    alpha: Alpha = None,
    abstain: Abstain = None,
    prefer: Prefer = "f1",
    executor: Executor = "local",
    jobs: Jobs = 0,
    gpus: Gpus = 0,
    force: Force = False,
) -> None:
    """Tag many files on many cores or machines; the same command again does only what is missing.

    A file is tagged by one worker, a Parquet file by its row groups: cut a very large text file first.
    """
    from crossfill.bulk.shards import Address
    from crossfill.bulk.tag_files import plan_tagging, resume, tag_shard
    from crossfill.executors.base import ExecutionSettings, build_executor
    from crossfill.executors.jobs import Amount, JobList, only_run, run_jobs
    from crossfill.prediction.tagging import TaggingOptions

    if "-" in files:
        raise DataError("expected files, got standard input; write it to a file, or use crossfill predict")
    cutting, read = (read, "text") if read in ("lines", "words") else ("raw", read)
    given = BulkSettings(
        str(model),
        tuple(cell or ()),
        samples,
        TaggingOptions(alpha=alpha, abstain=abstain, prefer=prefer),
        cutting,
        form,
        distribution,
    )
    folder = Address.of(out)
    if folder.local is not None:
        check_writable(folder.local)
    absolute = [str(Address.of(file)) for file in files]
    plan = plan_tagging(absolute, _settled(given, absolute, read), read)
    try:
        with only_run(folder.local, "predict-files") if folder.local is not None else nullcontext():
            finished = resume(plan, folder, force)
            todo = [shard for shard in plan.shards if shard.name not in finished]
            todo.sort(key=lambda shard: -shard.bytes)  # longest first: none runs alone at the end
            shared = {"settings": dict(plan.settings), "out": str(folder)}
            values = {shard.name: {**shared, "shard": shard.as_dict()} for shard in todo}
            amounts = {shard.name: Amount("Tagging", shard.lines, "lines") for shard in todo}
            execution = ExecutionSettings(executor=executor, jobs=jobs, gpus=gpus)
            progress = run_jobs(JobList(tag_shard, values, amounts), build_executor(execution), QUIET.get())
            _show_end(plan, folder, progress)
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command continues it", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _settled(given: BulkSettings, inputs: Sequence[str], read: str | None) -> dict[str, Any]:
    """Return the settings as JSON values, checked with the model; text is written as JSON lines."""
    from dataclasses import asdict

    from crossfill.bulk.shards import source_format
    from crossfill.bulk.tag_files import SUFFIXES, model_digest
    from crossfill.grid.sentence import Sentence
    from crossfill.grid.task import Unit
    from crossfill.tagger.tagger import load

    tagger = load(given.model)
    cells = find_cells(tagger, given.cells)
    for cell in cells:
        tagger.query(Sentence(()), cell, given.samples, given.options)  # checks the options
    unit = shared_unit(tagger, cells)
    formats = {source_format(address, read) for address in inputs}
    usual = formats.pop() if len(formats) == 1 else "jsonl"
    form = given.form or (usual if usual in SUFFIXES else "jsonl")
    if form not in SUFFIXES:
        raise DataError(unknown("format of tagged shards", form, SUFFIXES))
    if unit is Unit.PAIR and "parquet" in {source_format(address, read) for address in inputs}:
        raise DataError("expected pairs as text (premise<TAB>hypothesis) or JSON lines, got Parquet; convert it")
    if unit is not Unit.WORD and form == "conllu":
        raise DataError(f"expected cells that label words for CoNLL-U, got {cells[0]}; choose --format jsonl")
    model = Path(given.model)
    return given._asdict() | {
        "model": str(model.absolute()) if model.exists() else given.model,
        "digest": model_digest(given.model),
        "cells": list(map(str, cells)),
        "options": asdict(given.options),
        "encoder": os.environ.get("CROSSFILL_ENCODER"),
        "form": form,
        "unit": str(unit),
        "cutting": "lines" if given.cutting == "raw" and unit is not Unit.WORD else given.cutting,
    }


def _show_end(plan: "TaggingPlan", out: "Address", progress: "JobProgress") -> None:
    from crossfill.bulk.tag_files import SET_ASIDE, TAGGED, collect_records

    if progress.failed:
        lines = [f"{len(progress.failed)} of {len(plan.shards)} shards failed; the others are done:"]
        lines += [f"  {name}: {message.splitlines()[0]}" for name, message in list(progress.failed.items())[:20]]
        raise DataError("\n".join([*lines, "fix this and run the same command again"]))
    n_sentences, n_words, n_bad = collect_records(plan, out)
    pace = f", {progress.words_per_second:,.0f} words/s" if progress.words else ""
    typer.echo(
        f"{out / TAGGED}: {len(plan.shards):,} shards, {n_sentences:,} sentences, {n_words:,} words{pace}", err=True
    )
    if n_bad:
        typer.echo(f"{n_bad:,} records could not be read and were set aside: {out / SET_ASIDE}", err=True)
        if not n_sentences:
            raise DataError("expected text to tag, got bad records alone; is --from right?")
