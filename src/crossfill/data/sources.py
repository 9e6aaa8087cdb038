"""Official corpora: where to download them, and how to unpack their archives into a data folder."""

import gzip
import re
import secrets
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO

from crossfill.data.codes import find_language
from crossfill.data.download import Progress, download, silent
from crossfill.errors import DataError, unknown

Member = tuple[PurePosixPath, IO[bytes]]

_MOST_FILES = 100_000
_EXPANSION, _ALLOWANCE = 50, 2**27
"""An archive may unpack to this many times its size, and so many bytes more; corpora compress five to tenfold."""
_MOST_LICENCE = 2**20

_LINDAT = "https://lindat.mff.cuni.cz/repository/server/api/core/bitstreams/handle/11234"
UD_RELEASES = {  # release: its handle at LINDAT
    "2.4": "1-2988",
    "2.5": "1-3105",
    "2.7": "1-3424",
    "2.8": "1-3687",
    "2.9": "1-4611",
    "2.10": "1-4758",
    "2.16": "1-5901",
    "2.17": "1-6036",
    "2.18": "1-6149",
}
PAPER_RELEASE = "2.4"
_WIKIANN = "https://s3.amazonaws.com/datasets.huggingface.co/wikiann/1.1.0/panx_dataset.zip"


@dataclass(frozen=True)
class Source:
    """A corpus that can be downloaded: its archive, and which files of the archive to keep."""

    name: str
    url: str
    members: Callable[[Path, Collection[str]], Iterator[Member]]
    """Yields the files of the archive to keep for these languages (all if none are given), each with its path."""
    licence: str


def ud(release: str = PAPER_RELEASE) -> Source:
    """Universal Dependencies, a whole release, from LINDAT; each treebank has its own licence."""
    if release not in UD_RELEASES:
        raise DataError(unknown("UD release", release, UD_RELEASES))
    return Source(
        "ud",
        f"{_LINDAT}/{UD_RELEASES[release]}/ud-treebanks-v{release}.tgz",
        _treebanks,
        "each treebank's own licence is in its LICENSE.txt",
    )


def wikiann() -> Source:
    """WikiANN (Pan et al. 2017) in the balanced splits of Rahimi et al. 2019: one file with an archive per language."""
    return Source("wikiann", _WIKIANN, _per_language, "derived from Wikipedia, CC BY-SA; cite Pan et al. 2017")


SOURCES: dict[str, Callable[[], Source]] = {"ud": ud, "wikiann": wikiann}


def fetch(
    source: Source,
    out: Path,
    languages: Collection[str] = (),
    url: str = "",
    progress: Progress = silent,
    pause: float = 1.0,
) -> Path:
    """Download a source into `out/<name>`, which appears only when complete; the archive is then removed."""
    target = out / source.name
    if target.exists():
        raise DataError(f"{target}: is already there; remove it to fetch it again")
    address = url or source.url
    if not re.match(r"https?://", address):
        raise DataError(f"expected a web address, http:// or https://; got '{address}'")
    archive = out / ".downloads" / address.rpartition("/")[2].partition("?")[0]
    if not archive.exists():
        download(address, archive, etag_is_md5=not url, progress=progress, pause=pause)
    _unpack(source, archive, target, languages)
    archive.unlink()
    if not any(archive.parent.iterdir()):
        archive.parent.rmdir()
    return target


def _unpack(source: Source, archive: Path, target: Path, languages: Collection[str]) -> None:
    """Unpack into a temporary folder, then rename it, so that `target` is always complete."""
    work = target.parent / f".{source.name}.{secrets.token_hex(4)}"
    work.mkdir()
    try:
        n_files = 0
        room = _EXPANSION * archive.stat().st_size + _ALLOWANCE
        for place, content in source.members(archive, languages):
            if place.is_absolute() or ".." in place.parts or not place.parts:
                raise DataError(
                    f"{archive}: expected files inside the archive's folder, got '{place}'; do not trust it"
                )
            path = work / place
            path.parent.mkdir(parents=True, exist_ok=True)
            room = _copy(content, path, room)
            n_files += 1
            if room < 0 or n_files > _MOST_FILES:
                raise DataError(
                    f"{archive}: expected an archive of corpora, got one that unpacks to more than {_EXPANSION} times "
                    f"its size or {_MOST_FILES:,} files; do not trust it"
                )
        if not n_files:
            asked = f" for {', '.join(sorted(languages))}" if languages else ""
            raise DataError(f"{archive}: expected corpora of {source.name}{asked}, got none; check the archive")
        work.replace(target)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error) as error:
        archive.unlink()
        raise DataError(f"{archive}: expected a whole archive; {error}; it was removed, run again") from None
    except OSError as error:
        raise DataError(
            f"{target}: could not be unpacked; {error.strerror or error}; mend that and run again"
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _copy(content: IO[bytes], path: Path, room: int) -> int:
    """Write a file of an archive, and return how many bytes there is still room for; it stops below 0."""
    with path.open("wb") as file:
        while room >= 0 and (block := content.read(min(room + 1, 1 << 20))):
            file.write(block)
            room -= len(block)
    return room


def _members(tar: tarfile.TarFile, most: int) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, those that are not kept included: they too have to be unpacked to get past them."""
    for n, member in enumerate(tar):
        most -= member.size
        if most < 0 or n >= 10 * _MOST_FILES:
            raise DataError("expected an archive of corpora, got one that unpacks to far more; do not trust it")
        yield member


def _treebanks(archive: Path, languages: Collection[str]) -> Iterator[Member]:
    """Files such as `UD_Wolof-WTF/wo_wtf-ud-train.conllu`, and the licences of these treebanks."""
    licences: dict[PurePosixPath, tuple[PurePosixPath, bytes]] = {}
    kept: set[PurePosixPath] = set()
    with tarfile.open(archive, "r:gz") as tar:
        for member in _members(tar, _EXPANSION * archive.stat().st_size + _ALLOWANCE):
            place = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            if not member.isfile():
                continue
            content = tar.extractfile(member)
            code = re.match(r"([a-z]{2,3})_\w+-ud-.*\.conllu$", place.name)
            if content and code and (not languages or find_language(code[1]) in languages):
                kept.add(place.parent)
                yield place, content
            elif content and place.name.startswith("LICENSE"):
                licences[place.parent] = place, content.read(_MOST_LICENCE)
        for folder in sorted(kept & set(licences)):
            place, text = licences[folder]
            yield place, BytesIO(text)


def _per_language(archive: Path, languages: Collection[str]) -> Iterator[Member]:
    """The files `train`, `dev`, `test` and `extra` inside archives such as `wo.tar.gz`."""
    with zipfile.ZipFile(archive) as outer:
        for name in sorted(outer.namelist()):
            code = PurePosixPath(name).name.removesuffix(".tar.gz")
            language = find_language(code) if name.endswith(".tar.gz") else None
            if language is None or (languages and language not in languages):
                continue
            with outer.open(name) as packed, tarfile.open(fileobj=packed, mode="r:gz") as tar:
                for member in _members(tar, _EXPANSION * archive.stat().st_size + _ALLOWANCE):
                    content = tar.extractfile(member) if member.isfile() else None
                    if content and PurePosixPath(member.name).name in ("train", "dev", "test", "extra"):
                        yield PurePosixPath(code, PurePosixPath(member.name).name), content
