"""Tagging in bulk: `crossfill predict MODEL IN… --executor local|ray --out FOLDER`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from crossfill.cli.outputs import check_writable
from crossfill.cli.watching import INTERRUPTED, watching
from crossfill.errors import DataError, OutputError, unknown

if TYPE_CHECKING:
    from crossfill.bulk.places import Place
    from crossfill.bulk.plan import Plan
    from crossfill.data.streams import Cutting
    from crossfill.grid.cells import Cell
    from crossfill.grid.unit import Unit
    from crossfill.prediction.tagging import TaggingOptions
    from crossfill.tagger.tagger import Tagger

_KILOBYTE = 1000


class BulkSettings(NamedTuple):
    """What the taggings of a text depend on, as options of the command have it."""

    model: str
    encoder: str | None
    cells: tuple[str, ...]
    samples: int | None
    options: "TaggingOptions"
    cutting: "Cutting"
    form: str | None
    distribution: bool
    deprel_without_head: bool


def is_bulk(inputs: Sequence[str]) -> bool:
    """Whether inputs are more than one file, or one that only bulk tagging reads."""
    [first, *others] = inputs
    elsewhere = "://" in first or first.endswith((".parquet", ".gz")) or Path(first).is_dir()
    return bool(others) or elsewhere or (not Path(first).exists() and bool(re.search(r"[*?\[]", first)))


def tag_in_bulk(
    given: BulkSettings,
    inputs: Sequence[str],
    read: str | None,
    out: str | None,
    execution: Mapping[str, Any],
    shard_kilobytes: int,
    force: bool,
    quiet: bool,
) -> None:
    """Tag files shard by shard into a folder; the same command again does only what is missing."""
    from crossfill.bulk.places import Place
    from crossfill.bulk.plan import plan_tagging, take_up
    from crossfill.bulk.run import Standing, run_jobs
    from crossfill.bulk.tagging import tag_shard
    from crossfill.executors.base import ExecutionSettings, build_executor

    if out is None:
        raise OutputError("expected a folder for the tagged text of several files; name one with --out")
    if "-" in inputs:
        raise DataError(
            "expected files to tag in bulk, got standard input; leave out --executor and --jobs, or name files"
        )
    place = Place(out if "://" in out else str(Path(out).absolute()))
    if place.local is not None:
        check_writable(place.local)
    absolute = [address if "://" in address else str(Path(address).absolute()) for address in inputs]
    plan = plan_tagging(absolute, _settled(given, absolute, read), read, _KILOBYTE * shard_kilobytes)
    try:
        with _alone(place), watching(quiet) as watch:
            finished = take_up(plan, place, force)
            todo = [shard for shard in plan.shards if shard.name not in finished]
            todo.sort(key=lambda shard: -shard.bytes)  # longest first, so that no long one runs alone at the end
            values = {"settings": dict(plan.settings), "out": str(place)}
            jobs = {shard.name: {**values, "shard": shard.as_dict()} for shard in todo}
            standing = Standing(len(plan.shards), len(finished), {shard.name: shard.bytes for shard in todo})
            executor = build_executor(ExecutionSettings.model_validate(dict(execution)))
            run_jobs(tag_shard, jobs, standing, executor, watch)
            _show_end(plan, place, standing)
    except KeyboardInterrupt:
        typer.echo(f"interrupted; the same command goes on where {place} stands", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _settled(given: BulkSettings, inputs: Sequence[str], read: str | None) -> dict[str, Any]:
    """The settings as JSON values, after a look at the model; the output format is the inputs', JSON lines for text."""
    from dataclasses import asdict

    from crossfill.bulk.plan import model_digest
    from crossfill.bulk.shards import source_format
    from crossfill.bulk.tagging import SUFFIXES
    from crossfill.grid.sentence import Sentence
    from crossfill.grid.unit import Unit
    from crossfill.tagger.tagger import load

    tagger = load(given.model, given.encoder)
    if not given.cells:
        raise DataError(f"expected a cell to tag in, such as --cell {tagger.cells[0]}")
    cells = [tagger.query(Sentence(()), cell, given.samples, given.options).cell for cell in given.cells]
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
        "form": form,
        "unit": str(unit),
        "cutting": "lines" if given.cutting == "raw" and unit is not Unit.WORD else given.cutting,
    }


def shared_unit(tagger: "Tagger", cells: "Sequence[Cell]") -> "Unit":
    """The unit that all cells label; words and sentences are not read in the same way."""
    units = {tagger.model.inventory.unit(cell.task) for cell in cells}
    if len(units) > 1:
        told = ", ".join(f"{cell} labels {tagger.model.inventory.unit(cell.task)}s" for cell in cells)
        raise DataError(f"expected cells that label the same, got {told}; tag them one after the other")
    return units.pop()


def _show_end(plan: "Plan", out: "Place", standing: Any) -> None:
    from crossfill.bulk.plan import ASIDE, write_aside
    from crossfill.bulk.tagging import TAGGED

    if standing.failed:
        lines = [f"{len(standing.failed)} of {standing.total} shards failed; the others are done:"]
        lines += [f"  {name}: {message.splitlines()[0]}" for name, message in list(standing.failed.items())[:20]]
        raise DataError("\n".join([*lines, "mend what is wrong and run the same command again"]))
    n_sentences, n_words, n_aside = write_aside(plan, out)
    pace = f", {standing.words_per_second:,.0f} words/s" if standing.words else ""
    typer.echo(
        f"{out / TAGGED}: {standing.done:,} shards, {n_sentences:,} sentences, {n_words:,} words{pace}", err=True
    )
    if n_aside:
        typer.echo(f"{n_aside:,} records could not be read and were set aside: {out / ASIDE}", err=True)
        if not n_sentences:
            raise DataError("expected text to tag, got bad records alone; is --from right?")


@contextmanager
def _alone(out: "Place") -> Iterator[None]:
    """Keep other processes of this machine from tagging into the same folder."""
    from crossfill.bulk.plan import LOCK
    from crossfill.files import locked

    if out.local is None:
        yield
        return
    with locked(out.local / LOCK, wait=False) as held:
        if not held:
            raise OutputError(f"{out}: another crossfill predict is writing to this folder; wait for it, or end it")
        yield
