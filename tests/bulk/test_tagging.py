"""Tagging in bulk: what `predict` says, each shard once, whoever is killed when."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app, main
from crossfill.executors import worker_jobs
from crossfill.executors.worker_jobs import WorkerJob, attempt
from tests.bulk.conftest import CELL, GRID
from tests.executors.inline import InlineExecutor
from tests.executors.processes import children, command_of, descendants

RUN = CliRunner()
LINES = [" ".join(sentence.words) for sentence in GRID.training(GRID.cells[0])] * 3


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_jobs, "build_executor", lambda _: InlineExecutor())


def bulk(model: Path, *given: str) -> str:
    result = RUN.invoke(app, ["--quiet", "predict-files", str(model), *given, "--cell", CELL])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def tagged(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in (out / "tagged").rglob("*.*")}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A folder of text, in ten files."""
    return written(tmp_path / "in", 10)


def written(folder: Path, n_files: int, n_times: int = 1) -> Path:
    folder.mkdir()
    lines = LINES * n_times
    for i in range(n_files):
        part = lines[i * len(lines) // n_files : (i + 1) * len(lines) // n_files]
        (folder / f"{i:03}.txt").write_text("".join(line + "\n" for line in part))
    return folder


@pytest.mark.usefixtures("inline")
def test_a_bulk_run_says_what_predict_says(model: Path, text: Path, tmp_path: Path):
    whole = tmp_path / "whole.txt"
    whole.write_text("".join(line + "\n" for line in LINES))
    alone = RUN.invoke(app, ["predict", str(model), str(whole), "--from", "words", "--cell", CELL, "--format", "jsonl"])
    told = bulk(model, str(text), "--from", "words", "--jobs", "1", "--out", str(tmp_path / "out"))
    found = tagged(tmp_path / "out")
    assert len(found) == 10
    joined = b"".join(found[name] for name in sorted(found)).decode()
    ours, theirs = ([json.loads(line) for line in part.splitlines()] for part in (joined, alone.stdout))
    assert [o["words"] for o in ours] == [o["words"] for o in theirs]
    assert [o["tags"][CELL]["labels"] for o in ours] == [o["tags"][CELL]["labels"] for o in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one["tags"][CELL]["confidence"] == pytest.approx(other["tags"][CELL]["confidence"], abs=2e-6)
    assert f"{len(found)} shards, {len(LINES)} sentences, {sum(len(line.split()) for line in LINES):,} words" in told


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("form", ["conllu", "bio"])
def test_other_formats_have_whole_files_and_unique_names_of_sentences(
    model: Path, text: Path, tmp_path: Path, form: str
):
    out = tmp_path / "out"
    bulk(model, str(text), "--from", "words", "--jobs", "1", "--format", form, "--out", str(out))
    whole = b"".join(tagged(out).values()).decode()
    assert whole.count("\n\n") == len(LINES)
    if form == "conllu":
        names = [line for line in whole.splitlines() if line.startswith("# sent_id")]
        assert len(set(names)) == len(LINES)


@pytest.mark.usefixtures("inline")
def test_bad_lines_do_not_end_a_run(model: Path, tmp_path: Path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(b'{"words": ["a"]}\n\xff\n{"words": ["b"]}\n')
    (folder / "b.jsonl").write_bytes(b'{"words": [1]}\n{"words": ["c"]}\n')
    told = bulk(model, str(folder), "--out", str(out))
    aside = [json.loads(line) for line in (out / "set-aside.jsonl").read_text().splitlines()]
    assert [one["where"] for one in aside] == [f"{folder}/a.jsonl:2", f"{folder}/b.jsonl:1"]
    assert "2 records could not be read" in told
    assert sorted(tagged(out)) == ["tagged/a.jsonl", "tagged/b.jsonl"]
    assert tagged(out)["tagged/a.jsonl"].count(b"\n") == 2


@pytest.mark.usefixtures("inline")
def test_a_run_is_taken_up_and_another_is_not_mixed_with_it(
    model: Path, text: Path, tmp_path: Path, capsys, monkeypatch
):
    out = tmp_path / "out"
    given = [str(text), "--from", "words", "--jobs", "1", "--out", str(out)]
    bulk(model, *given)
    whole, times = tagged(out), {path: path.stat().st_mtime_ns for path in (out / "tagged").iterdir()}
    first, second, *_ = sorted((out / "tagged").iterdir())
    first.unlink()
    (out / "records" / f"{second.stem}.json").unlink()
    bulk(model, *given)
    assert tagged(out) == whole
    again = {path for path, then in times.items() if path.stat().st_mtime_ns != then}
    assert again == {first, second}

    def refused(*more: str) -> str:
        monkeypatch.setattr(
            sys, "argv", ["crossfill", "--quiet", "predict-files", str(model), *given, "--cell", CELL, *more]
        )
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 2
        return capsys.readouterr().err

    assert "found one that differs in samples" in refused("--samples", "3")
    (text / "000.txt").write_text("something else\n")
    assert "found one that differs in its inputs" in refused()
    for path in text.glob("*[1-9].txt"):
        path.unlink()
    bulk(model, *given, "--force")
    assert sorted(tagged(out)) == ["tagged/000.jsonl"]
    shutil.rmtree(out)
    out.mkdir()
    (out / "thesis.txt").write_text("")
    assert "expected a new or empty folder, found thesis.txt" in refused()


def test_a_file_that_is_emptied_during_the_run_ends_it_with_an_error(
    model: Path, text: Path, tmp_path: Path, capsys, monkeypatch
):
    class EmptyingExecutor(InlineExecutor):
        def run(self, jobs: Mapping[str, WorkerJob]):
            (text / "003.txt").write_bytes(b"")
            return super().run(jobs)

    monkeypatch.setattr(worker_jobs, "build_executor", lambda _: EmptyingExecutor())
    out = tmp_path / "out"
    given = ["predict-files", str(model), str(text), "--from", "words", "--out", str(out), "--cell", CELL]
    monkeypatch.setattr(sys, "argv", ["crossfill", "--quiet", *given])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert "1 of 10 shards failed; the others are done" in message
    assert "003.txt: expected the" in message
    assert "the file has changed" in message
    assert len(tagged(out)) == 9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["-", "--jobs", "2", "--out", "o"], "got standard input"),
        (["no*such", "--out", "o"], "expected files to read, found none"),
        (["x/a.txt", "y/a.txt", "--out", "o"], "expected files whose names differ before their endings"),
        (["x/a.txt", "x/a.conllu", "--out", "o"], "expected files whose names differ before their endings"),
        (["x/a.txt", "--jobs", "1", "--format", "text", "--out", "o"], "unknown format of tagged shards 'text'"),
        (["x/empty.txt", "--jobs", "1", "--out", "o"], "got 1 empty files"),
        (["x/a.txt", "--jobs", "1", "--alpha", "0.1", "--out", "o"], "label sets, abstention and temperature need"),
    ],
)
def test_what_cannot_be_done_is_told_before_any_work(model: Path, tmp_path: Path, monkeypatch, capsys, given, message):
    for name, content in {"x/a.txt": "a", "y/a.txt": "b", "x/a.conllu": "", "x/empty.txt": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content or "1\ta" + "\t_" * 8 + "\n" if "conllu" in name else content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["crossfill", "predict-files", str(model), *given, "--cell", CELL])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "o" / "tagged").exists()


