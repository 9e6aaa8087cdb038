"""`crossfill doctor`: versions, devices, caches, and what is missing."""

import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import typer


class Package(NamedTuple):
    """A dependency of crossfill, or of one of its extras."""

    name: str
    extra: str
    """The extra that asks for it; empty if crossfill itself does."""
    wanted: str
    installed: str | None
    fits: bool

    def __str__(self) -> str:
        return f"{self.name} {self.installed or 'missing'}" + ("" if self.fits else f" (wanted {self.wanted})")


def doctor() -> None:
    """Say what is installed, what it runs on, and what is missing; ends with code 1 if crossfill cannot work."""
    from crossfill.files import default_cache

    listed = packages()
    missing = [f"'{package.name}{package.wanted}'" for package in listed if not package.extra and not package.fits]
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    typer.echo(f"crossfill {metadata.version('crossfill')}, Python {platform.python_version()}, {system}")
    if all(package.fits for package in listed if package.name == "torch"):
        typer.echo(f"devices: {', '.join(_devices())}")
    for extra in dict.fromkeys(package.extra for package in listed):
        chosen = [package for package in listed if package.extra == extra]
        ready = all(package.fits for package in chosen)
        mark = "✓" if ready else "–" if extra else "✗"
        typer.echo(f"{mark} {extra or 'needed'}: {', '.join(map(str, chosen))}")
        if extra and not ready:
            typer.echo(f"    pip install 'crossfill[{extra}]'")
    folder = default_cache()
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    free = f"{sum(sizes) / 1e6:,.0f} MB; {shutil.disk_usage(existing).free / 1e9:,.0f} GB free"
    locked = "" if os.access(existing, os.W_OK) else ", NOT WRITABLE: set CROSSFILL_CACHE to another folder"
    typer.echo(f"cache: {folder}: {len(sizes)} files, {free}{locked}")
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    encoders = sorted(path.name.removeprefix("models--").replace("--", "/") for path in hub.glob("models--*"))
    typer.echo(f"downloaded encoders: {', '.join(['compact', *encoders])} ({hub})")
    if missing:
        typer.echo(f"missing: pip install {' '.join(missing)}, in the environment of {sys.executable}")
        raise typer.Exit(1)
    typer.echo("nothing that crossfill needs is missing")


def packages() -> list[Package]:
    """List the dependencies of crossfill and of its extras for users."""
    from packaging.requirements import Requirement

    extras = metadata.metadata("crossfill").get_all("Provides-Extra") or []
    askers = ["", *(extra for extra in extras if extra not in ("dev", "docs"))]
    listed = []
    for text in metadata.requires("crossfill") or []:
        package = Requirement(text)
        extra = next((e for e in askers if package.marker is None or package.marker.evaluate({"extra": e})), None)
        if extra is not None:
            version = _version(package.name)
            fits = version is not None and package.specifier.contains(version, prereleases=True)
            listed.append(Package(package.name, extra, str(package.specifier), version, fits))
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
