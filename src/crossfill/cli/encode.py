"""`crossfill encode DATA --encoder X`: fill the cache of features, on many cores or machines."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from crossfill.cli.options import MOST_SEED
from crossfill.cli.watching import INTERRUPTED, watching


def encode(
    data: Annotated[Path, typer.Argument(help="Folder of corpora, as `crossfill grid` shows it.")],
    encoder: Annotated[
        str | None, typer.Option(help="A hub name or a folder. [default: the config's, else as `train` chooses]")
    ] = None,
    layer: Annotated[str | None, typer.Option(help="Layer of the encoder, or mix.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings or of a study: configs/frozen.yaml.")
    ] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as encoder.pretrained.pooling=last.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeatable. deprel, feats:Case, …")] = None,
    max_train: Annotated[int | None, typer.Option(min=1, help="Most training sentences per corpus.")] = None,
    max_dev: Annotated[int | None, typer.Option(min=1, help="Most dev sentences per corpus.")] = None,
    max_test: Annotated[int | None, typer.Option(min=1, help="Most test sentences per corpus.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Seed of random splits and caps.")] = 0,
    cache: Annotated[Path | None, typer.Option(help="Folder for corpora and features. [default: the user's]")] = None,
    executor: Annotated[Literal["local", "ray"], typer.Option(help="Local processes, or Ray.")] = "local",
    jobs: Annotated[int, typer.Option(min=0, help="Parts at a time; 0 for as many as cores allow.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Cores per part.")] = 1,
    gpus: Annotated[float, typer.Option(min=0, help="Accelerators per part; a half lets two share one.")] = 0,
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster, or auto.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Encode all text of a data folder with a frozen encoder, so that trainings find its features in the cache.

    Settings are chosen as `train` chooses them. Commands on several machines may share a cache folder; the same
    command again does only what is missing.
    """
    from crossfill.bulk.encoding import EncodingJobs, corpora_of, encode_part, missing_parts
    from crossfill.bulk.run import Standing, run_jobs
    from crossfill.cli.reading import read_to_train
    from crossfill.data.folder import ReadOptions
    from crossfill.data.splits import capped_grid
    from crossfill.encoders.build import build_encoder
    from crossfill.encoders.frozen import FrozenEncoder
    from crossfill.errors import EncoderError
    from crossfill.executors.base import ExecutionSettings, build_executor
    from crossfill.files import default_cache
    from crossfill.grid.typology import vectors_beside
    from crossfill.settings import parse_assignments
    from crossfill.tagger.presets import RunRequest, choose_settings

    folder = cache or default_cache()
    changes = {} if layer is None else {"encoder.pretrained.layer": layer}
    request = RunRequest(None, encoder, None, config, vectors_beside(data), changes | parse_assignments(change or ()))
    read = ReadOptions(task or (), seed, max_train, folder)
    grid = capped_grid(read_to_train(data, read, quiet), max_dev, max_test, seed)
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
    settings = ExecutionSettings(executor=executor, jobs=jobs, threads=threads, gpus=gpus, address=address)
    standing = Standing(len(parts), 0, dict(words), "parts")
    try:
        with watching(quiet) as watch:
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
            f"{next(iter(standing.failed.values())).splitlines()[0]}; mend it and run the same command again"
        )
    pace = f" at {standing.words_per_second:,.0f} words/s" if standing.words else ""
    typer.echo(
        f"{network.cache.folder}: {len(corpora):,} corpora, {total:,} words; {sum(words.values()):,} encoded{pace}",
        err=True,
    )
