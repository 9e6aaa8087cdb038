"""Downloads against a local server, and archives into a data folder that `load_grid` reads, or into nothing at all."""

import errno
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data import fetch as module
from crossfill.data.fetch import UD_RELEASES, Progress, download, fetch, ud, wikiann
from crossfill.data.folder import load_grid
from crossfill.errors import DataError
from tests.data.folders import bio, conllu, tar, zipped

CONTENT = bytes(range(256)) * 4096


@dataclass
class Site:
    """A file on a server, and how the server misbehaves."""

    content: bytes = CONTENT
    cut_after: int | None = None
    """Bytes of each answer after which the connection is cut."""
    length: bool = True
    status: int | None = None
    url: str = ""


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if site.status:
                self.send_error(site.status)
                return
            self.send_response(200)
            if site.length:
                self.send_header("Content-Length", str(len(site.content)))
            self.end_headers()
            self.wfile.write(site.content[: site.cut_after])
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


@pytest.mark.parametrize("length", [True, False])
def test_a_whole_file_with_progress(site: Site, tmp_path: Path, length: bool):
    site.length, target = length, tmp_path / "corpus.tgz"
    seen: list[tuple[int, int | None]] = []
    download(site.url, target, progress=lambda done, total: seen.append((done, total)))
    assert target.read_bytes() == CONTENT
    total = len(CONTENT) if length else None
    assert (seen[0], seen[-1]) == ((0, total), (len(CONTENT), total))


def test_errors_say_what_to_do_and_leave_nothing(site: Site, tmp_path: Path):
    def fetched(address: str = site.url, progress: Progress = lambda done, total: None) -> None:
        fetch(ud(), tmp_path, url=address, progress=progress)

    def full(done: int, total: int | None) -> None:
        if done > 300_000:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DataError, match=r"could not be fetched \(.*No space left on device\)"):
        fetched(progress=full)
    site.cut_after = 300_000
    with pytest.raises(DataError, match=r"could not be fetched \(cut after 300,000 of 1,048,576 bytes\); .* run again"):
        fetched()
    site.status = 404
    with pytest.raises(DataError, match="got HTTP 404 Not Found; it may have moved: give its new place with --url"):
        fetched()
    site.status = 503
    with pytest.raises(DataError, match="got HTTP 503 Service Unavailable; try again later"):
        fetched()
    with pytest.raises(DataError, match=r"could not be fetched \(.*\); are you online\?"):
        fetched("http://127.0.0.1:1/x")
    assert list(tmp_path.iterdir()) == []


def test_the_command_makes_a_folder_that_the_grid_command_shows(site: Site, tmp_path: Path):
    site.content = tar({"v/UD_Wolof-WTF/wo_wtf-ud-train.conllu": conllu([("moku", "NOUN")])})
    out = str(tmp_path / "data")
    fetched = CliRunner().invoke(app, ["data", "fetch", "ud", "--url", site.url, "--out", out, "--language", "wo"])
    assert fetched.exit_code == 0, fetched.output
    assert f"{out}/ud: ready; each treebank's own licence is in its LICENSE.txt" in fetched.output
    assert "Wolof" in CliRunner().invoke(app, ["grid", out]).output


