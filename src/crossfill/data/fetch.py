"""Official corpora: where to download them, and how to unpack their archives into a data folder."""

import http.client
import re
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from crossfill.data.codes import find_language
from crossfill.errors import DataError, unknown

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and their total number, none if the server does not say it."""
_CHUNK = 1 << 18
_SECONDS = 60  # without an answer
_LINDAT = "https://lindat.mff.cuni.cz/repository/server/api/core/bitstreams/handle/11234"
UD_RELEASES = dict(  # release: its handle at LINDAT
    re.findall(
        r"(\S+)=(\S+)",
        "2.4=1-2988 2.5=1-3105 2.7=1-3424 2.8=1-3687 2.9=1-4611 2.10=1-4758 2.16=1-5901 2.17=1-6036 2.18=1-6149",
    )
)
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
    url = f"{_LINDAT}/{UD_RELEASES[release]}/ud-treebanks-v{release}.tgz"
    return OfficialCorpus("ud", url, _unpack_treebanks, "each treebank's own licence is in its LICENSE.txt")


def wikiann() -> OfficialCorpus:
    """WikiANN (Pan et al. 2017) in the balanced splits of Rahimi et al. 2019: one file with an archive per language."""
    licence = "derived from Wikipedia, CC BY-SA; cite Pan et al. 2017"
    return OfficialCorpus("wikiann", _WIKIANN, _unpack_wikiann, licence)


SOURCES: dict[str, Callable[[], OfficialCorpus]] = {"ud": ud, "wikiann": wikiann}


def fetch(
    source: OfficialCorpus,
    out: Path,
    languages: Collection[str] = (),
    url: str = "",
    progress: Progress = lambda *_: None,
) -> Path:
    """Download a source and unpack it into `out/<name>`, which appears only when complete."""
    target, address = out / source.name, url or source.url
    if target.exists():
        raise DataError(f"{target}: is already there; remove it to fetch it again")
    if not re.match(r"https?://", address):
        raise DataError(f"expected a web address, http:// or https://; got '{address}'")
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out, prefix=f".{source.name}-") as folder:
        archive, work = Path(folder, "archive"), Path(folder, source.name)
        download(address, archive, progress)
        work.mkdir()
        try:
            n_files = source.unpack(archive, work, languages)
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, OSError) as error:
            raise DataError(f"{address}: expected an archive that can be unpacked; {error}; run again") from None
        if not n_files:
            asked = f" for {', '.join(sorted(languages))}" if languages else ""
            raise DataError(f"{address}: expected corpora of {source.name}{asked}, got none; check the archive")
        work.replace(target)
    return target


def download(url: str, target: Path, progress: Progress) -> None:
    """Download a file."""
    request = urllib.request.Request(url, headers={"User-Agent": "crossfill"})  # noqa: S310 - checked by `fetch`
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response, target.open("wb") as file:  # noqa: S310
            length = response.headers.get("Content-Length", "")
            done, total = 0, int(length) if length.isdigit() else None
            progress(done, total)
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done, total)
            if total is not None and done < total:
                raise ConnectionError(f"cut after {done:,} of {total:,} bytes")
    except urllib.error.HTTPError as error:
        error.close()
        remedy = "try again later" if error.code >= 500 else "it may have moved: give its new place with --url"
        raise DataError(f"{url}: expected the file, got HTTP {error.code} {error.reason}; {remedy}") from None
    except (http.client.HTTPException, OSError) as error:
        raise DataError(
            f"{url}: could not be fetched ({getattr(error, 'reason', error)}); are you online? run again. Behind a "
            "proxy, set https_proxy"
        ) from None


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
