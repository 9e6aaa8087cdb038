"""`crossfill train` and `crossfill cache`, as a person types them."""

import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app, main
from crossfill.cli.output import say_if_nothing_was_found, say_what_found_nothing
from crossfill.encoders.cache import FeatureCache
from crossfill.grid.cells import Cell
from crossfill.progress import ProgressBar
from tests.data.folders import bio, conllu, write
from tests.encoders.tiny import bert

RUN = CliRunner()
SMALL = [
    *("--set", "training.steps=6", "--set", "training.validate_every=3", "--set", "latents.size=3"),
    *("--set", "encoder.pretrained.max_pieces=60", "--set", "prediction.samples=3"),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    def tagged(n: int, start: int) -> list[list[tuple[str, str]]]:
        return [[(f"erwa{i}", "NOUN"), ("moku", "VERB")] for i in range(start, start + n)]

    def named(n: int, start: int) -> list[list[tuple[str, str]]]:
        return [[(f"erwa{i}", "B-PER"), ("moku", "O")] for i in range(start, start + n)]

    files = {}
    for language in ("wol", "yor", "amh"):
        for split, n, start in (("train", 8, 0), ("dev", 4, 20), ("test", 4, 40)):
            files[f"ud/{language}/{split}.conllu"] = conllu(*tagged(n, start))
            files[f"ner/{language}/{split}.bio"] = bio(*named(n, start))
    return write(tmp_path / "data", files)


def train(data: Path, *options: str) -> str:
    result = RUN.invoke(app, ["--quiet", "train", str(data), *SMALL, *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_columns_with_a_script_and_of_ones_own_go_through_training_and_back(data: Path, tmp_path: Path):
    (data / "ud/wol").rename(data / "ud/srp-Latn")
    (data / "ner/wol").rename(data / "ner/my-dialect")
    write(data, {"typology/syntax_knn.tsv": "language\ta\nsrp\t1\nyor\t1\namh\t1\n"})
    folder, out = bert(tmp_path / "bert"), tmp_path / "model"
    options = [*SMALL, "--config", "configs/frozen.yaml", "--encoder", str(folder), "--out", str(out)]
    result = RUN.invoke(app, ["train", str(data), *options, "--method", "pf-lr"])
    assert result.exit_code == 0, result.output
    assert "no typological vectors of my-dialect: only text says what they are like" in result.output
    text = tmp_path / "text.txt"
    text.write_text("erwa1 moku\n")
    for cell, found in (("ner/sr-latn", "ner/srp-Latn"), ("pos/my-dialect", "pos/my-dialect")):
        result = RUN.invoke(app, ["predict", str(out), str(text), "--cell", cell, "--format", "jsonl"])
        assert json.loads(result.stdout)["tags"].keys() == {found}, result.output
    half = tmp_path / "half.bio"
    half.write_text("erwa1\tNOUN\nmoku\tVERB\n")
    result = RUN.invoke(app, ["adapt", str(out), str(half), "--cell", "pos/my-dialect"])
    assert result.exit_code == 0, result.output
    assert [path.name for path in (out / "adapted").glob("*.safetensors")] == ["pos-my_dialect.safetensors"]
    result = RUN.invoke(app, ["adapt", str(out), "--cell", "pos/my-dialect", "--undo"])
    assert "pos/my-dialect is as it was" in result.output
    assert "Serbian (Latin) (`srp-Latn`)" in (out / "README.md").read_text()


def test_a_frozen_encoder_from_end_to_end(data: Path, tmp_path: Path):
    folder, out = bert(tmp_path / "bert"), tmp_path / "model"
    frozen = ["--config", "configs/frozen.yaml", "--encoder", str(folder), "--method", "pf-lr", "--out", str(out)]
    output = train(data, *frozen, "--hold-out", "ner/wol", "--max-train", "5")
    assert "seen cells (5): ner " in output
    assert "unseen cells (1): ner " in output
    assert "5 of 6 cells seen, 6 steps" in output
    results = json.loads((out / "results.json").read_text())
    assert [r["cell"] for r in results if not r["seen"]] == ["ner/wol"]
    # both tasks of a language label the same text: one entry per split, the training text of the unseen cell included
    entries = FeatureCache().entries()
    assert {entry.about["rows"] for entry in entries} == {10, 8}
    kept = {entry.path: entry.path.stat().st_mtime_ns for entry in entries}
    train(data, *frozen, "--hold-out", "half", "--max-train", "5", "--force")
    assert {entry.path: entry.path.stat().st_mtime_ns for entry in FeatureCache().entries()} == kept


def test_what_a_user_should_know_is_said_before_the_training_and_after_it(data: Path, tmp_path: Path):
    out = tmp_path / "model"
    result = RUN.invoke(app, ["train", str(data), *SMALL, "--encoder", "compact", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "crossfill export will not carry this model: compact reads hashed n-grams" in result.stderr
    assert f"crossfill evaluate {out} {data}" in result.stdout
    nothing = [r["cell"] for r in json.loads((out / "results.json").read_text()) if r["plug_in"]["score"] < 5e-4]
    assert (f"no name was found (or no label right): {', '.join(nothing)};" in result.stderr) == bool(nothing)


def test_a_score_of_zero_is_news_in_every_command(capsys: pytest.CaptureFixture[str]):
    scored = [
        SimpleNamespace(cell=Cell("ner", language), score=score) for language, score in (("wol", 0.0004), ("yor", 0.01))
    ]
    study = SimpleNamespace(methods=["jm"], proper=lambda _: ["entry"], cells=lambda _: scored)
    say_what_found_nothing(study)
    assert capsys.readouterr().err.startswith("jm: score 0.0, no name was found (or no label right): ner/wol; try more")
    say_if_nothing_was_found(scored[1:])
    assert not capsys.readouterr().err


def test_the_papers_settings_are_a_preset_and_no_default(data: Path, tmp_path: Path):
    folder = bert(tmp_path / "bert")
    given = ["--encoder", str(folder), "--set", "encoder.pretrained.layer=2", "--method", "pf-d", "--preset", "paper"]
    output = train(data, *given, "--out", str(tmp_path / "model"))
    assert "6 of 6 cells seen" in output
    described = json.loads((tmp_path / "model" / "config_crossfill.json").read_text())["config"]
    assert described["encoder"]["pretrained"] | {"mode": "finetune", "layer": 2} == described["encoder"]["pretrained"]
    assert described["training"]["learning_rate"] == 5e-6


def test_a_plain_training_says_what_it_does(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is given but the data and an encoder: frozen features, by the encoder's attention."""
    folder = bert(tmp_path / "bert")
    for cell in ("wol", "yor"):
        shutil.rmtree(data / "ner" / cell)
    few = ["--encoder", str(folder), "--set", "training.steps=4", "--out"]
    bars: list[tuple[str, int | None]] = []
    add = ProgressBar.add
    monkeypatch.setattr(
        ProgressBar, "add", lambda self, title, total=None: bars.append((title, total)) or add(self, title, total)
    )
    result = RUN.invoke(app, ["train", str(data), *few, str(tmp_path / "model")])
    assert result.exit_code == 0, result.output
    assert "preset laptop: no accelerator, so the encoder stays frozen" in result.stderr
    assert "pooling first: attention is bidirectional" in result.stderr
    assert "pf-lr over bert (frozen, pooling first, centring mean): " in result.stderr
    assert "4 cells seen, 64 training words; 2 cells will be filled: ner/wol, ner/yor" in result.stderr
    assert re.search(r"only \w+ has both ner and pos: from so little the model can hardly learn", result.stderr)
    assert "32 words to encode, and 0 in the cache already" in result.stderr
    assert [bar for bar in bars if bar[0].startswith("Encoding")] == [
        ("Encoding words of 1 cell", 32)
    ]  # all have the same text
    how = "will carry this model with --onnx only: it reads the surface of words .*; it has hidden layers"
    assert re.search(f"crossfill export {how}", result.stderr)
    described = json.loads((tmp_path / "model" / "config_crossfill.json").read_text())["config"]
    assert described["encoder"]["pretrained"]["max_pieces"] == 64  # what the network takes
    again = RUN.invoke(app, ["train", str(data), *few, str(tmp_path / "again")])
    assert "0 words to encode, and 32 in the cache already" in again.stderr
    RUN.invoke(app, ["--quiet", "train", str(data), *few, str(tmp_path / "quiet")])
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("again", "quiet")]
    assert weights[0] == weights[1]  # saying so changes nothing


def test_a_preset_and_a_config_are_not_mixed_in_silence(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    monkeypatch.chdir(tmp_path)
    given = ["--encoder", "compact", "--preset", "demo", "--config", "configs/small.yaml"]
    monkeypatch.setattr(sys, "argv", ["crossfill", "train", str(data), *given])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "expected a preset or a config, got both" in capsys.readouterr().err


def test_sources_from_the_command_line(data: Path, tmp_path: Path):
    small = ["--encoder", "compact", "--hold-out", "ner/wol", "--out", str(tmp_path / "model")]
    output = train(data, "--method", "ls", "--set", "sources.largest=amh", *small)
    assert "ls: ner/amh has 16 training words" not in output  # as many as the one seen cell of ner has
    assert "5 of 6 cells seen" in output
    described = json.loads((tmp_path / "model" / "config_crossfill.json").read_text())
    assert described["seen"] == ["ner/amh", "ner/yor", "pos/amh", "pos/wol", "pos/yor"]
    for method in ("ns", "bea"):  # lang2vec knows these languages: nothing to tell
        assert "unseen cells (1): ner " in train(data, "--method", method, *small, "--force")


def test_the_cache_is_listed_checked_and_cleared(data: Path, tmp_path: Path):
    assert "no features" in RUN.invoke(app, ["cache"]).output
    folder = bert(tmp_path / "bert")
    train(data, "--encoder", str(folder), "--set", "encoder.pretrained.mode=frozen", "--out", str(tmp_path / "model"))
    listed = RUN.invoke(app, ["cache", "list"]).output
    assert re.search(r"layer last, first piece, (float32|int8), windows of 60: 3 corpora, 32 rows", listed)
    assert re.search(r"3 entries, 0 damaged", RUN.invoke(app, ["cache", "check"]).output)
    path = FeatureCache().entries()[0].path
    path.write_bytes(path.read_bytes()[:-1])
    result = RUN.invoke(app, ["cache", "check"])
    assert result.exit_code == 1
    assert f"{path}: damaged" in result.output
    assert "0 entries removed" in RUN.invoke(app, ["cache", "clear", "--encoder", "xlm"]).output
    assert "3 entries removed" in RUN.invoke(app, ["cache", "clear", "--encoder", "bert", "--yes"]).output
    assert FeatureCache().entries() == []


def test_bad_input_is_one_message_and_code_2(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for options, message in (
        (["--method", "pf"], "unknown method 'pf'; did you mean 'pf-d'?"),
        (["--set", "training.step=5"], "did you mean 'steps'?"),
        (["--encoder", str(tmp_path)], "expected config.json in it"),
        (["--encoder", "compact", "--hold-out", "ner/xho"], "unknown cell 'ner/xho'"),
    ):
        monkeypatch.setattr(sys, "argv", ["crossfill", "train", str(data), "--out", str(tmp_path / "out"), *options])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 2
        assert message in capsys.readouterr().err


def test_typological_vectors_beside_the_corpora_are_used(data: Path, tmp_path: Path):
    (data / "typology").mkdir()
    (data / "typology" / "fam.tsv").write_text("language\ta\tb\nwol\t1\t0\nyor\t0\t1\namh\t1\t0.1\n")
    options = ["--method", "ns", "--encoder", "compact", "--hold-out", "ner/wol", "--out", str(tmp_path / "model")]
    train(data, *options)
    described = json.loads((tmp_path / "model" / "config_crossfill.json").read_text())["config"]
    assert described["sources"]["vectors"] == str(data / "typology")


def test_cells_are_named_by_any_code(data: Path, tmp_path: Path):
    out = tmp_path / "model"
    train(data, "--encoder", "compact", "--hold-out", "ner/wo", "--out", str(out))
    description = json.loads((out / "config_crossfill.json").read_text())
    assert description["seen"] == ["ner/amh", "ner/yor", "pos/amh", "pos/wol", "pos/yor"]


def test_a_folder_whose_name_yaml_would_cut_is_found(data: Path, tmp_path: Path):
    odd = tmp_path / "corpora #2: yes"
    data.rename(odd)
    rows = "\n".join(f"{code}\t{i}\t1" for i, code in enumerate(("wol", "yor", "amh"), start=1))
    write(odd, {"typology/fam.tsv": f"language\ta\tb\n{rows}\n"})
    train(odd, "--encoder", "compact", "--method", "ns", "--hold-out", "ner/wol", "--out", str(tmp_path / "model"))
    config = json.loads((tmp_path / "model" / "config_crossfill.json").read_text())["config"]
    assert config["sources"]["vectors"] == str(odd / "typology")


def test_a_setting_that_is_no_yaml_is_an_error_not_a_traceback(data: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(sys, "argv", ["crossfill", "train", str(data), "--set", "training.steps=[1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "training.steps: expected a value in YAML" in capsys.readouterr().err
