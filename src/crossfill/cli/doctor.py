"""`crossfill doctor`: versions, devices, caches, and what is missing."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import typer

from crossfill.cli.options import AsJson

_FOR_DEVELOPERS = ("dev", "docs")


def doctor(as_json: AsJson = False) -> None:
    """Say what is installed, what it runs on, and what is missing; ends with code 1 if crossfill cannot work."""
    listed = packages()
    broken = [package for package in listed if not package["extra"] and not package["fits"]]
    facts = {
        "crossfill": metadata.version("crossfill"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "devices": [] if any(package["name"] == "torch" for package in broken) else _devices(),
        "cache": _cache(),
        "hub": _hub(),
    }
    if as_json:
        typer.echo(json.dumps(facts | {"packages": listed, "works": not broken}, indent=2))
    else:
        _show(facts, listed, broken)
    if broken:
        raise typer.Exit(1)


def packages() -> list[dict[str, Any]]:
    """List the dependencies of crossfill and of its extras for users: name, extra, wanted and installed versions."""
    from packaging.requirements import Requirement

    names = metadata.metadata("crossfill").get_all("Provides-Extra") or []
    listed = []
    for text in metadata.requires("crossfill") or []:
        wanted = Requirement(text)
        for extra in ("", *(name for name in names if name not in _FOR_DEVELOPERS)):
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                found = _version(wanted.name)
                fits = found is not None and wanted.specifier.contains(found, prereleases=True)
                about = {"name": wanted.name, "wanted": str(wanted.specifier), "found": found, "extra": extra}
                listed.append(about | {"fits": fits})
                break
    return listed


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> list[str]:
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    names = [f"{accelerator}:{i}" for i in range(torch.accelerator.device_count())] if accelerator else []
    return [*names, f"cpu: {torch.get_num_threads()} threads"]


def _cache() -> dict[str, Any]:
    from crossfill.files import default_cache

    folder = default_cache()
    files = [path for path in folder.rglob("*") if path.is_file()]
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return {
        "folder": str(folder),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "writable": os.access(existing, os.W_OK),
        "free_bytes": shutil.disk_usage(existing).free,
    }


def _hub() -> dict[str, Any]:
    """Name the folder and the pretrained encoders that were downloaded to it; does not use the network."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    folder = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    names = sorted(path.name.removeprefix("models--").replace("--", "/") for path in folder.glob("models--*"))
    return {"folder": str(folder), "models": names}


def _show(facts: Mapping[str, Any], listed: Sequence[dict[str, Any]], broken: Sequence[dict[str, Any]]) -> None:
    from rich.console import Console

    console, cache, hub = Console(highlight=False, markup=False), facts["cache"], facts["hub"]
    console.print(
        f"crossfill {facts['crossfill']}, Python {facts['python']}, {facts['system']}, {facts['cores']} cores"
    )
    console.print(f"devices: {', '.join(facts['devices']) or 'unknown without torch'}")
    console.print(
        "packages: " + ", ".join(f"{p['name']} {p['found']}" for p in listed if not p["extra"] and p["found"])
    )
    for package in broken:
        console.print(f"  ✗ {package['name']}: expected {package['wanted']}, found {package['found'] or 'none'}")
    console.print("extras:")
    for extra in dict.fromkeys(package["extra"] for package in listed if package["extra"]):
        parts = [package for package in listed if package["extra"] == extra]
        ready = all(part["fits"] for part in parts)
        versions = (
            f"{p['name']} {p['found'] or 'missing'}{'' if p['fits'] else ' (wanted ' + p['wanted'] + ')'}"
            for p in parts
        )
        console.print(f"  {'✓' if ready else '–'} {extra}: {', '.join(versions)}")
        if not ready:
            console.print(f"      pip install 'crossfill[{extra}]'")
    size = f"{cache['files']} files, {cache['bytes'] / 1e6:,.0f} MB; {cache['free_bytes'] / 1e9:,.0f} GB free"
    locked = "" if cache["writable"] else ", NOT WRITABLE: set CROSSFILL_CACHE to another folder"
    console.print(f"cache: {cache['folder']}: {size}{locked}", soft_wrap=True)
    console.print(f"downloaded encoders: {', '.join(['compact', *hub['models']])} ({hub['folder']})", soft_wrap=True)
    if broken:
        names = " ".join(f"'{package['name']}{package['wanted']}'" for package in broken)
        console.print(f"missing: pip install {names}, in the environment of {sys.executable}", soft_wrap=True)
    else:
        console.print("nothing that crossfill needs is missing")
