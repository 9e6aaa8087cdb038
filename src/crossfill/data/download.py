"""Download a file over HTTP: resumable, checked, and moved into place only when complete.

The standard library's urllib suffices: one streamed GET with a Range header, redirects and proxies included.
"""

import errno
import hashlib
import http.client
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from crossfill.errors import DataError

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and their total number, none if the server does not tell it."""


def silent(done: int, total: int | None) -> None:
    """Show no progress."""


ATTEMPTS = 5
_CHUNK = 1 << 18
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


def download(
    url: str,
    target: Path,
    *,
    etag_is_md5: bool = False,
    progress: Progress = silent,
    pause: float = 1.0,
) -> None:
    """Fetch `url` into `target`, resuming an interrupted download in `target.part` where the server supports it.

    `etag_is_md5` says that the server's entity tag is the MD5 of the file, as those of DSpace and S3 are; the file is
    then checked against it. The first retry waits `pause` seconds, each further one twice as long as the last.
    """
    part, validator = _beside(target, ".part"), _beside(target, ".part.etag")
    target.parent.mkdir(parents=True, exist_ok=True)
    tag = ""
    for attempt in range(ATTEMPTS):
        try:
            tag = _fetch(url, part, validator, progress)
            break
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            if attempt == ATTEMPTS - 1:
                done = part.stat().st_size if part.exists() else 0
                raise DataError(
                    f"{url}: the connection was cut {ATTEMPTS} times, now at {done:,} bytes "
                    f"({error or type(error).__name__}); run the same command again to go on from there"
                ) from None
            time.sleep(pause * 2**attempt)
        except OSError as error:
            raise DataError(_explained(url, target, error)) from None
    expected = _MD5.fullmatch(tag) if etag_is_md5 else None
    if expected and (found := _md5(part)) != expected[1]:
        part.unlink()
        validator.unlink(missing_ok=True)
        raise DataError(f"{url}: expected MD5 {expected[1]}, got {found}; the damaged file was removed, run again")
    part.replace(target)
    validator.unlink(missing_ok=True)


def _fetch(url: str, part: Path, validator: Path, progress: Progress) -> str:
    """Make one attempt: append the missing bytes to `part`, and return the entity tag."""
    tag = validator.read_text(encoding="utf-8") if part.exists() and validator.exists() else ""
    done = part.stat().st_size if tag else 0
    headers = {"Accept-Encoding": "identity", "User-Agent": "crossfill"}
    if done:
        # If-Range: if the file has changed since, the server sends all of it, not a tail that does not fit
        headers |= {"Range": f"bytes={done}-", "If-Range": tag}
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60)  # noqa: S310 - checked by `fetch`
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416:
            raise
        if error.headers.get("Content-Range") == f"bytes */{done}":  # already complete, but not renamed yet
            return tag
        part.unlink()
        raise ConnectionError("the server refused the range") from None
    with response:
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        if response.status == 206 and not resumed:
            part.unlink(missing_ok=True)
            raise ConnectionError("the server sent another range than was asked for")
        done = done if resumed else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length and length.isdigit() else None
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
        if total is not None and total - done > (free := shutil.disk_usage(part.parent).free):
            raise OSError(errno.ENOSPC, f"needs {total - done:,} bytes, {free:,} are free")
        with part.open("ab" if resumed else "wb") as file:
            # a weak tag does not identify the exact bytes, so such a download is not resumed
            validator.write_text("" if tag.startswith("W/") else tag, encoding="utf-8")
            progress(done, total)
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done, total)
            file.flush()
            os.fsync(file.fileno())
    if total is not None and done < total:
        raise ConnectionError(f"{done:,} of {total:,} bytes")
    return tag


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(target.name + suffix)


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _explained(url: str, target: Path, error: OSError) -> str:
    if isinstance(error, urllib.error.HTTPError):
        remedy = "try again later" if error.code >= 500 else "it may have moved: give its new place with --url"
        return f"{url}: expected the file, got HTTP {error.code} {error.reason}; {remedy}"
    if isinstance(error, urllib.error.URLError):
        return f"{url}: could not be reached ({error.reason}); are you online? Behind a proxy, set https_proxy"
    if error.errno == errno.ENOSPC:
        return f"{target.parent}: the disk is full ({error.strerror}); make room and run again to go on"
    return f"{url}: could not be fetched into {target}; {error.strerror or error}; run again to go on"
