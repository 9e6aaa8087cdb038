"""`crossfill predict-files MODEL IN… --cell ner/wol --out FOLDER`: tag many files, on many cores or machines."""

import os
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from crossfill.cli.options import (
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
    check_writable,
    find_cells,
    resumable,
)
from crossfill.cli.output import failed_jobs
from crossfill.errors import DataError, unknown

if TYPE_CHECKING:
    from crossfill.bulk.shards import Address
    from crossfill.bulk.tag_files import TaggingPlan
    from crossfill.executors.base import RunTotals
    from crossfill.grid.task import Unit


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
    from crossfill.bulk.shards import Address, source_format
    from crossfill.bulk.tag_files import model_digest, plan_tagging, resume, tag_shard
    from crossfill.executors.base import ExecutionSettings, WorkerJob, build_executor, only_run, run_jobs
    from crossfill.grid.sentence import Sentence
    from crossfill.grid.task import Unit
    from crossfill.prediction.tagging import TaggingOptions
    from crossfill.tagger.tagger import load

    if "-" in files:
        raise DataError("expected files, got standard input; write it to a file, or use crossfill predict")
    cutting, read = (read, "text") if read in ("lines", "words") else ("raw", read)
    folder = Address.of(out)
    if folder.local is not None:
        check_writable(folder.local)
    tagger, options = load(model), TaggingOptions(alpha=alpha, abstain=abstain, prefer=prefer)
    cells, unit = find_cells(tagger, cell)
    for target in cells:
        tagger.query(Sentence(()), target, samples, options)  # checks the options
    inputs = [str(Address.of(file)) for file in files]
    settings = {
        "model": str(model.absolute()) if model.exists() else str(model),
        "digest": model_digest(str(model)),
        "encoder": os.environ.get("CROSSFILL_ENCODER"),
        "cells": list(map(str, cells)),
        "samples": samples,
        "options": asdict(options),
        "unit": str(unit),
        "cutting": "lines" if cutting == "raw" and unit is not Unit.WORD else cutting,
        "form": _output_form(form, {source_format(address, read) for address in inputs}, unit),
        "distribution": distribution,
    }
    plan = plan_tagging(inputs, settings, read)
    with resumable(), only_run(folder.local, "predict-files") if folder.local is not None else nullcontext():
        finished = resume(plan, folder, force)
        todo = [shard for shard in plan.shards if shard.name not in finished]
        todo.sort(key=lambda shard: -shard.bytes)  # longest first: none runs alone at the end
        work = {
            shard.name: WorkerJob(partial(tag_shard, settings, shard, folder), "Tagging", shard.lines, "lines")
            for shard in todo
        }
        execution = ExecutionSettings(executor=executor, jobs=jobs, gpus=gpus)
        _show_end(plan, folder, run_jobs(work, build_executor(execution), QUIET.get()))


def _output_form(named: str | None, inputs: Collection[str], unit: "Unit") -> str:
    """Return the format to write: the named one, else that of the inputs if they have one, else JSON lines."""
    from crossfill.bulk.tag_files import SUFFIXES
    from crossfill.grid.task import Unit

    usual = next(iter(inputs)) if len(inputs) == 1 else "jsonl"
    form = named or (usual if usual in SUFFIXES else "jsonl")
    if form not in SUFFIXES:
        raise DataError(unknown("format of tagged shards", form, SUFFIXES))
    if unit is Unit.PAIR and "parquet" in inputs:
        raise DataError("expected pairs as text (premise<TAB>hypothesis) or JSON lines, got Parquet; convert it")
    if unit is not Unit.WORD and form == "conllu":
        raise DataError("expected cells that label words for CoNLL-U, got others; choose --format jsonl")
    return form


def _show_end(plan: "TaggingPlan", out: "Address", totals: "RunTotals") -> None:
    from crossfill.bulk.tag_files import SET_ASIDE, TAGGED, collect_records

    if totals.failed:
        lines = [f"  {name}: {message.splitlines()[0]}" for name, message in totals.failed.items()]
        raise DataError(failed_jobs(len(plan.shards), "shards", lines))
    n_sentences, n_words, n_bad = collect_records(plan, out)
    pace = f", {totals.words_per_second:,.0f} words/s" if totals.words else ""
    typer.echo(
        f"{out / TAGGED}: {len(plan.shards):,} shards, {n_sentences:,} sentences, {n_words:,} words{pace}", err=True
    )
    if n_bad:
        typer.echo(f"{n_bad:,} records could not be read and were set aside: {out / SET_ASIDE}", err=True)
        if not n_sentences:
            raise DataError("expected text to tag, got bad records alone; is --from right?")
