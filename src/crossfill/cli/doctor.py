"""`crossfill doctor`: versions, devices, caches, and what is missing."""

import json
import os
import platform
import shutil
import sys
import textwrap
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

_FOR_DEVELOPERS = ("dev", "docs")


@dataclass(frozen=True)
class Package:
    """A dependency of crossfill or of one of its extras."""

    name: str
    wanted: str
    found: str | None
    extra: str = ""
    """The extra that needs it; empty if crossfill itself does."""

    @property
    def fits(self) -> bool:
        from packaging.specifiers import SpecifierSet

        return self.found is not None and SpecifierSet(self.wanted).contains(self.found, prereleases=True)


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False) -> None:
    """Say what is installed, what it runs on, and what is missing; ends with code 1 if crossfill cannot work."""
    found = packages()
    needed = [package for package in found if not package.extra]
    broken = [package for package in needed if not package.fits]
    about = {
        "crossfill": metadata.version("crossfill"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "devices": [] if any(package.name == "torch" for package in broken) else _devices(),
        "cache": _cache(),
        "hub": _hub(),
    }
    if as_json:
        listed = [asdict(package) | {"fits": package.fits} for package in found]
        typer.echo(json.dumps(about | {"packages": listed, "works": not broken}, indent=2))
    else:
        _show(about, found, broken)
    if broken:
        raise typer.Exit(1)


def packages() -> list[Package]:
    """The dependencies of crossfill and of its extras for users, from the installed package's metadata."""
    from packaging.requirements import Requirement

    found = []
    for text in metadata.requires("crossfill") or []:
        requirement = Requirement(text)
        extra = next((e for e in extras() if requirement.marker and requirement.marker.evaluate({"extra": e})), "")
        if not extra and requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue  # a dependency of a developer's extra, or of another system
        found.append(Package(requirement.name, str(requirement.specifier), _version(requirement.name), extra))
    return found


def extras() -> list[str]:
    """The extras for users."""
    return [e for e in metadata.metadata("crossfill").get_all("Provides-Extra") or [] if e not in _FOR_DEVELOPERS]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> list[str]:
    import torch

    n_threads = torch.get_num_threads()
    cpu = f"cpu: {n_threads} thread{'s' * (n_threads > 1)}"
    if not torch.accelerator.is_available():
        return [cpu]
    kind = torch.accelerator.current_accelerator()
    names = [f"{kind}:{i}" for i in range(torch.accelerator.device_count())]
    if kind is not None and kind.type == "cuda":
        names = [f"{name}: {torch.cuda.get_device_name(i)}" for i, name in enumerate(names)]
    return [*names, cpu]


def _cache() -> dict[str, Any]:
    from crossfill.files import default_cache

    folder = default_cache()
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return {
        "folder": str(folder),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "writable": os.access(there, os.W_OK),
        "free_bytes": shutil.disk_usage(there).free,
    }


def _hub() -> dict[str, Any]:
    """The folder and names of downloaded pretrained encoders; does not use the network."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    folder = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    names = sorted(path.name.removeprefix("models--").replace("--", "/") for path in folder.glob("models--*"))
    return {"folder": str(folder), "models": names}


def _show(about: dict[str, Any], found: list[Package], broken: list[Package]) -> None:
    cache, hub = about["cache"], about["hub"]
    typer.echo(f"crossfill {about['crossfill']}, Python {about['python']}, {about['system']}, {about['cores']} cores")
    typer.echo(f"devices: {', '.join(about['devices']) or 'unknown without torch'}")
    typer.echo(_wrapped("packages: " + ", ".join(f"{p.name} {p.found}" for p in found if not p.extra and p.found)))
    for package in broken:
        typer.echo(f"  ✗ {package.name}: expected {package.wanted}, found {package.found or 'none'}")
    typer.echo("extras:")
    for extra in extras():
        own = [package for package in found if package.extra == extra]
        ready = all(package.fits for package in own)
        parts = ", ".join(f"{p.name} {p.found or 'missing'}{'' if p.fits else f' (wanted {p.wanted})'}" for p in own)
        typer.echo(_wrapped(f"  {'✓' if ready else '–'} {extra}: {parts}"))
        if not ready:
            typer.echo(f"      pip install 'crossfill[{extra}]'")
    locked = "" if cache["writable"] else ", NOT WRITABLE: set CROSSFILL_CACHE to another folder"
    typer.echo(
        _wrapped(
            f"cache: {cache['folder']}: {cache['files']} files, {cache['bytes'] / 1e6:,.0f} MB; "
            f"{cache['free_bytes'] / 1e9:,.0f} GB free{locked}"
        )
    )
    models = "".join(f", {name}" for name in hub["models"])
    typer.echo(_wrapped(f"encoders at hand: compact{models} ({hub['folder']})"))
    if broken:
        names = " ".join(f"'{package.name}{package.wanted}'" for package in broken)
        typer.echo(f"missing: pip install {names}, in the environment of {sys.executable}")
    else:
        typer.echo("nothing that crossfill needs is missing")


def _wrapped(text: str) -> str:
    """Wrap a line at spaces to the width of the terminal; continuation lines are indented."""
    width = shutil.get_terminal_size().columns
    return textwrap.fill(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
