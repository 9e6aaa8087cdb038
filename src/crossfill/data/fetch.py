"""Official corpora: where to download them, and how to unpack their archives into a data folder."""

import http.client
import json
import re
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from hashlib import sha1, sha256
from importlib.resources import files
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from crossfill.data.codes import find_language
from crossfill.data.reading import COLUMNS_FILE
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
NEWEST_RELEASE = "2.18"
_WIKIANN = "https://s3.amazonaws.com/datasets.huggingface.co/wikiann/1.1.0/panx_dataset.zip"
_REPOSITORIES = "https://codeload.github.com/{}/tar.gz/{}"


@dataclass(frozen=True)
class OfficialCorpus:
    """A corpus that can be downloaded: its archives, and how to unpack one."""

    name: str
    urls: Collection[str]
    unpack: Callable[[Path, Path, Collection[str]], None]
    """Unpacks the files of an archive for these languages (all if none are given) into a folder."""
    licence: str
    digest: str = ""
    """The hash of all its files (`digest_of`); empty where it is not known."""
    columns: str = ""
    """What `columns.txt` says about its files."""


def ud(release: str = NEWEST_RELEASE) -> OfficialCorpus:
    """Universal Dependencies, a whole release, from LINDAT; each treebank has its own licence."""
    if release not in UD_RELEASES:
        raise DataError(unknown("UD release", release, UD_RELEASES))
    url = f"{_LINDAT}/{UD_RELEASES[release]}/ud-treebanks-v{release}.tgz"
    return OfficialCorpus("ud", [url], _unpack_treebanks, "each treebank's own licence is in its LICENSE.txt")


def wikiann() -> OfficialCorpus:
    """WikiANN (Pan et al. 2017) in the balanced splits of Rahimi et al. 2019: one file with an archive per language."""
    licence = "derived from Wikipedia, CC BY-SA; cite Pan et al. 2017"
    return OfficialCorpus("wikiann", [_WIKIANN], _unpack_wikiann, licence)


def in_repositories(name: str) -> OfficialCorpus:
    """Make a corpus of `corpora.json`: files of GitHub repositories, each as it is at a commit."""
    values = json.loads(files("crossfill.data").joinpath("corpora.json").read_bytes())[name]
    urls = [_REPOSITORIES.format(repository, commit) for repository, commit in values["repositories"].items()]
    unpack = partial(_unpack_repository, re.compile(values["files"]), values["place"])
    return OfficialCorpus(name, urls, unpack, values["licence"], values["digest"], values.get("columns", ""))


SOURCES: dict[str, Callable[[], OfficialCorpus]] = {
    "ud": ud,
    "wikiann": wikiann,
    **{name: partial(in_repositories, name) for name in ("masakhaner", "masakhapos", "uner", "sib200")},
}


def fetch(
    source: OfficialCorpus,
    out: Path,
    languages: Collection[str] = (),
    url: str = "",
    progress: Progress = lambda *_: None,
) -> Path:
    """Download a source and unpack it into `out/<name>`, which appears only when complete."""
    target, addresses = out / source.name, [url] if url else source.urls
    if target.exists():
        raise DataError(f"{target}: is already there; remove it to fetch it again")
    if url and not re.match(r"https?://", url):
        raise DataError(f"expected a web address, http:// or https://; got '{url}'")
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out, prefix=f".{source.name}-") as folder:
        archive, work = Path(folder, "archive"), Path(folder, source.name)
        work.mkdir()
        for address in addresses:
            download(address, archive, progress)
            try:
                source.unpack(archive, work, languages)
            except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, OSError) as error:
                raise DataError(f"{address}: expected an archive that can be unpacked; {error}; run again") from None
        if source.digest and not url:
            if digest_of(work) != source.digest:
                raise DataError(f"{source.name}: expected the files that crossfill knows, got others; run again")
            for path in work.glob("*/*"):  # <task>/<language>
                if languages and find_language(path.name) not in languages:
                    shutil.rmtree(path)
        if not any(path.is_file() for path in work.rglob("*")):
            asked = f" for {', '.join(sorted(languages))}" if languages else ""
            raise DataError(f"{source.name}: expected corpora{asked}, got none; check the archive")
        if source.columns:
            (work / COLUMNS_FILE).write_text(source.columns, encoding="utf-8")
        work.replace(target)
    return target


def digest_of(folder: Path) -> str:
    """Hash the names and contents of all files in a folder, contents by their names in git."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    lines = []
    for path in paths:
        content = (folder / path).read_bytes()
        blob = sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
        lines.append(f"{blob.hexdigest()}  {path}\n")
    return sha256("".join(lines).encode()).hexdigest()


def download(url: str, target: Path, progress: Progress) -> None:
    """Download a file."""
    request = urllib.request.Request(url, headers={"User-Agent": "crossfill"})  # noqa: S310 - a web address: `fetch` sees to it
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
    except (http.client.HTTPException, OSError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        advice = "behind a proxy, set https_proxy; if it has moved, name its new place with --url"
        raise DataError(f"{url}: could not be fetched ({error}); are you online? run again; {advice}") from None


def _extract(tar: tarfile.TarFile, folder: Path, place: Callable[[PurePosixPath], str | None]) -> None:
    """Unpack the files that have a place in the folder, by their path in the archive."""
    for member in tar:
        if member.isfile() and (name := place(PurePosixPath(member.name))):
            tar.extract(member.replace(name=name), folder, filter="data")


def _unpack_treebanks(archive: Path, folder: Path, languages: Collection[str]) -> None:
    """Unpack files such as `UD_Wolof-WTF/wo_wtf-ud-train.conllu`, and the licences of these treebanks."""

    def place(path: PurePosixPath) -> str | None:
        code = re.match(r"([a-z]{2,3})_\w+-ud-.*\.conllu$", path.name)
        wanted = code and (not languages or find_language(code[1]) in languages)
        return "/".join(path.parts[1:]) if wanted or path.name.startswith("LICENSE") else None

    with tarfile.open(archive, "r:gz") as tar:
        _extract(tar, folder, place)
    for treebank in folder.iterdir():  # of which only the licence is here
        if not any(treebank.glob("*.conllu")):
            shutil.rmtree(treebank)


def _unpack_repository(pattern: re.Pattern[str], place: str, archive: Path, folder: Path, _: Collection[str]) -> None:
    """Unpack the files whose names match, of all languages, as all are needed for the digest."""

    def place_of(path: PurePosixPath) -> str | None:
        wanted = pattern.fullmatch("/".join(path.parts[1:]))
        return place.format(**wanted.groupdict()) if wanted else None

    with tarfile.open(archive, "r:gz") as tar:
        _extract(tar, folder, place_of)


def _unpack_wikiann(archive: Path, folder: Path, languages: Collection[str]) -> None:
    """Unpack the files `train`, `dev`, `test` and `extra` inside archives such as `wo.tar.gz`."""

    def place(path: PurePosixPath) -> str | None:
        return path.name if path.name in ("train", "dev", "test", "extra") else None

    with zipfile.ZipFile(archive) as outer:
        for name in sorted(name for name in outer.namelist() if name.endswith(".tar.gz")):
            code = PurePosixPath(name).name.removesuffix(".tar.gz")
            language = find_language(code)
            if language is not None and (not languages or language in languages):
                with outer.open(name) as packed, tarfile.open(fileobj=packed, mode="r:gz") as tar:
                    _extract(tar, folder / code, place)
