"""`crossfill cache`: list, check and clear cached features."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

if TYPE_CHECKING:
    from crossfill.encoders.cache import Entry, FeatureCache


def cache(
    action: Annotated[Literal["list", "check", "clear"], Argument(help="What to do.")] = "list",
    encoder: Annotated[str, Option(help="Only features of encoders whose name holds this.")] = "",
    yes: Annotated[bool, Option("--yes", help="Clear without asking.")] = False,
) -> None:
    """List cached features, check that they are undamaged, or clear them.

    `check` reads every file, names damaged ones and ends with code 1 if there are any; delete these to build them
    again.
    """
    from crossfill.encoders.cache import FeatureCache
    from crossfill.errors import ConfigError

    store = FeatureCache()
    entries = [entry for entry in store.entries() if encoder in str(entry.about.get("label", ""))]
    if action == "list":
        _list(store, entries)
    elif action == "check":
        _check(store, entries)
    else:
        what = f"{len(entries)} entries, {_megabytes(entries)}"
        if entries and not yes:  # computing them again takes time
            if not sys.stdin.isatty():
                raise ConfigError(
                    f"{store.folder}: expected a yes before {what}, are removed, found no terminal to ask on; add --yes"
                )
            typer.confirm(f"{store.folder}: remove {what}?", abort=True)
        for entry in entries:
            entry.path.unlink(missing_ok=True)
        if not encoder:
            store.clear()  # unfinished ones, too
        typer.echo(f"{store.folder}: {len(entries)} entries removed, {_megabytes(entries)}")


def _list(store: "FeatureCache", entries: "list[Entry]") -> None:
    groups: dict[str, dict[str, list[Entry]]] = {}
    for entry in entries:
        about = entry.about
        what = f"layer {about.get('layer') or 'last'}, {about.get('pooling')} piece, {about.get('precision')}"
        if "pieces_of_layer" in about:
            what = f"states after layer {about['pieces_of_layer']}"
        encoder = f"{about.get('label', 'unreadable')} ({str(about.get('encoder'))[:8]})"
        groups.setdefault(encoder, {}).setdefault(f"{what}, windows of {about.get('max_pieces')}", []).append(entry)
    typer.echo(str(store.folder) if groups else f"{store.folder}\n  no features")
    for encoder, by_settings in sorted(groups.items()):
        typer.echo(f"  {encoder}")
        for settings, members in sorted(by_settings.items()):
            rows = sum(int(entry.about.get("rows", 0)) for entry in members)
            typer.echo(f"    {settings}: {len(members)} corpora, {rows:,} rows, {_megabytes(members)}")


def _check(store: "FeatureCache", entries: "list[Entry]") -> None:
    damaged = [entry.path for entry in entries if not store.is_whole(entry)]
    for path in damaged:
        typer.echo(f"{path}: damaged")
    typer.echo(f"{store.folder}: {len(entries)} entries, {len(damaged)} damaged")
    if damaged:
        raise typer.Exit(1)


def _megabytes(entries: "list[Entry]") -> str:
    return f"{sum(entry.bytes for entry in entries) / 1e6:,.1f} MB"
