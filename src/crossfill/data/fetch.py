"""Official corpora: where to download them, and how to unpack their archives into a data folder."""

import gzip
import http.client
import re
import secrets
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from crossfill.data.codes import find_language
from crossfill.errors import DataError, unknown
from crossfill.files import replacing

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and their total number, none if the server does not say it."""
_CHUNK = 1 << 18
_SECONDS = 60  # without an answer
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
class OfficialCorpus:
    """A corpus that can be downloaded: its archive, and how to unpack it."""

    name: str
    url: str
    unpack: Callable[[Path, Path, Collection[str]], int]
    """Unpacks the files of an archive for these languages (all if none are given) into a folder; counts them."""
    licence: str


def ud(release: str = PAPER_RELEASE) -> OfficialCorpus:
    """Universal Dependencies, a whole release, from LINDAT; each treebank has its own licence."""
    if release not in UD_RELEASES:
        raise DataError(unknown("UD release", release, UD_RELEASES))
    return OfficialCorpus(
        "ud",
        f"{_LINDAT}/{UD_RELEASES[release]}/ud-treebanks-v{release}.tgz",
        _unpack_treebanks,
        "each treebank's own licence is in its LICENSE.txt",
    )


def wikiann() -> OfficialCorpus:
    """WikiANN (Pan et al. 2017) in the balanced splits of Rahimi et al. 2019: one file with an archive per language."""
    return OfficialCorpus(
        "wikiann", _WIKIANN, _unpack_wikiann, "derived from Wikipedia, CC BY-SA; cite Pan et al. 2017"
    )


SOURCES: dict[str, Callable[[], OfficialCorpus]] = {"ud": ud, "wikiann": wikiann}


def no_progress(done: int, total: int | None) -> None:
    """Show nothing."""


def fetch(
    source: OfficialCorpus, out: Path, languages: Collection[str] = (), url: str = "", progress: Progress = no_progress
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
        download(address, archive, progress)
    _unpack(source, archive, target, languages)
    archive.unlink()
    if not any(archive.parent.iterdir()):
        archive.parent.rmdir()
    return target


def download(url: str, target: Path, progress: Progress = no_progress) -> None:
    """Download a file, which appears only when complete."""
    request = urllib.request.Request(url, headers={"User-Agent": "crossfill"})  # noqa: S310 - checked by `fetch`
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response, replacing(target) as file:  # noqa: S310
            length = response.headers.get("Content-Length", "")
            done, total = 0, int(length) if length.isdigit() else None
            progress(done, total)
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done, total)
            if total is not None and done < total:
                raise ConnectionError(f"{done:,} of {total:,} bytes")
    except urllib.error.HTTPError as error:
        error.close()
        remedy = "try again later" if error.code >= 500 else "it may have moved: give its new place with --url"
        raise DataError(f"{url}: expected the file, got HTTP {error.code} {error.reason}; {remedy}") from None
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise DataError(f"{url}: the connection was cut ({error or type(error).__name__}); run again") from None
    except urllib.error.URLError as error:
        raise DataError(
            f"{url}: could not be reached ({error.reason}); are you online? Behind a proxy, set https_proxy"
        ) from None
    except OSError as error:
        raise DataError(f"{url}: could not be written to {target}; {error.strerror or error}; run again") from None


def _unpack(source: OfficialCorpus, archive: Path, target: Path, languages: Collection[str]) -> None:
    """Unpack into a temporary folder, then rename it, so that `target` is always complete."""
    work = target.parent / f".{source.name}.{secrets.token_hex(4)}"
    work.mkdir()
    try:
        if not source.unpack(archive, work, languages):
            asked = f" for {', '.join(sorted(languages))}" if languages else ""
            raise DataError(f"{archive}: expected corpora of {source.name}{asked}, got none; check the archive")
        work.replace(target)
    except tarfile.FilterError as error:
        raise DataError(
            f"{archive}: expected files inside the archive's folder, got one outside ({error}); do not trust it"
        ) from None
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error) as error:
        archive.unlink()
        raise DataError(f"{archive}: expected a whole archive; {error}; it was removed, run again") from None
    except OSError as error:
        raise DataError(f"{target}: could not be unpacked; {error.strerror or error}; fix this and run again") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _unpack_treebanks(archive: Path, folder: Path, languages: Collection[str]) -> int:
    """Unpack files such as `UD_Wolof-WTF/wo_wtf-ud-train.conllu`, and the licences of these treebanks."""
    n_files = 0
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            place = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            code = re.match(r"([a-z]{2,3})_\w+-ud-.*\.conllu$", place.name)
            wanted = code and (not languages or find_language(code[1]) in languages)
            if member.isfile() and (wanted or place.name.startswith("LICENSE")):
                tar.extract(member.replace(name=str(place)), folder, filter="data")
                n_files += bool(wanted)
    for treebank in folder.iterdir():  # of which only the licence is here
        if not any(treebank.glob("*.conllu")):
            shutil.rmtree(treebank)
    return n_files


def _unpack_wikiann(archive: Path, folder: Path, languages: Collection[str]) -> int:
    """Unpack the files `train`, `dev`, `test` and `extra` inside archives such as `wo.tar.gz`."""
    n_files = 0
    with zipfile.ZipFile(archive) as outer:
        for name in sorted(outer.namelist()):
            code = PurePosixPath(name).name.removesuffix(".tar.gz")
            language = find_language(code) if name.endswith(".tar.gz") else None
            if language is None or (languages and language not in languages):
                continue
            with outer.open(name) as packed, tarfile.open(fileobj=packed, mode="r:gz") as tar:
                for member in tar:
                    split = PurePosixPath(member.name).name
                    if member.isfile() and split in ("train", "dev", "test", "extra"):
                        tar.extract(member.replace(name=f"{code}/{split}"), folder, filter="data")
                        n_files += 1
    return n_files