POS = conllu([("moku", "NOUN"), ("erwa", "VERB")])
NER = bio([("wo:Dakar", "B-LOC"), ("wo:mooy", "O")])
TREEBANKS = {
    "ud-treebanks-v2.4/UD_Wolof-WTF/LICENSE.txt": "free",
    "ud-treebanks-v2.4/UD_Wolof-WTF/wo_wtf-ud-train.conllu": POS,
    "ud-treebanks-v2.4/UD_Wolof-WTF/README.md": "#",
    "ud-treebanks-v2.4/UD_Yoruba-YTB/yo_ytb-ud-test.conllu": POS,
    "ud-treebanks-v2.4/UD_Yoruba-YTB/LICENSE.txt": "free",
}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What downloads give, by the last part of the address."""
    answers: dict[str, bytes] = {}

    def download(url: str, target: Path, *_options: object) -> None:
        target.write_bytes(answers[url.rpartition("/")[2]])

    monkeypatch.setattr(module, "download", download)
    return answers


def test_both_sources_make_a_grid(tmp_path: Path, served: dict[str, bytes]):
    served["ud-treebanks-v2.4.tgz"] = tar(TREEBANKS)
    inner = tar({"train": NER, "dev": NER, "test": NER, "extra": NER, "README": "#"})
    served["panx_dataset.zip"] = zipped({"wo.tar.gz": inner, "zh-yue.tar.gz": inner, "notes.txt": b"x"})
    out = tmp_path / "data"
    assert fetch(ud(), out) == out / "ud"
    assert fetch(wikiann(), out) == out / "wikiann"
    found = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert found == [
        "ud/UD_Wolof-WTF/LICENSE.txt",
        "ud/UD_Wolof-WTF/wo_wtf-ud-train.conllu",
        "ud/UD_Yoruba-YTB/LICENSE.txt",
        "ud/UD_Yoruba-YTB/yo_ytb-ud-test.conllu",
        *(f"wikiann/{code}/{split}" for code in ("wo", "zh-yue") for split in ("dev", "extra", "test", "train")),
    ]
    assert [str(cell) for cell in load_grid(out).cells] == ["ner/wol", "ner/yue", "pos/wol", "pos/yor"]
    with pytest.raises(DataError, match="ud: is already there; remove it to fetch it again"):
        fetch(ud(), out)


def test_languages_can_be_chosen(tmp_path: Path, served: dict[str, bytes]):
    served["ud-treebanks-v2.4.tgz"] = tar(TREEBANKS)
    fetch(ud(), tmp_path, {"yor"})
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "LICENSE.txt",
        "yo_ytb-ud-test.conllu",
    ]
    served["panx_dataset.zip"] = zipped({"wo.tar.gz": tar({"train": NER})})
    with pytest.raises(DataError, match="expected corpora of wikiann for yor, got none"):
        fetch(wikiann(), tmp_path, {"yor"})


@pytest.mark.parametrize("name", ["x/../../wo_x-ud-dev.conllu", "x//etc/../../../wo_x-ud-dev.conllu"])
def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path, served: dict[str, bytes], name: str):
    served["ud-treebanks-v2.4.tgz"] = tar({**TREEBANKS, name: POS})
    with pytest.raises(DataError, match=r"expected an archive that can be unpacked; .* outside the destination"):
        fetch(ud(), tmp_path / "data")
    assert [path.name for path in tmp_path.rglob("*")] == ["data"]


def test_links_in_an_archive_are_left_out(tmp_path: Path, served: dict[str, bytes]):
    served["ud-treebanks-v2.4.tgz"] = tar(TREEBANKS, link="/etc/passwd")
    fetch(ud(), tmp_path)
    assert not (tmp_path / "ud" / "UD_X").exists()


def test_a_broken_archive_leaves_no_folder(tmp_path: Path, served: dict[str, bytes]):
    whole = tar({**TREEBANKS, "ud/UD_X-Y/xx": "".join(chr(33 + i * i % 90) for i in range(20_000))})
    for broken in (b"<html>not found</html>", b"", whole[: len(whole) // 2], whole[:200] + b"?" * 40 + whole[240:]):
        served["ud-treebanks-v2.4.tgz"] = broken
        with pytest.raises(DataError, match=r"expected an archive that can be unpacked; .*; run again"):
            fetch(ud(), tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_addresses(tmp_path: Path):
    for release in UD_RELEASES:
        assert ud(release).url.endswith(f"/11234/{UD_RELEASES[release]}/ud-treebanks-v{release}.tgz")
    with pytest.raises(DataError, match=r"unknown UD release '2\.44'; did you mean '2\.4'"):
        ud("2.44")
    with pytest.raises(DataError, match="expected a web address, http:// or https://; got 'file:///etc/passwd'"):
        fetch(ud(), tmp_path, url="file:///etc/passwd")
