"""`crossfill cache`: list, check and clear cached features."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from crossfill.encoders.cache import Entry, FeatureCache

app = typer.Typer(help="Cached features of pretrained encoders.", invoke_without_command=True)
Folder = Annotated[Path | None, typer.Option(help="The cache. [default: the user's]")]


@app.callback()
def _root(context: typer.Context, cache: Folder = None) -> None:
    """Cached features: what there is, whether it is whole, and how to be rid of it."""
    if context.invoked_subcommand is None:
        show(cache)


@app.command("list")
def show(cache: Folder = None) -> None:
    """List the features by encoder, with their settings and size."""
    store = _store(cache)
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in store.entries():
        groups[_settings(entry)].append(entry)
    typer.echo(str(store.folder))
    for settings, entries in sorted(groups.items()):
        rows = sum(int(entry.about.get("rows", 0)) for entry in entries)
        size = sum(entry.bytes for entry in entries)
        typer.echo(f"  {settings}: {len(entries)} corpora, {rows:,} rows, {_megabytes(size)}")
    if not groups:
        typer.echo("  no features")


@app.command()
def check(cache: Folder = None, remove: Annotated[bool, typer.Option("--remove", help="Delete them.")] = False) -> None:
    """Read every entry and name the damaged ones, which are built anew when they are next needed."""
    store = _store(cache)
    damaged = list(store.damaged())
    for entry in damaged:
        typer.echo(f"{entry.path}: damaged")
    if remove:
        store.remove(damaged)
    typer.echo(f"{store.folder}: {len(store.entries())} entries, {len(damaged)} damaged" + " and removed" * remove)
    if damaged and not remove:
        raise typer.Exit(1)


@app.command()
def clear(
    cache: Folder = None,
    encoder: Annotated[str, typer.Option(help="Only features of encoders whose name holds this.")] = "",
) -> None:
    """Delete cached features, and what interrupted runs left behind."""
    store = _store(cache)
    entries = [entry for entry in store.entries() if encoder in str(entry.about.get("label", ""))]
    store.remove(entries)
    left = store.remove_leftovers()
    freed = _megabytes(sum(entry.bytes for entry in entries))
    typer.echo(f"{store.folder}: {len(entries)} entries removed, {freed}" + f", and {left} unfinished" * bool(left))


def _store(cache: Path | None) -> "FeatureCache":
    from crossfill.encoders.cache import FeatureCache

    return FeatureCache(cache or True)


def _settings(entry: "Entry") -> str:
    about = entry.about
    if not about:
        return "unreadable"
    what = (
        f"states after layer {about['pieces_of_layer']}"
        if "pieces_of_layer" in about
        else f"layer {about.get('layer') or 'last'}, {about.get('pooling')} piece, {about.get('precision')}"
    )
    return f"{about.get('label')} ({str(about.get('encoder'))[:8]}): {what}, windows of {about.get('max_pieces')}"


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