def command(model: Path, text: Path, out: Path, executor: str = "local") -> list[str]:
    options = ["--from", "words", "--cell", CELL, "--executor", executor, "--jobs", "2"]
    return [
        sys.executable,
        "-m",
        "crossfill",
        "--quiet",
        "predict-files",
        str(model),
        str(text),
        *options,
        "--out",
        str(out),
    ]


def kill_and_resume(given: list[str], out: Path, moments: list[int], victim: str) -> None:
    """Kill a worker, or the run itself, when so many shards are done; a shard that is done is not done again."""
    for moment in [*moments, 10**9]:
        before = _written(out)
        process = subprocess.Popen(given)
        while process.poll() is None and len(_written(out)) < moment:
            time.sleep(0.01)
        alive = process.poll() is None
        for pid in (children(process.pid)[:1] if victim == "worker" else [process.pid]) * alive:
            os.kill(pid, signal.SIGKILL)
        assert process.wait(timeout=900) == (0 if victim == "worker" or not alive else -signal.SIGKILL)
        assert before.items() <= _written(out).items()


def _written(out: Path) -> dict[str, int]:
    """The files of shards that are done, which are new files if they are written again."""
    done = (out / "tagged" / f"{path.stem}.jsonl" for path in out.glob("records/*.json"))
    return {path.name: path.stat().st_ino for path in done}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="children are found in /proc")
def test_killed_and_taken_up_it_gives_the_same_bytes(model: Path, tmp_path: Path):
    text = written(tmp_path / "more", 60, 20)
    for victim in ("run", "worker"):
        out = tmp_path / victim
        kill_and_resume(command(model, text, out), out, [3, 12], victim)
    assert tagged(tmp_path / "run") == tagged(tmp_path / "worker")
    joined = b"".join(content for _, content in sorted(tagged(tmp_path / "run").items()))
    assert joined.count(b"\n") == 20 * len(LINES)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install '.[ray]'")
def test_ray_gives_the_same_bytes_whoever_is_killed(model: Path, tmp_path: Path):
    text = written(tmp_path / "more", 60, 20)
    subprocess.run(command(model, text, tmp_path / "local"), check=True)
    whole = tagged(tmp_path / "local")
    subprocess.run(command(model, text, tmp_path / "ray", "ray"), check=True)
    assert tagged(tmp_path / "ray") == whole
    kill_and_resume(command(model, text, tmp_path / "killed", "ray"), tmp_path / "killed", [3, len(whole) // 2], "run")
    assert tagged(tmp_path / "killed") == whole
    out = tmp_path / "lost"
    process = subprocess.Popen(command(model, text, out, "ray"))
    while len(_written(out)) < 3:
        time.sleep(0.01)
    found: list[int] = []  # Ray's own agents are ray::… too, and a node does not survive them
    while not found:
        found = [pid for pid in descendants(process.pid) if command_of(pid).startswith(f"ray::{attempt.__name__}")]
    os.kill(found[0], signal.SIGKILL)
    assert process.wait(timeout=600) == 0
    assert tagged(out) == whole
