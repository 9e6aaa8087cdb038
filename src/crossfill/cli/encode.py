"""`crossfill encode DATA --encoder X`: fill the cache of features, on many cores or machines."""

from typing import Annotated

import typer

from crossfill.cli.options import (
    INTERRUPTED,
    QUIET,
    Changes,
    Config,
    DataFolder,
    Executor,
    Gpus,
    Jobs,
    MaxTrain,
    Seed,
    Tasks,
)
from crossfill.cli.watching import watching


def encode(
    data: DataFolder,
    encoder: Annotated[
        str | None, typer.Option(help="A hub name or a folder. [default: the config's, else as `train` chooses]")
    ] = None,
    config: Config = None,
    change: Changes = None,
    task: Tasks = None,
    max_train: MaxTrain = None,
    seed: Seed = 0,
    executor: Executor = "local",
    jobs: Jobs = 0,
    gpus: Gpus = 0,
) -> None:
    """Encode all text of a data folder with a frozen encoder, so that trainings find its features in the cache.

    Settings are chosen as `train` chooses them. Commands on several machines may share a cache folder; the same
    command again does only what is missing.
    """
    from crossfill.bulk.encoding import EncodingJobs, corpora_of, encode_part, missing_parts
    from crossfill.bulk.run import Standing, run_jobs
    from crossfill.cli.reading import read_to_train
    from crossfill.data.folder import ReadOptions
    from crossfill.encoders.build import build_encoder
    from crossfill.encoders.frozen import FrozenEncoder
    from crossfill.errors import EncoderError
    from crossfill.executors.base import ExecutionSettings, build_executor
    from crossfill.files import default_cache
    from crossfill.grid.typology import vectors_beside
    from crossfill.settings import parse_assignments
    from crossfill.tagger.presets import RunRequest, choose_settings

    folder = default_cache()
    request = RunRequest(None, encoder, None, config, vectors_beside(data), parse_assignments(change or ()))
    grid = read_to_train(data, ReadOptions(task or (), seed, max_train, folder))
    chosen = choose_settings(grid, grid.cells, request).config
    network = build_encoder(chosen, grid.inventory.languages, folder)
    if not isinstance(network, FrozenEncoder):
        raise EncoderError(
            f"encoder '{chosen.encoder.name}': expected one that stays frozen, as features of one that trains cannot "
            "be kept; name a pretrained one with --encoder, or --set encoder.pretrained.mode=frozen"
        )
    corpora = corpora_of(grid)
    parts = missing_parts(network, corpora)
    words = {name: part.corpus.n_words for name, part in parts.items()}
    total = sum(corpus.n_words for corpus in corpora.values())
    settings = ExecutionSettings(executor=executor, jobs=jobs, gpus=gpus)
    standing = Standing(len(parts), 0, dict(words), "parts")
    try:
        with watching(QUIET.get()) as watch:
            if parts:
                run_jobs(
                    encode_part, EncodingJobs(parts, chosen.encoder, folder), standing, build_executor(settings), watch
                )
            for corpus in corpora.values() if not standing.failed else ():
                network.vectors(corpus)  # from its parts
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command goes on with what is missing", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if standing.failed:
        raise EncoderError(
            f"{len(standing.failed)} of {standing.total} parts failed; the others are done: "
            f"{next(iter(standing.failed.values())).splitlines()[0]}; fix this and run the same command again"
        )
    pace = f" at {standing.words_per_second:,.0f} words/s" if standing.words else ""
    typer.echo(
        f"{network.cache.folder}: {len(corpora):,} corpora, {total:,} words; {sum(words.values()):,} encoded{pace}",
        err=True,
    )
