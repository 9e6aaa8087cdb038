"""`crossfill predict-files MODEL IN… --cell ner/wol --out FOLDER`: tag many files, on many cores or machines."""

import os
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from crossfill.cli import options
from crossfill.cli.output import failed_jobs
from crossfill.errors import DataError, unknown


def predict_files(
    model: options.ModelFolder,
    files: Annotated[list[str], Argument(help="Files, folders or patterns (*) of text to tag.")],
    out: Annotated[Path, Option(help="Folder to write to.")],
    cell: options.Cells = None,
    read: options.ReadAs = None,
    form: options.WriteAs = None,
    samples: options.Samples = None,
    distribution: options.Distribution = False,
    alpha: options.Alpha = None,
    abstain: options.Abstain = None,
    prefer: options.Prefer = "f1",
    executor: options.Executor = "local",
    jobs: options.Jobs = 0,
    gpus: options.Gpus = 0,
    force: options.Force = False,
) -> None:
    """Tag many files on many cores or machines; the same command again does only what is missing.

    A file is tagged by one worker: cut a very large one first.
    """
    from crossfill.bulk import tag_files
    from crossfill.bulk.shards import source_format
    from crossfill.executors.worker_jobs import ExecutionSettings, WorkerJob, build_executor, only_run, run_jobs
    from crossfill.grid.sentence import Sentence
    from crossfill.grid.task import Unit
    from crossfill.prediction.tagging import TaggingOptions
    from crossfill.tagger.tagger import load

    if "-" in files:
        raise DataError("expected files, got standard input; write it to a file, or use crossfill predict")
    cutting, read = (read, "text") if read in ("lines", "words") else ("raw", read)
    folder = out.absolute()
    options.check_writable(folder)
    tagger, tagging = load(model), TaggingOptions(alpha=alpha, abstain=abstain, prefer=prefer)
    cells, unit = options.find_cells(tagger, cell)
    for target in cells:
        tagger.query(Sentence(()), target, samples, tagging)  # checks the options
    sources = {source_format(file, read) for file in files}
    usual = next(iter(sources)) if len(sources) == 1 else "jsonl"
    output: str = form or (usual if usual in tag_files.SUFFIXES else "jsonl")
    if output not in tag_files.SUFFIXES:
        raise DataError(unknown("format of tagged shards", output, tag_files.SUFFIXES))
    if unit is Unit.PAIR and "parquet" in sources:
        raise DataError("expected pairs as text (premise<TAB>hypothesis) or JSON lines, got Parquet; convert it")
    if unit is not Unit.WORD and output == "conllu":
        raise DataError("expected cells that label words for CoNLL-U, got others; choose --format jsonl")
    settings = {
        "model": str(model.absolute()) if model.exists() else str(model),
        "digest": tag_files.model_digest(str(model)),
        "encoder": os.environ.get("CROSSFILL_ENCODER"),
        "cells": list(map(str, cells)),
        "samples": samples,
        "options": asdict(tagging),
        "unit": str(unit),
        "cutting": "lines" if cutting == "raw" and unit is not Unit.WORD else cutting,
        "form": output,
        "distribution": distribution,
    }
    plan = tag_files.plan_tagging(files, settings, read)
    with options.resumable(), only_run(folder, "predict-files"):
        finished = tag_files.resume(plan, folder, force)
        work = {
            shard.name: WorkerJob(
                partial(tag_files.tag_shard, settings, shard, folder), "Tagging", shard.lines, "lines"
            )
            for shard in sorted(plan.shards, key=lambda shard: -shard.bytes)  # longest first: none ends alone
            if shard.name not in finished
        }
        execution = ExecutionSettings(executor=executor, jobs=jobs, gpus=gpus)
        totals = run_jobs(work, build_executor(execution), options.QUIET.get())
        if totals.failed:
            lines = [f"  {name}: {message.splitlines()[0]}" for name, message in totals.failed.items()]
            raise DataError(failed_jobs(len(plan.shards), "shards", lines))
        n_sentences, n_words, n_bad = tag_files.collect_records(plan, folder)
    pace = f", {totals.words_per_second:,.0f} words/s" if totals.words else ""
    tagged = f"{len(plan.shards):,} shards, {n_sentences:,} sentences, {n_words:,} words{pace}"
    typer.echo(f"{folder / tag_files.TAGGED}: {tagged}", err=True)
    if n_bad:
        typer.echo(f"{n_bad:,} records could not be read and were set aside: {folder / tag_files.SET_ASIDE}", err=True)
        if not n_sentences:
            raise DataError("expected text to tag, got bad records alone; is --from right?")
