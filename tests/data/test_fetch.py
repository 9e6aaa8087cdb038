"""Downloads against a local server, and archives into a data folder that `load_grid` reads, or into nothing at all."""

import errno
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data import fetch as module
from crossfill.data.codes import find_language
from crossfill.data.fetch import SOURCES, UD_RELEASES, Progress, digest_of, download, fetch, ud, wikiann
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
        fetch(ud("2.4"), tmp_path, url=address, progress=progress)

    def full(done: int, total: int | None) -> None:
        if done > 300_000:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DataError, match=r"could not be fetched \(.*No space left on device\)"):
        fetched(progress=full)
    site.cut_after = 300_000
    with pytest.raises(DataError, match=r"could not be fetched \(cut after 300,000 of 1,048,576 bytes\); .* run again"):
        fetched()
    site.status = 404
    with pytest.raises(DataError, match=r"could not be fetched \(.*404.*Not Found\).* name its new place with --url"):
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
    assert fetch(ud("2.4"), out) == out / "ud"
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
        fetch(ud("2.4"), out)


def test_languages_can_be_chosen(tmp_path: Path, served: dict[str, bytes]):
    served["ud-treebanks-v2.4.tgz"] = tar(TREEBANKS)
    fetch(ud("2.4"), tmp_path, {"yor"})
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "LICENSE.txt",
        "yo_ytb-ud-test.conllu",
    ]
    served["panx_dataset.zip"] = zipped({"wo.tar.gz": tar({"train": NER})})
    with pytest.raises(DataError, match="wikiann: expected corpora for yor, got none"):
        fetch(wikiann(), tmp_path, {"yor"})


@pytest.mark.parametrize("name", ["x/../../wo_x-ud-dev.conllu", "x//etc/../../../wo_x-ud-dev.conllu"])
def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path, served: dict[str, bytes], name: str):
    served["ud-treebanks-v2.4.tgz"] = tar({**TREEBANKS, name: POS})
    with pytest.raises(DataError, match=r"expected an archive that can be unpacked; .* outside the destination"):
        fetch(ud("2.4"), tmp_path / "data")
    assert [path.name for path in tmp_path.rglob("*")] == ["data"]


def test_links_in_an_archive_are_left_out(tmp_path: Path, served: dict[str, bytes]):
    served["ud-treebanks-v2.4.tgz"] = tar(TREEBANKS, link="/etc/passwd")
    fetch(ud("2.4"), tmp_path)
    assert not (tmp_path / "ud" / "UD_X").exists()


def test_a_broken_archive_leaves_no_folder(tmp_path: Path, served: dict[str, bytes]):
    whole = tar({**TREEBANKS, "ud/UD_X-Y/xx": "".join(chr(33 + i * i % 90) for i in range(20_000))})
    for broken in (b"<html>not found</html>", b"", whole[: len(whole) // 2], whole[:200] + b"?" * 40 + whole[240:]):
        served["ud-treebanks-v2.4.tgz"] = broken
        with pytest.raises(DataError, match=r"expected an archive that can be unpacked; .*; run again"):
            fetch(ud("2.4"), tmp_path)
        assert list(tmp_path.iterdir()) == []


LISTINGS = json.loads((Path(__file__).parent / "listings.json").read_bytes())
"""The files of each corpus at the commits of corpora.json, as they are placed, with their names in git."""


@pytest.mark.parametrize("name", LISTINGS)
def test_recorded_listings_have_the_digests_that_are_asked_for(name: str):
    lines = "".join(f"{blob}  {path}\n" for path, blob in sorted(LISTINGS[name].items()))
    source = SOURCES[name]()
    assert sha256(lines.encode()).hexdigest() == source.digest
    assert source.licence.startswith("CC BY")
    assert all(re.fullmatch(r"https://codeload\.github\.com/.+/tar\.gz/[0-9a-f]{40}", url) for url in source.urls)


def test_the_digest_names_contents_as_git_does(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_bytes(b"hello\n")  # git hash-object: ce013625…
    assert digest_of(tmp_path) == sha256(b"ce013625030ba8dba906f756967f9e9ca394464a  a/b.txt\n").hexdigest()


ROWS = {  # a file of each corpus, in its own columns
    "masakhaner": ("MasakhaNER2.0/data/{}/train.txt", "Dakar B-LOC\nmooy O\n\n", ("wol", "yor")),
    "masakhapos": ("data/{}/train.txt", "Ki PRON\nmooy VERB\n\n", ("wol", "yor")),
    "uner": ("{}_ddt-ud-train.iob2", "# sent_id = 1\n1\tDakar\tB-LOC\tO#O\ts\n2\ter\tO\tO#O\ts\n\n", ("da", "sv")),
    "sib200": (
        "data/annotated/{}_Latn/train.tsv",
        "index_id\tcategory\ttext\n1\tsports\tBimu jaaree\n",
        ("wol", "yor"),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_repositories_are_checked_and_read(name: str, tmp_path: Path, served: dict[str, bytes]):
    path, content, languages = ROWS[name]
    entries = {f"x-1/{path.format(language)}": content for language in languages}
    known = SOURCES[name]()
    for number, url in enumerate(known.urls):
        served[url.rpartition("/")[2]] = tar({"x-1/README.md": "#", **(entries if number == 0 else {})})
    with pytest.raises(DataError, match=f"{name}: expected the files that crossfill knows, got others"):
        fetch(known, tmp_path)
    assert list(tmp_path.iterdir()) == []
    whole = fetch(replace(known, digest="", columns=""), tmp_path / "whole")
    checked = replace(known, digest=digest_of(whole))
    first = find_language(languages[0])
    folder = fetch(checked, tmp_path, {first})
    grid = load_grid(folder)
    assert [cell.language for cell in grid.cells] == [first]
    assert {len(splits.train) for cell in grid.cells for splits in grid[cell]} == {1}
    [cell] = grid.cells
    labels = {"ner": {"B-LOC", "O"}, "pos": {"PRON", "VERB"}, "topic": {"sports"}}[cell.task]
    assert set(grid[cell][0].train[0].labels) == labels


def test_addresses(tmp_path: Path):
    for release in UD_RELEASES:
        [url] = ud(release).urls
        assert url.endswith(f"/11234/{UD_RELEASES[release]}/ud-treebanks-v{release}.tgz")
    assert next(iter(ud().urls)).endswith("ud-treebanks-v2.18.tgz")
    with pytest.raises(DataError, match=r"unknown UD release '2\.44'; did you mean '2\.4'"):
        ud("2.44")
    with pytest.raises(DataError, match="expected a web address, http:// or https://; got 'file:///etc/passwd'"):
        fetch(ud("2.4"), tmp_path, url="file:///etc/passwd")
