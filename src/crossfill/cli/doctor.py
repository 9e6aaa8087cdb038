"""`crossfill doctor`: versions, devices, and what is missing."""

import os
import platform
import sys
from importlib import metadata
from typing import NamedTuple

import typer


class Package(NamedTuple):
    """A dependency of crossfill, or of the extra with this name."""

    extra: str
    name: str
    wanted: str
    fits: bool
    shown: str


def doctor() -> None:
    """Say what is installed, what it runs on, and what is missing; ends with code 1 if crossfill cannot work."""
    listed = packages()
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    typer.echo(f"crossfill {metadata.version('crossfill')}, Python {platform.python_version()}, {system}")
    if all(package.fits for package in listed if package.name == "torch"):
        import torch

        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        devices = [f"{accelerator}:{i}" for i in range(torch.accelerator.device_count())] if accelerator else []
        typer.echo(f"devices: {', '.join([*devices, f'cpu: {torch.get_num_threads()} threads'])}")
    for extra in dict.fromkeys(package.extra for package in listed):
        chosen = [package for package in listed if package.extra == extra]
        ready, absent = all(package.fits for package in chosen), "–" if extra else "✗"
        typer.echo(f"{'✓' if ready else absent} {extra or 'needed'}: {', '.join(p.shown for p in chosen)}")
        if extra and not ready:
            typer.echo(f"    pip install 'crossfill[{extra}]'")
    if missing := [f"'{p.name}{p.wanted}'" for p in listed if not p.extra and not p.fits]:
        typer.echo(f"missing: pip install {' '.join(missing)}, in the environment of {sys.executable}")
        raise typer.Exit(1)
    typer.echo("nothing that crossfill needs is missing")


def packages() -> list[Package]:
    """List the dependencies of crossfill and of its extras for users."""
    from packaging.requirements import Requirement

    extras = metadata.metadata("crossfill").get_all("Provides-Extra") or []
    askers = ["", *(extra for extra in extras if extra not in ("dev", "docs"))]
    listed = []
    for package in map(Requirement, metadata.requires("crossfill") or []):
        for extra in askers:
            if package.marker is None or package.marker.evaluate({"extra": extra}):
                version, wanted = _version(package.name), str(package.specifier)
                fits = version is not None and package.specifier.contains(version, prereleases=True)
                shown = f"{package.name} {version or 'missing'}" + ("" if fits else f" (wanted {wanted})")
                listed.append(Package(extra, package.name, wanted, fits, shown))
                break
    return listed


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
