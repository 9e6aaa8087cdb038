"""Downloads against a local server with every fault we could think of: nothing half-written is taken for whole."""

import errno
import hashlib
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data import download as module
from crossfill.data import sources
from crossfill.data.download import ATTEMPTS, download
from crossfill.errors import DataError
from tests.data.folders import conllu, tar

CONTENT = bytes(range(256)) * 4096


@dataclass
class Site:
    """A file on a server, and how the server misbehaves."""

    content: bytes = CONTENT
    cut_after: int | None = None
    """Bytes of each answer after which the connection is cut."""
    cuts: int = 0
    """Answers that are cut; the ones after them are whole."""
    ranges: bool = True
    etag: str | None = '"v1"'
    length: bool = True
    status: int | None = None
    wrong_range: bool = False
    asked: list[str | None] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.asked.append(wanted)
            if site.status:
                self.send_error(site.status)
                return
            start = 0
            if wanted and site.ranges and self.headers.get("If-Range") == site.etag:
                start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # pyright: ignore
                if start >= len(site.content):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(site.content)}")
                    self.end_headers()
                    return
                self.send_response(206)
                told = start + 1 if site.wrong_range else start
                self.send_header("Content-Range", f"bytes {told}-{len(site.content) - 1}/{len(site.content)}")
            else:
                self.send_response(200)
            body = site.content[start:]
            if site.length:
                self.send_header("Content-Length", str(len(body)))
            if site.etag:
                self.send_header("ETag", site.etag)
            self.end_headers()
            if site.cut_after is not None and len(site.asked) <= site.cuts:
                body = body[: site.cut_after]
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}/corpus.tgz"
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new" / "corpus.tgz"


def test_a_whole_file_with_progress(site: Site, target: Path):
    seen: list[tuple[int, int | None]] = []
    download(site.url, target, progress=lambda done, total: seen.append((done, total)))
    assert target.read_bytes() == CONTENT
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [p.name for p in target.parent.iterdir()] == ["corpus.tgz"]


def test_a_cut_connection_is_resumed_where_it_broke(site: Site, target: Path):
    site.cut_after, site.cuts = 300_000, 3
    download(site.url, target, pause=0.0)
    assert target.read_bytes() == CONTENT
    assert site.asked == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]


def test_a_broken_download_goes_on_in_the_next_run(site: Site, target: Path):
    site.cut_after, site.cuts = 100_000, ATTEMPTS
    with pytest.raises(DataError, match=r"cut 5 times, now at 500,000 bytes .* run the same command again to go on"):
        download(site.url, target, pause=0.0)
    assert not target.exists()
    download(site.url, target, pause=0.0)
    assert target.read_bytes() == CONTENT
    assert site.asked[-1] == "bytes=500000-"


def test_a_file_that_changed_in_between_comes_whole(site: Site, target: Path):
    site.cut_after, site.cuts = 100_000, ATTEMPTS
    with pytest.raises(DataError):
        download(site.url, target, pause=0.0)
    site.content, site.etag = b"new" * 200_000, '"v2"'
    download(site.url, target, pause=0.0)
    assert target.read_bytes() == b"new" * 200_000


@pytest.mark.parametrize("etag", ['"v1"', 'W/"v1"', None])
def test_a_server_without_ranges_sends_all_again(site: Site, target: Path, etag: str | None):
    site.ranges, site.etag, site.cut_after, site.cuts = False, etag, 100_000, 2
    download(site.url, target, pause=0.0)
    assert target.read_bytes() == CONTENT


def test_a_wrong_range_is_not_glued_on(site: Site, target: Path):
    site.cut_after, site.cuts, site.wrong_range = 100_000, 1, True
    download(site.url, target, pause=0.0)
    assert target.read_bytes() == CONTENT
    assert site.asked == [None, "bytes=100000-", None]


def test_a_part_that_is_longer_than_the_file_is_thrown_away(site: Site, target: Path):
    target.parent.mkdir()
    (target.parent / "corpus.tgz.part").write_bytes(CONTENT + b"more")
    (target.parent / "corpus.tgz.part.etag").write_text('"v1"')
    download(site.url, target, pause=0.0)
    assert target.read_bytes() == CONTENT


