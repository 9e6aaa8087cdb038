"""`crossfill encode DATA --encoder X`: fill the cache of features, on many cores or machines."""

from itertools import chain
from typing import Annotated

import typer
from typer import Option

from crossfill.cli import options
from crossfill.cli.grid import read_to_train
from crossfill.cli.output import failed_jobs


def encode(
    data: options.DataFolder,
    encoder: Annotated[
        str | None, Option(help="A hub name or a folder. [default: the config's, else as `train` chooses]")
    ] = None,
    config: options.Config = None,
    change: options.Changes = None,
    task: options.Tasks = None,
    max_train: options.MaxTrain = None,
    seed: options.Seed = 0,
    executor: options.Executor = "local",
    jobs: options.Jobs = 0,
    gpus: options.Gpus = 0,
) -> None:
    """Encode all text of a data folder with a frozen encoder, so that trainings find its features in the cache.

    Settings are chosen as `train` chooses them. Commands on several machines may share a cache folder; the same
    command again does only what is missing.
    """
    from crossfill.data.folder import ReadOptions
    from crossfill.encoders.base import build_encoder
    from crossfill.errors import EncoderError
    from crossfill.executors import worker_jobs as executors
    from crossfill.files import default_cache
    from crossfill.grid.typology import vectors_beside
    from crossfill.settings import parse_assignments
    from crossfill.studies.run import Encodings
    from crossfill.tagger.presets import RunRequest, choose_settings
    from crossfill.tagger.train import texts_to_encode

    folder = default_cache()
    request = RunRequest(None, encoder, None, config, vectors_beside(data), parse_assignments(change or ()))
    grid = read_to_train(data, ReadOptions(task or (), seed, max_train, folder))
    chosen = choose_settings(grid, grid.cells, request).config
    stored = build_encoder(chosen, grid.inventory.languages, folder).stored
    if stored is None:
        raise EncoderError(
            f"encoder '{chosen.encoder.name}': expected one that stays frozen, as features of one that trains cannot "
            "be kept; name a pretrained one with --encoder, or --set encoder.pretrained.mode=frozen"
        )
    texts = chain.from_iterable(texts_to_encode(grid, seen, seen, grid) for seen in (grid.cells, ()))
    encoding = Encodings.of(stored, chosen.encoder, (text for _, text in texts))
    settings = executors.ExecutionSettings(executor=executor, jobs=jobs, gpus=gpus)

    with options.resumable():
        totals = executors.run_jobs(encoding.jobs, executors.build_executor(settings), options.QUIET.get())
    if totals.failed:
        lines = [f"  {message.splitlines()[0]}" for message in totals.failed.values()]
        raise EncoderError(failed_jobs(len(encoding.jobs), "parts", lines))
    text = f"{stored.cache.folder}: {len(encoding.corpora):,} corpora, {encoding.n_words:,} words; "
    pace = f" at {totals.words_per_second:,.0f} words/s" if totals.words else ""
    typer.echo(f"{text}{totals.words:,} encoded{pace}", err=True)
