"""Nothing is lost: finished work stays, and places are checked before any work."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crossfill.cli import options
from crossfill.cli.app import app, main
from crossfill.errors import CrossfillError, OutputError, StudyError
from crossfill.files import replacing, write_json
from crossfill.studies import run_folder
from crossfill.studies.run import check_run_folder
from tests.studies.studies import checked

RUN = CliRunner()


def refused(*arguments: object) -> str:
    """The message with which a command refuses, before it has looked for its model."""
    error = RUN.invoke(app, [str(argument) for argument in arguments]).exception
    assert isinstance(error, CrossfillError), error
    return str(error)


def test_commands_refuse_to_overwrite_before_they_load_anything(tmp_path: Path):
    (tmp_path / "done.bio").write_text("corrected by hand")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "model.safetensors").touch()
    nothing = tmp_path / "no-model"
    for arguments in (
        ["annotate", nothing, "--cell", "ner/wol", "--out", tmp_path / "done.bio"],
        ["predict", nothing, "--cell", "ner/wol", "--out", tmp_path / "done.bio"],
        ["export", nothing, tmp_path / "folder", "--cell", "ner/wol"],
        ["report", nothing, "--out", tmp_path / "folder"],
    ):
        assert "name another, or" in refused(*arguments)
    assert (tmp_path / "done.bio").read_text() == "corrected by hand"


def test_the_input_is_not_overwritten(tmp_path: Path):
    text = tmp_path / "in.txt"
    text.write_text("Dakar")
    (tmp_path / "link.txt").symlink_to(text)
    told = refused("predict", tmp_path, text, "--cell", "ner/wol", "--out", tmp_path / "link.txt")
    assert "expected a new file, found one that is there already" in told


def test_places_that_cannot_be_written_are_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "below", tmp_path / "file" / "deep" / "below"):
        with pytest.raises(OutputError, match="found the file"):
            options.check_folder(place)
    with pytest.raises(OutputError, match="found a folder"):
        options.check_file(tmp_path)
    options.check_folder(tmp_path / "new" / "one")
    assert not (tmp_path / "new").exists()  # checking makes nothing

    monkeypatch.setattr("os.access", lambda _, mode: not mode & os.W_OK)
    for arguments in (
        ["annotate", "m", "--cell", "ner/wol", "--out", tmp_path / "new" / "x.bio"],
        ["predict", "m", "--cell", "ner/wol", "--out", tmp_path / "x.txt"],
        ["export", "m", tmp_path / "x", "--cell", "ner/wol"],
        ["report", tmp_path],
    ):
        assert "expected a folder that can be written" in refused(*arguments)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_files_have_the_permissions_of_the_umask(tmp_path: Path, mask: int):
    before = os.umask(mask)
    try:
        write_json(tmp_path / "a.json", {})
        write_json(tmp_path / "a.json", {})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o666 & ~mask


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    write_json(tmp_path / "a.json", {"old": True})

    def write() -> None:
        with replacing(tmp_path / "a.json") as file:
            file.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert "old" in (tmp_path / "a.json").read_text()


def test_a_run_folder_keeps_the_results_of_another_study(tmp_path: Path):
    first, larger, other = checked(seeds=[0]), checked(seeds=[0, 1]), checked(seeds=[7])
    write_json(tmp_path / "run" / run_folder.PLAN, first.plan.as_dict())
    check_run_folder(other, tmp_path / "run")  # nothing is finished yet
    write_json(run_folder.job_folder(tmp_path / "run", next(iter(first.plan.jobs))) / run_folder.RESULT, {})
    for same in (first, larger):
        check_run_folder(same, tmp_path / "run")
    check_run_folder(other, tmp_path / "new")
    with pytest.raises(StudyError, match=r"found 1 finished jobs of another one.*--out"):
        check_run_folder(other, tmp_path / "run")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "model/x"), "model/x: No space left on device; check"),
        (OSError("We have no connection"), "We have no connection; "),
        (MemoryError(), "expected more memory"),
    ],
)
def test_what_the_system_refuses_is_a_message_with_a_remedy(error, told, monkeypatch, capsys):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("crossfill.cli.app.app", fail)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert told in shown
    assert "Traceback" not in shown


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT of this kind")
def test_ctrl_c_while_it_starts_leaves_no_traceback():
    program = (
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv = ['crossfill', '--help']\n"
        "from crossfill.__main__ import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_names_that_are_no_text_come_back_as_they_were(tmp_path: Path):
    for name in ("été", b"\xc3\xa9t\xe9".decode("ascii", "surrogateescape")):
        write_json(tmp_path / "a.json", {"path": name})
        assert json.loads((tmp_path / "a.json").read_bytes()) == {"path": name}
    write_json(tmp_path / "a.json", {"path": "été"})
    assert "été" in (tmp_path / "a.json").read_text(encoding="utf-8")