def test_a_part_that_is_whole_needs_only_its_name(site: Site, target: Path):
    target.parent.mkdir()
    (target.parent / "corpus.tgz.part").write_bytes(CONTENT)
    (target.parent / "corpus.tgz.part.etag").write_text('"v1"')
    download(site.url, target)
    assert target.read_bytes() == CONTENT
    assert len(site.asked) == 1
    assert [p.name for p in target.parent.iterdir()] == ["corpus.tgz"]


def test_a_part_of_unknown_origin_is_not_continued(site: Site, target: Path):
    target.parent.mkdir()
    (target.parent / "corpus.tgz.part").write_bytes(b"x" * 1000)
    download(site.url, target)
    assert target.read_bytes() == CONTENT
    assert site.asked == [None]


def test_checksums_are_checked_where_the_server_gives_them(site: Site, target: Path):
    site.etag = f'"{hashlib.md5(CONTENT).hexdigest()}"'
    download(site.url, target, etag_is_md5=True)
    assert target.read_bytes() == CONTENT
    target.unlink()
    site.etag = f'"{"0" * 32}"'
    with pytest.raises(
        DataError, match=r"expected MD5 0{32}, got [0-9a-f]{32}; the damaged file was removed, run again"
    ):
        download(site.url, target, etag_is_md5=True)
    assert list(target.parent.iterdir()) == []


def test_a_disk_that_is_too_small_is_noticed_before_and_while_writing(
    site: Site, target: Path, monkeypatch: pytest.MonkeyPatch
):
    usage = shutil.disk_usage("/")
    told = r"the disk is full \(needs 1,048,576 bytes, 1,000 are free\); make room and run again"
    with monkeypatch.context() as patched:
        patched.setattr(module.shutil, "disk_usage", lambda path: usage._replace(free=1000))
        with pytest.raises(DataError, match=told):
            download(site.url, target)

    def full(done: int, total: int | None) -> None:
        if done > 300_000:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DataError, match=r"the disk is full \(No space left on device\)"):
        download(site.url, target, progress=full)
    assert not target.exists()
    download(site.url, target)
    assert target.read_bytes() == CONTENT
    assert site.asked[-1] == "bytes=524288-"


def test_errors_say_what_to_do(site: Site, target: Path):
    site.status = 404
    with pytest.raises(DataError, match="got HTTP 404 Not Found; it may have moved: give its new place with --url"):
        download(site.url, target)
    site.status = 503
    with pytest.raises(DataError, match="got HTTP 503 Service Unavailable; try again later"):
        download(site.url, target)
    with pytest.raises(DataError, match=r"could not be reached .*; are you online\?"):
        download("http://127.0.0.1:1/x", target)


def test_the_command_makes_a_folder_that_the_grid_command_shows(site: Site, tmp_path: Path):
    site.content = tar({"v/UD_Wolof-WTF/wo_wtf-ud-train.conllu": conllu([("moku", "NOUN")])})
    out = str(tmp_path / "data")
    fetched = CliRunner().invoke(app, ["data", "fetch", "ud", "--url", site.url, "--out", out, "--language", "wo"])
    assert fetched.exit_code == 0, fetched.output
    assert f"{out}/ud: ready; each treebank's own licence is in its LICENSE.txt" in fetched.output
    assert "Wolof" in CliRunner().invoke(app, ["grid", out]).output


@pytest.mark.parametrize("kept", [True, False])
def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused(
    kept: bool, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sources, "_ALLOWANCE", 10_000)
    name = "v/UD_Wolof-WTF/wo_wtf-ud-train.conllu" if kept else "v/UD_Wolof-WTF/zeros"
    site.content = tar({name: "0" * 10**6, "v/UD_X-Y/wo_y-ud-test.conllu": conllu([("moku", "NOUN")])})
    assert len(site.content) < 10_000
    with pytest.raises(DataError, match="do not trust it"):
        sources.fetch(sources.ud(), tmp_path / "data", url=site.url)
    assert not list((tmp_path / "data").glob("*ud*"))


def test_an_archive_of_too_many_files_is_refused(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "_MOST_FILES", 3)
    site.content = tar({f"v/UD_X-Y/wo_y{i}-ud-test.conllu": conllu([("moku", "NOUN")]) for i in range(5)})
    with pytest.raises(DataError, match="or 3 files; do not trust it"):
        sources.fetch(sources.ud(), tmp_path / "data", url=site.url)
