"""Archives into a data folder that `load_grid` reads, or into nothing at all."""

import errno
from pathlib import Path

import pytest

from crossfill.data import sources
from crossfill.data.folder import load_grid
from crossfill.data.sources import UD_RELEASES, fetch, ud, wikiann
from crossfill.errors import DataError
from tests.data.folders import bio, conllu, tar, zipped

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

    def download(url: str, target: Path, **options: object) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(answers[url.rpartition("/")[2]])

    monkeypatch.setattr(sources, "download", download)
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
    with pytest.raises(DataError, match=r"expected files inside the archive's folder, got .*; do not trust it"):
        fetch(ud(), tmp_path / "data")
    assert [path.name for path in tmp_path.rglob("*")] == ["data", ".downloads", "ud-treebanks-v2.4.tgz"]


def test_links_in_an_archive_are_left_out(tmp_path: Path, served: dict[str, bytes]):
    served["ud-treebanks-v2.4.tgz"] = tar(TREEBANKS, link="/etc/passwd")
    fetch(ud(), tmp_path)
    assert not (tmp_path / "ud" / "UD_X").exists()


def test_a_broken_archive_leaves_no_folder(tmp_path: Path, served: dict[str, bytes]):
    whole = tar({**TREEBANKS, "ud/UD_X-Y/xx": "".join(chr(33 + i * i % 90) for i in range(20_000))})
    for broken in (b"<html>not found</html>", b"", whole[: len(whole) // 2], whole[:200] + b"?" * 40 + whole[240:]):
        served["ud-treebanks-v2.4.tgz"] = broken
        with pytest.raises(DataError, match=r"expected a whole archive; .*; it was removed, run again"):
            fetch(ud(), tmp_path)
        assert [path.name for path in tmp_path.rglob("*")] == [".downloads"]


def test_a_full_disk_leaves_no_folder(tmp_path: Path, served: dict[str, bytes], monkeypatch: pytest.MonkeyPatch):
    served["ud-treebanks-v2.4.tgz"] = tar(TREEBANKS)

    def full(*_given: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(sources, "_copy", full)
        with pytest.raises(DataError, match="could not be unpacked; No space left on device; mend that and run again"):
            fetch(ud(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".downloads"]
    served.clear()
    monkeypatch.setattr(sources, "download", None)  # the archive is there already
    assert len(load_grid(fetch(ud(), tmp_path)).cells) == 2


def test_addresses(tmp_path: Path):
    for release in UD_RELEASES:
        assert ud(release).url.endswith(f"/11234/{UD_RELEASES[release]}/ud-treebanks-v{release}.tgz")
    with pytest.raises(DataError, match=r"unknown UD release '2\.44'; did you mean '2\.4'"):
        ud("2.44")
    with pytest.raises(DataError, match="expected a web address, http:// or https://; got 'file:///etc/passwd'"):
        fetch(ud(), tmp_path, url="file:///etc/passwd")
