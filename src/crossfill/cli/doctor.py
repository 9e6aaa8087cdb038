"""`crossfill doctor`: versions, devices, and what is missing."""

import os
import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def doctor() -> None:
    """Say what is installed, what it runs on, and what is missing; ends with code 1 if crossfill cannot work."""
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    typer.echo(f"crossfill {metadata.version('crossfill')}, Python {platform.python_version()}, {system}")
    missing: list[str] = []
    for extra, wanted in packages().items():
        misfits = [package for package in wanted if not _fits(package)]
        mark = "✓" if not misfits else "–" if extra else "✗"
        typer.echo(f"{mark} {extra or 'needed'}: {', '.join(map(_shown, wanted))}")
        if extra and misfits:
            typer.echo(f"    pip install 'crossfill[{extra}]'")
        missing += [f"'{package.name}{package.specifier}'" for package in misfits if not extra]
    if missing:
        typer.echo(f"missing: pip install {' '.join(missing)}, in the environment of {sys.executable}")
        raise typer.Exit(1)
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    devices = [f"{accelerator}:{i}" for i in range(torch.accelerator.device_count())] if accelerator else []
    typer.echo(f"devices: {', '.join([*devices, f'cpu: {torch.get_num_threads()} threads'])}")
    typer.echo("nothing that crossfill needs is missing")


def packages() -> "dict[str, list[Requirement]]":
    """List the dependencies of crossfill, under an empty name, and of each of its extras for users."""
    from packaging.requirements import Requirement

    extras = metadata.metadata("crossfill").get_all("Provides-Extra") or []
    wanted: dict[str, list[Requirement]] = {}
    for package in map(Requirement, metadata.requires("crossfill") or []):
        for extra in ["", *(extra for extra in extras if extra not in ("dev", "docs"))]:
            if package.marker is None or package.marker.evaluate({"extra": extra}):
                wanted.setdefault(extra, []).append(package)
                break
    return wanted


def _fits(package: "Requirement") -> bool:
    version = _version(package.name)
    return version is not None and package.specifier.contains(version, prereleases=True)


def _shown(package: "Requirement") -> str:
    wanted = "" if _fits(package) else f" (wanted {package.specifier})"
    return f"{package.name} {_version(package.name) or 'missing'}{wanted}"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
